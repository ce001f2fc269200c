"""What is in order and what is not: this machine, a device, a tracker's devices, a serial line."""
