"""Importers: model files become relay modules."""
