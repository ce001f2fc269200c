"""A model becomes an artifact."""
