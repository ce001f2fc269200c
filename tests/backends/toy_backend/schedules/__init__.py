"""Strategies of the toy backend."""
