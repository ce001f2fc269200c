"""Passes over loop functions: one file each, PrimFunc -> PrimFunc; `passes.pipeline` lists them."""
