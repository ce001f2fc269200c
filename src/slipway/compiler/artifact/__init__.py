"""The files that a compiled module is written as: archive, library, objects, a page."""
