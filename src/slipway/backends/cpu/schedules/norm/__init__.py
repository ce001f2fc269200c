"""Norm."""
