"""Passes from graph to graph that hold for every target, one a file."""
