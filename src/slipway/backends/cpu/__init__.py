"""Processors with an operating system: lowering of graphs, schedules, tiles."""
