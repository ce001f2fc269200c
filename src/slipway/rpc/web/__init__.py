"""The page of a tracker, what stands in front of it, and browsers as devices."""
