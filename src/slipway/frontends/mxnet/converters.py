"""The table of MXNet's operators, and what a converter sees of a node.

A converter is a function ``f(node: NodeView) -> Expr | list[Expr]`` decorated with `converter`,
under the names that the operator has in a symbol's JSON.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any, cast

from slipway import relay
from slipway.frontends.converter_table import ConverterTable, UnsupportedNode
from slipway.relay.expr import Expr

TABLE: ConverterTable[NodeView] = ConverterTable(
    "slipway.frontends.mxnet.operators",
    (
        "arithmetic", "attention", "compare", "conv", "create", "dense", "index", "loss", "norm",
        "pool", "recurrent", "reduce", "sequence", "shape", "slices", "sort", "space", "vision",
    ),
)  # fmt: skip
converter = TABLE.converter
load_converters = TABLE.load

# What cannot be imported, and why.
REFUSED = {
    "Correlation": "there is no such operator",
    "Custom": "it is a function of Python",
    "_foreach": "loops of a symbol are not converted: unroll the cell",
    "_while_loop": "loops of a symbol are not converted",
    "_cond": "branches of a symbol are not converted",
}


class OpenFill:
    """An array of one number whose extents of 0 are those of whatever it is used with."""

    def __init__(self, shape: Sequence[int], value: float, dtype: str) -> None:
        self.shape = tuple(shape)
        self.value = value
        self.dtype = dtype

    def closed(self, shape: Sequence[int]) -> Any:
        """Return the array of a shape that is known."""
        return relay.full(
            relay.const(self.value, self.dtype), tuple(int(d) for d in shape), self.dtype
        )


class NodeView:
    """One node of a symbol: `inputs` are its tensors, `attrs` the texts of its attributes."""

    def __init__(self, op: str, name: str, attrs: Mapping[str, str], inputs: Sequence[Any]) -> None:
        self.op = op
        self.name = name
        self.attrs = {key.strip("_"): text for key, text in attrs.items()}
        self.inputs = list(inputs)

    def __getitem__(self, position: int) -> Any:
        return self.inputs[position]

    @property
    def data(self) -> Any:
        """The first input."""
        return self.inputs[0]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the first input."""
        return shape_of(self.data)

    @property
    def dtype(self) -> str:
        """The data type of the first input."""
        return dtype_of(self.data)

    def has(self, name: str) -> bool:
        """Return whether an attribute is given, and is not None."""
        return self.attrs.get(name, "None") not in ("None", "")

    def text(self, name: str, default: str = "") -> str:
        """Return an attribute as it is written."""
        return self.attrs[name] if self.has(name) else default

    def value(self, name: str, default: object = None) -> Any:
        """Return what an attribute's text means: a number, a list of them, a bool, None."""
        text = self.attrs.get(name)
        if text is None:
            return default
        try:
            return ast.literal_eval(text.strip().replace("L", ""))
        except (ValueError, SyntaxError):
            raise self.unsupported(f"its attribute {name} is {text!r}") from None

    def flag(self, name: str, default: bool = False) -> bool:
        """Return an attribute that is true or false, however it is written."""
        text = self.text(name, str(default)).strip().lower()
        return text in ("true", "1")

    def integer(self, name: str, default: int | None = None) -> int:
        """Return a whole number; without a default it must be given."""
        found = self.value(name, default)
        if found is None:
            if default is None:
                raise self.unsupported(f"it has no attribute {name}")
            found = default
        return int(found)

    def real(self, name: str, default: float) -> float:
        """Return a number."""
        text = self.text(name, repr(default)).strip().rstrip("fF")
        return float(text)

    def ints(self, name: str, default: Sequence[int] = ()) -> list[int]:
        """Return whole numbers; one that stands alone is a list of one."""
        found = self.value(name, None)
        if found is None:
            return list(default)
        return [int(v) for v in found] if isinstance(found, tuple | list) else [int(found)]

    def floats(self, name: str, default: Sequence[float] = ()) -> list[float]:
        """Return numbers; one that stands alone is a list of one."""
        found = self.value(name, None)
        if found is None:
            return list(default)
        return [float(v) for v in found] if isinstance(found, tuple | list) else [float(found)]

    def axis(self, name: str, default: int, rank: int | None = None) -> int:
        """Return an axis of the first input, counted from its front."""
        whole = len(self.shape) if rank is None else rank
        found = self.integer(name, default)
        return found + whole if found < 0 else found

    def const(self, value: float) -> Any:
        """Return a number of the first input's data type."""
        return relay.const(value, self.dtype)

    def unsupported(self, why: str) -> UnsupportedNode:
        """Return the error that names this node."""
        return UnsupportedNode(f"{self.name} ({self.op}): {why}")


def shape_of(value: Expr) -> tuple[int, ...]:
    """Return the shape of a tensor."""
    return tuple(value.tensor_type.shape)


def dtype_of(value: Expr) -> str:
    """Return the data type of a tensor."""
    return str(value.tensor_type.dtype)


def as_list(made: Expr | Sequence[Expr]) -> list[Expr]:
    """Return what a converter made as the list of a node's outputs."""
    if isinstance(made, list | tuple | relay.expr.TupleWrapper):
        return list(made)
    return [cast(Expr, made)]
