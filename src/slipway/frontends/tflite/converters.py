"""The table of TFLite operators, and what a converter sees of a node.

A converter is a function ``f(node: NodeView) -> Expr | TupleWrapper | list[Expr]`` decorated with
`converter`; families of converters live in one file each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from slipway.errors import TypeInferenceError
from slipway.frontends.converter_table import ConverterTable, UnsupportedNode
from slipway.frontends.open_padding import same_total
from slipway.frontends.tflite.file_model import Array, FileTensor, Operator, Quantization, SubGraph
from slipway.frontends.tflite.schema import ACTIVATIONS, DTYPES, PADDINGS
from slipway.relay.analysis.size_values import SizeValues
from slipway.relay.expr import Constant, Expr, Var
from slipway.relay.ops.checks import broadcast_shapes
from slipway.relay.types import TensorType

Converter = Callable[["NodeView"], Any]

# The ratio of two scales must be a number of float32, and no quantiser comes near these.
SMALLEST_SCALE = 2.0**-62
_SIGNAL = (
    "it is of the audio front end of TensorFlow Lite Micro, which computes features before a "
    "model; compute them on the device, and import the model behind them"
)
REFUSED = {  # known, and nothing that a converter could be written for: why
    "CUSTOM:ethos-u": "it is a program that Vela compiled for an Ethos-U processor; import the "
    "model from before that",
    "CUSTOM:TFLM_DECODE": "it unpacks weights that were compressed for TensorFlow Lite Micro; "
    "import the model from before the compression",
    **dict.fromkeys(
        (
            "CUSTOM:SignalDelay", "CUSTOM:SignalEnergy", "CUSTOM:SignalFftAutoScale",
            "CUSTOM:SignalFilterBank", "CUSTOM:SignalFilterBankLog",
            "CUSTOM:SignalFilterBankSpectralSubtraction", "CUSTOM:SignalFilterBankSquareRoot",
            "CUSTOM:SignalFramer", "CUSTOM:SignalIrfft", "CUSTOM:SignalOverlapAdd",
            "CUSTOM:SignalPCAN", "CUSTOM:SignalRfft", "CUSTOM:SignalStacker",
            "CUSTOM:SignalWindow",
        ),
        _SIGNAL,
    ),
}  # fmt: skip

TABLE: ConverterTable[NodeView] = ConverterTable(
    "slipway.frontends.tflite.operators",
    (
        "activation", "arithmetic", "control", "conv", "convert", "detection", "elementary",
        "found", "fully_connected", "lstm", "matmul", "mediapipe", "pool", "reduce", "resize",
        "rnn", "scattered", "shape", "spectrum", "suppression", "svdf", "volume",
    ),
)  # fmt: skip
converter = TABLE.converter
load_converters = TABLE.load


class Program:
    """What operators reach beyond their node: other subgraphs, and the model's variables.

    `variables` holds the present value of each variable by name; `first` its value when the
    function begins, a parameter; `initial` what the model gives it before the first run.  `sizes`
    knows what is computed from open sizes.
    """

    def __init__(self) -> None:
        self.variables: dict[str, Expr] = {}
        self.first: dict[str, Var] = {}
        self.initial: dict[str, Array] = {}
        self.sizes = SizeValues()
        self.depth = 0  # of subgraphs being converted
        self.found = 0  # sizes that values decide

    def call(self, index: int, inputs: Sequence[Expr]) -> list[Expr]:
        """Convert subgraph `index` on these inputs and return its outputs."""
        raise NotImplementedError  # the importer's own has it

    def variable(self, name: str, kind: TensorType) -> Expr:
        """Return the present value of a variable of this type."""
        if name not in self.variables:
            made = Var(name, kind)
            self.first[name] = self.variables[name] = made
        return self.variables[name]


class NodeView:
    """One operator as its converter sees it: inputs as expressions, options by name."""

    def __init__(
        self,
        operator: Operator,
        graph: SubGraph,
        values: Mapping[int, Expr],
        name: str,
        rounds_once: bool = False,
        program: Program | None = None,
    ) -> None:
        self.kind = operator.kind
        self.program = program or Program()
        self.name = name
        self.operator = operator
        self.graph = graph
        self.rounds_once = rounds_once  # matrix products as LiteRT has them
        self._values = values

    # -- options -------------------------------------------------------------------------------

    def option(self, name: str, default: Any = 0) -> Any:
        """Return the option `name`, or `default` when the operator has no such table."""
        return self.operator.options.get(name, default)

    @property
    def activation(self) -> str:
        """The fused activation: "none", "relu", ..."""
        number = self.option("fused_activation_function")
        if not 0 <= number < len(ACTIVATIONS):
            raise self.unsupported(f"the fused activation {number} is not known")
        return ACTIVATIONS[number]

    @property
    def padding(self) -> str:
        """The padding rule, "same" or "valid"."""
        number = self.option("padding")
        if not 0 <= number < len(PADDINGS):
            raise self.unsupported(f"the padding {number} is not known")
        return PADDINGS[number]

    # -- tensors -------------------------------------------------------------------------------

    def has(self, position: int) -> bool:
        """Return whether the input at `position` is given."""
        return position < len(self.operator.inputs) and self.operator.inputs[position] >= 0

    def tensor(self, position: int = 0) -> FileTensor:
        """Return the description of an input."""
        if not self.has(position):
            raise self.unsupported(f"it has no input {position}")
        return self.graph.tensors[self.operator.inputs[position]]

    def out(self, position: int = 0) -> FileTensor:
        """Return the description of an output."""
        if position >= len(self.operator.outputs):
            raise self.unsupported(f"it has no output {position}")
        return self.graph.tensors[self.operator.outputs[position]]

    @property
    def inputs(self) -> list[Expr]:
        """All given inputs."""
        return [self[i] for i in range(len(self.operator.inputs)) if self.has(i)]

    def __getitem__(self, position: int) -> Expr:
        """Return an input as an expression."""
        return self._values[self.tensor(position).index]

    def shape(self, position: int = 0) -> tuple[int, ...]:
        """Return the shape of an input."""
        return self[position].tensor_type.shape

    def constant(self, position: int) -> Array:
        """Return the value of an input that must be constant."""
        found = self[position]
        if not isinstance(found, Constant):
            name = self.tensor(position).name
            why = "computed"
            if isinstance(found, Var) and self.tensor(position).index in self.graph.inputs:
                why = (
                    f"an input of the model: bind it with constants={{{name!r}: ...}} (--bind "
                    f"{name}=... on the command line)"
                )
            raise self.unsupported(f"its input {name!r} must be constant, but it is {why}")
        return found.array

    def integers(self, position: int) -> tuple[int, ...]:
        """Return a constant input as a tuple of integers, open sizes being formulas among them."""
        known = self.known_integers(position)
        return tuple(int(v) for v in self.constant(position)) if known is None else known

    def known_integers(self, position: int) -> tuple[int, ...] | None:
        """Return what `integers` does; None where an input's values decide."""
        if not isinstance(self[position], Constant):
            found = self.program.sizes.of(self[position])
            return None if found is None else tuple(found.flat)
        values = self.constant(position).reshape(-1)
        if values.dtype.kind not in "iub":
            raise self.unsupported(
                f"its input {self.tensor(position).name!r} holds {values.dtype} where integers go"
            )
        return tuple(int(v) for v in values)

    def integer(self, position: int) -> int:
        """Return a constant input that is one integer."""
        values = self.integers(position)
        if len(values) != 1:
            raise self.unsupported(
                f"its input {self.tensor(position).name!r} holds {len(values)} integers, not one"
            )
        return values[0]

    def broadcast(self, *shapes: Sequence[int]) -> tuple[int, ...]:
        """Return the shape that several broadcast to."""
        found: tuple[int, ...] = ()
        try:
            for shape in shapes:
                found = broadcast_shapes(found, shape, "shape")
        except TypeInferenceError:
            listed = " and ".join(str(tuple(s)) for s in shapes)
            raise self.unsupported(f"{listed} do not broadcast to one shape") from None
        return found

    def blocks(self, sizes: Sequence[int], extents: Sequence[int]) -> None:
        """Each extent must be cut into blocks of its size without a rest."""
        if any(size < 1 or extent % size for size, extent in zip(sizes, extents, strict=False)):
            raise self.unsupported(f"blocks of {tuple(sizes)} do not divide {tuple(extents)}")

    def quantization(self, position: int = 0) -> Quantization:
        """Return the per-tensor quantisation of an input."""
        return self._per_tensor(self.tensor(position))

    def out_quantization(self, position: int = 0) -> Quantization:
        """Return the per-tensor quantisation of an output."""
        return self._per_tensor(self.out(position))

    def _per_tensor(self, tensor: FileTensor) -> Quantization:
        found = tensor.quantization
        if found is None:
            raise self.unsupported(f"the {tensor.dtype} tensor {tensor.name!r} has no scale")
        if found.scales.size != 1:
            raise self.unsupported(f"the tensor {tensor.name!r} has a scale for each channel")
        if not SMALLEST_SCALE <= found.scale <= 1 / SMALLEST_SCALE:
            raise self.unsupported(f"the scale of the tensor {tensor.name!r} is {found.scale:g}")
        return found

    @property
    def is_float(self) -> bool:
        """Whether the first input holds floating point numbers."""
        return self[0].tensor_type.dtype in ("float32", "float64", "float16")

    def need_dtype(self, *dtypes: str, position: int = 0) -> None:
        """The input at `position` must have one of `dtypes`."""
        given = self[position].tensor_type.dtype
        if given not in dtypes:
            raise self.unsupported(f"{given} data is not supported (only {', '.join(dtypes)})")

    def unsupported(self, problem: str) -> UnsupportedNode:
        """Return the error that says what of this node is not supported."""
        return UnsupportedNode(problem)


def same_padding(
    size: Sequence[int], kernel: Sequence[int], strides: Sequence[int], dilation: Sequence[int]
) -> tuple[int, ...]:
    """Return (top, left, bottom, right) so that the output has ceil(size / stride) positions."""
    before, after = [], []
    for extent, window, stride, step in zip(size, kernel, strides, dilation, strict=True):
        total = same_total(extent, window, stride, step)
        before.append(total // 2)
        after.append(total - total // 2)
    return (*before, *after)


def array_constant(array: Any, dtype: str) -> Constant:
    """Return a Constant of `array` in `dtype`."""
    if dtype not in DTYPES.values():
        raise UnsupportedNode(f"tensors of type {dtype} are not supported")
    return Constant(np.array(array, dtype, order="C"))
