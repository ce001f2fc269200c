"""``relay.quantize``: a real graph becomes one on integers (symmetric, 8 bits)."""
