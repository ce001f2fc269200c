"""Parts of a model that somebody else compiles: C of the user's, and UMA."""
