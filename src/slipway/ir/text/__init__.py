"""Text of loops: to read, as TVMScript, as JSON."""
