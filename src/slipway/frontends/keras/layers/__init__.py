"""Converters of Keras' layers, a family a file."""
