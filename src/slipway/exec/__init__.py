"""Programs: ``python -m slipway.exec.<name>``."""
