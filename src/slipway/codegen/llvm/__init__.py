"""The LLVM code generator."""
