"""The loop language: expressions, statements, functions, and generic tools over them."""
