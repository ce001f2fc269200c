"""A backend in a folder of its own: plain C through the C writer, one strategy, two passes."""
