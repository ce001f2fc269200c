"""Models whose operators run on several kinds of device."""
