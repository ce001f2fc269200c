"""How operators are computed on processors, a folder a family."""
