"""Relay graphs in other systems' formats (classic TVM's ``contrib.target``): `onnx`."""

__all__ = ["onnx"]


def __getattr__(name: str) -> object:
    from slipway.classic_names import missing
    from slipway.lazy import load

    if name == "onnx":
        return load("slipway.contrib.target.onnx")
    raise AttributeError(missing(__name__, name, __all__))
