"""Operators of detection networks."""
