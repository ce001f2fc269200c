"""Keras with PyTorch as its backend, where it is installed."""

import os

os.environ.setdefault("KERAS_BACKEND", "torch")
