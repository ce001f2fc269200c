"""Arrays outside of the runtime: in files of their own, and in NumPy's."""
