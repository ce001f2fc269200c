"""Graphs in 16-bit floating point: what is stored short, and where sums stay float32."""
