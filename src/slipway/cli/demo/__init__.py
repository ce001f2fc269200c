"""``slipway demo``: what it runs, and the devices that it can start."""
