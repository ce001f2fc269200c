"""Keras 3 models, of whatever backend: layers and operations become relay calls."""
