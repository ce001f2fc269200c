"""Commands for language models."""
