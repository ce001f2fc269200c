"""Models compiled ahead of time: one function that calls the kernels, every address planned."""
