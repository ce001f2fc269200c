"""SPIR-V for Vulkan: an assembler, and the sink that writes kernels with it."""
