"""Small wrong changes to the sources, and whether the tests notice them."""
