"""Functions of integers in the fixed point arithmetic of TFLite's kernels, bit for bit."""
