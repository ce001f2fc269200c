"""Passes over graphs: one file each, Function -> Function; `pipeline` lists them."""
