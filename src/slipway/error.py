"""Errors under their classic names; see `slipway.errors`."""

from slipway.errors import (
    DiagnosticError,
    InternalError,
    OpAttributeInvalid,
    OpAttributeRequired,
    OpAttributeUnImplemented,
    OpError,
    OpNotImplemented,
    OpNotInferred,
    RPCError,
    RPCSessionTimeoutError,
    TVMError,
    register_error,
)

__all__ = [
    "DiagnosticError",
    "InternalError",
    "OpAttributeInvalid",
    "OpAttributeRequired",
    "OpAttributeUnImplemented",
    "OpError",
    "OpNotImplemented",
    "OpNotInferred",
    "RPCError",
    "RPCSessionTimeoutError",
    "TVMError",
    "register_error",
]
