"""``tvm._ffi.base``: the base of errors, and text from C."""

from slipway.errors import TVMError

string_types = (str,)
numeric_types = (int, float)


def py_str(value: bytes) -> str:
    """Return the text of bytes from C."""
    return value.decode("utf-8")


__all__ = ["TVMError", "numeric_types", "py_str", "string_types"]
