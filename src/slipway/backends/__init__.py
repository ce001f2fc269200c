"""Everything that depends on a kind of target: one folder a backend."""
