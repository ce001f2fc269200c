"""Graph passes for processors: layouts, packed weights, Winograd, attention."""
