"""What a tracker knows of its farm, what happened there, and what is said about it."""
