"""Graphs as text: how it is written, and read back."""
