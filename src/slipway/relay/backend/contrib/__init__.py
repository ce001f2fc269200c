"""``relay.backend.contrib``: ways to bring an accelerator."""
