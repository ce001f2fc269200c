"""Quantized."""
