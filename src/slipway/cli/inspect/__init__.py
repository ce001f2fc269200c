"""Commands that ask about a model: what becomes of it, where its time and its numbers go."""
