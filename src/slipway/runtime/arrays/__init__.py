"""Arrays outside of the runtime: in files of their own, NumPy's and PyTorch's."""
