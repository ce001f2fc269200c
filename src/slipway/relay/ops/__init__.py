"""The operators, one section each; `op_registry.load_ops` imports every family."""
