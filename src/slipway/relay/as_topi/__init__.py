"""Operators of graphs under the names and arguments of ``topi``, over te tensors."""
