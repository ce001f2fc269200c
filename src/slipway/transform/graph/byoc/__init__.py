"""Parts of a graph for accelerators of the user's own: marks, regions, functions (BYOC)."""
