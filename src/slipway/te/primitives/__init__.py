"""Primitives of a stage, by what they change: its loops, their marks, its place, its storage."""
