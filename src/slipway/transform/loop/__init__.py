"""Passes from loops to loops, one a file, and their order."""
