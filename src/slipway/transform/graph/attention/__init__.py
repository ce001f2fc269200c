"""Attention as one operator: found in the ways that models write it, with its layouts."""
