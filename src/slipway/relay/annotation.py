"""``relay.annotation``: marks in graphs under their classic names."""

from slipway.relay.ops.annotation import compiler_begin, compiler_end

__all__ = ["compiler_begin", "compiler_end"]
