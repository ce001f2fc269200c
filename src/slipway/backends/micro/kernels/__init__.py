"""Integer kernels of C for microcontrollers, and what matches them."""
