"""Schedules for processors: register tiles, vectors, threads."""
