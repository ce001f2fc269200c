"""PrimFuncs to machine code and C."""
