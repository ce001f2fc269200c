"""Hand-written C kernels for integer layers on microcontrollers, and where they apply."""
