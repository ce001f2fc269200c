"""Questions about a model: coverage, cost limits, profile, bisect."""
