"""The C code generator."""
