"""Conv."""
