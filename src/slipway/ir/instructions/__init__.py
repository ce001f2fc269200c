"""Spellings of instructions that take more than a line, and those that work on tiles."""
