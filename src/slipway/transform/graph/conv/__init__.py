"""Convolutions of any target: scales folded into weights, transposed ones as plain ones."""
