"""The Project API: a template or project directory driven by JSON-RPC through a pipe pair."""
