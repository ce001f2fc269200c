"""Connections before they are sessions: who may come in, in what time, under TLS or not."""
