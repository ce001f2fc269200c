"""Proofs and simplification of integer expressions: what scheduling and lowering need, no more."""
