"""``tvmc.composite_target``: the compilers that a target may name before the last kind."""

from slipway.driver.tvmc.compiler import get_codegen_names

__all__ = ["get_codegen_names"]
