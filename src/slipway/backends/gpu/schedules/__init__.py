"""Strategies for GPUs."""
