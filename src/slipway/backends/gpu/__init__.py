"""The backend of GPUs: kernels in a language of theirs, driven by code on a processor."""
