"""Graphs on integers: what quantised tensors stand for, and arithmetic moved onto them."""
