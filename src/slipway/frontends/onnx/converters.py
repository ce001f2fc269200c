"""The table of ONNX operators, and what a converter sees of a node.

A converter is a function ``f(node: NodeView) -> Expr | TupleWrapper | list[Expr]`` decorated with
`converter`; families of converters live in one file each.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway import relay
from slipway.frontends.converter_table import ConverterTable, UnsupportedNode
from slipway.frontends.onnx.reader import array_of
from slipway.frontends.onnx.sparse import dense_array
from slipway.frontends.onnx.values import Value
from slipway.relay.analysis.size_values import SizeValues
from slipway.relay.dims import is_open
from slipway.relay.expr import Constant, Expr, Var
from slipway.relay.op_registry import const
from slipway.relay.types import TensorType

if TYPE_CHECKING:
    from slipway.relay.expr import ExprLike

Converter = Callable[["NodeView"], Any]

TABLE: ConverterTable[NodeView] = ConverterTable(
    "slipway.frontends.onnx.operators",
    (
        "activation", "arithmetic", "block_weights", "control", "conv", "create", "einsum",
        "indexing", "linalg", "matmul", "microsoft.arrays", "microsoft.attention",
        "microsoft.dynamic", "microsoft.fused", "microsoft.heads", "microsoft.layers",
        "microsoft.quantised",
        "ml.arithmetic", "ml.linear", "ml.support_vectors", "ml.tree_ensemble", "ml.trees", "norm",
        "pool", "pool_indices", "quant", "random", "recurrent", "reduce", "regions",
        "resize", "sequences", "shape", "signal", "training",
    ),
)  # fmt: skip
converter = TABLE.converter  # for operators of ai.onnx, or of a domain written in front
load_converters = TABLE.load


def bounding(value: Expr) -> str:
    """Return what an error says of an input whose elements are sizes."""
    if not isinstance(value, Var):
        return ""
    name = value.name_hint
    return f", or lie in a range, as in dims={{{name!r}: (1, 64)}} (--dim {name}=1..64)"


class DependsOnInputs(UnsupportedNode):
    """What must be constant is computed from the model's inputs."""


class NodeView:
    """One node as its converter sees it: inputs as expressions, attributes decoded."""

    def __init__(
        self,
        node: Any,
        inputs: Sequence[Value],
        opset: int,
        subgraph: Callable[..., list[Value]] | None = None,
        model_inputs: Collection[str] = (),
        sizes: SizeValues | None = None,
    ) -> None:
        self.kind: str = node.op_type
        self.name: str = node.name or (node.output[0] if node.output else node.op_type)
        self.inputs = list(inputs)
        self.outputs: list[str] = list(node.output)
        self.opset = opset
        self.attributes = {a.name: a for a in node.attribute}
        self.subgraph = subgraph
        self.model_inputs = model_inputs
        self.sizes = SizeValues() if sizes is None else sizes

    # -- attributes ----------------------------------------------------------------------------

    def attr(self, name: str, default: Any = None) -> Any:
        """Return attribute `name` (int, float, str, tuple, array, GraphProto) or `default`."""
        found = self.attributes.get(name)
        if found is None:
            return default
        match found.type:
            case 1:
                return found.f
            case 2:
                return found.i
            case 3:
                return found.s.decode()
            case 4:
                return array_of(found.t)
            case 5:
                return found.g
            case 6:
                return tuple(found.floats)
            case 7:
                return tuple(found.ints)
            case 8:
                return tuple(s.decode() for s in found.strings)
            case 11:
                return dense_array(found.sparse_tensor, self.name)
            case _:
                raise self.unsupported(f"attribute {name!r} has a type that is not served")

    # -- inputs ----------------------------------------------------------------------------------

    def has(self, index: int) -> bool:
        """Return whether the optional input is there."""
        return index < len(self.inputs) and self.inputs[index] is not None

    def optional(self, index: int) -> Expr | None:
        """Return the input, or None when it is left out.  Raises UnsupportedNode for no tensor."""
        found = self.inputs[index] if index < len(self.inputs) else None
        if found is not None and not isinstance(found, Expr):
            kind = type(found).__name__.lower()
            raise self.unsupported(f"input {index} is {kind}, where a tensor is needed")
        return found

    def input(self, index: int) -> Expr:
        """Return the input.  Raises UnsupportedNode when the file leaves a required one out."""
        found = self.optional(index)
        if found is None:
            raise self.unsupported(f"input {index} is missing")
        return found

    def type(self, index: int = 0) -> TensorType:
        """Return the type of the input."""
        return self.input(index).tensor_type

    def rank(self, index: int = 0) -> int:
        """Return the number of axes of the input."""
        return self.type(index).rank

    def constant(self, index: int, what: str) -> np.ndarray[Any, Any]:
        """Return the value of an input that must be known at compile time."""
        found = self.input(index)
        if not isinstance(found, Constant):
            raise DependsOnInputs(
                f"{what} (input {index}) depends on the model's inputs; it must be constant"
                + bounding(found)
            )
        return found.array

    def ints(self, index: int, what: str) -> tuple[int, ...]:
        """Return an input of integers: Python ints, and dimensions where sizes are open."""
        known = self.sizes.of(self.input(index))
        if known is not None:
            if not all(is_open(v) or v == int(v) for v in known.flat):
                raise self.unsupported(f"{what} (input {index}) is {list(known.flat)}: no integers")
            return tuple(v if is_open(v) else int(v) for v in known.flat)
        return tuple(int(v) for v in self.constant(index, what).reshape(-1))

    def ints_from(self, index: int, attribute: str, what: str) -> tuple[int, ...] | None:
        """Return integers from an input or (older opsets) an attribute; None if neither."""
        if self.has(index):
            return self.ints(index, what)
        found = self.attr(attribute)
        return None if found is None else tuple(int(v) for v in found)

    def choice(self, name: str, default: str, table: Mapping[str, Any]) -> Any:
        """Return what a table has for the text of an attribute."""
        value = self.attr(name, default)
        if value not in table:
            known = ", ".join(sorted(table))
            raise self.unsupported(f"its attribute {name!r} is {value!r}; there are {known}")
        return table[value]

    # -- results ---------------------------------------------------------------------------------

    def unsupported(self, why: str) -> UnsupportedNode:
        """Return the error to raise for a feature that is not supported."""
        return UnsupportedNode(why)

    def wide(self, index: int = 0) -> str:
        """Return the dtype to accumulate products in: float32 for halves, "" for the data's own."""
        return "float32" if self.type(index).dtype in ("float16", "bfloat16") else ""

    def narrow(self, value: Expr) -> Any:
        """Return a value accumulated in `wide` in the dtype of the first input."""
        return relay.cast(value, self.type().dtype) if self.wide() else value

    def like(self, value: ExprLike, index: int = 0) -> Constant:
        """Return a rank-0 constant with the dtype of the input."""
        made: Constant = const(value, self.type(index).dtype)
        return made
