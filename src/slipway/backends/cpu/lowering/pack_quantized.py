"""PackQuantizedWeights: integer products in the form of the target's multiply-add instruction.

    qnn.conv2d_nhwc(%x, w)   ->  qnn.contrib_conv2d_packed(%x, w packed)
                             ->  qnn.contrib_conv2d_winograd(%x, w transformed and packed)
    qnn.dense_packed(%x, w)  ->  qnn.contrib_conv2d_packed of a 1x1 window over rows
    qnn.depthwise_conv2d_nhwc(%x, w)  ->  qnn.contrib_depthwise_packed(%x, w packed)

for constant weights and output channels that fill whole vectors, those of each group.  The sums
are the same integers.  An instruction that takes unsigned data gets int8 as x + 128, and 128 times
the sum of the weights is taken from its result; one that takes signed data gets uint8 as x - 128.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from slipway.ir.hardware import HARDWARE, HardwareIntrinsic
from slipway.relay import op_registry
from slipway.relay.dims import usual
from slipway.relay.expr import Call, Constant, Expr, Function
from slipway.relay.op_registry import const, is_call_of
from slipway.relay.ops.nn.windows import conv_extents
from slipway.relay.ops.packed.qnn_depthwise_packed import PackedDepthwiseAttrs, together
from slipway.relay.ops.packed.qnn_depthwise_packed import pack_weights as pack_taps
from slipway.relay.ops.packed.qnn_packed import data_kind, pack_weights
from slipway.relay.ops.packed.qnn_winograd import MOST_CHANNELS, transform_weights
from slipway.relay.ops.qnn.conv import IntegerConvAttrs
from slipway.relay.ops.qnn.words import BYTES
from slipway.relay.visit import rewrite
from slipway.target.costs import ANY_CORE, Costs

if TYPE_CHECKING:
    from slipway.target import Target

Array = np.ndarray[Any, Any]

# Instructions in order of preference; the data is copied to the dtype of their operands, and those
# on data that is wider than their weights get it so (`_dense`).
# For windows over one channel, from wide vectors to narrow ones.
TAPS = (
    "x86.taps.vnni", "x86.taps.vnni.256", "x86.taps.avxvnni", "x86.taps.pmaddwd",
    "x86.taps.pmaddwd.sse", "neon.taps.smlal", "neon32.taps.vmlal", "wasm.taps.dot",
)  # fmt: skip
INSTRUCTIONS = (
    "neon.smmla", "neon.sdot", "neon.smull", "neon32.vmull", "x86.vnni", "x86.vnni.256",
    "x86.avxvnni", "x86.pmaddwd.bytes", "x86.pmaddwd", "x86.pmaddwd.sse", "rvv.vwmacc.s16",
    "rvv.vwmacc.s16.256", "hvx.vrmpy.u8s8", "wasm.dot.bytes", "wasm.dot",
)  # fmt: skip
PACKED = "qnn.contrib_conv2d_packed"
WINOGRAD = "qnn.contrib_conv2d_winograd"
WORDS_OF = ("uint8", "int16")  # what words of an image are read as, the latter taken apart
OFFSET = 128  # between signed and unsigned bytes


def packing_instructions(target: Target | None) -> list[HardwareIntrinsic]:
    """Return the instructions that integer products use on `target`, the best first."""
    if target is None or not target.is_by_llvm:
        return []
    found = [HARDWARE[n] for n in (*INSTRUCTIONS, *TAPS) if not HARDWARE[n].missing(target)]
    if target.arch.startswith("riscv"):  # one whose sums leave registers half empty is slower
        found = [i for i in found if i.c_size * 32 >= 2 * target.vector_bits]
    return found


def stored_as(instructions: list[HardwareIntrinsic]) -> str:
    """Return the dtype of bytes that the best instruction reads; "" where it takes wider ones."""
    dtype = instructions[0].a_dtype if instructions else ""
    return dtype if dtype in ("int8", "uint8") else ""


def pack_quantized(
    function: Function, instructions: list[HardwareIntrinsic], costs: Costs = ANY_CORE
) -> Function:
    """Return `function` with the weights of its integer products packed for `instructions`."""
    dots = [i for i in instructions if not i.taps]
    taps = [i for i in instructions if i.taps]
    rules = {
        "qnn.conv2d_nhwc": lambda call: _convolution(call, dots, costs),
        "qnn.dense_packed": lambda call: _dense(call, dots, costs),
        "qnn.depthwise_conv2d_nhwc": lambda call: _depthwise(call, taps),
    }

    def one(expr: Any) -> Expr | None:
        rule = rules.get(expr.op.name) if is_call_of(expr, *rules) else None
        return rule(expr) if rule is not None else None

    return rewrite(function, one)  # type: ignore[no-any-return]


def _convolution(call: Call, instructions: list[HardwareIntrinsic], costs: Costs) -> Expr | None:
    data, weight = call.args
    attrs: Any = call.attrs
    if not isinstance(weight, Constant) or not _is_bytes(data):
        return None
    made = _by_winograd(data, weight.array, attrs, instructions, call, costs)
    data = _widened(data, instructions, is_read_once=False)
    return made or _packed(data, weight.array, attrs, instructions, call.span, costs)


def _widened(data: Expr, instructions: list[HardwareIntrinsic], *, is_read_once: bool) -> Expr:
    """Return the data as wide as the best instruction has it, whose weights stay bytes.

    Weights that are read once are waited for; others only where widening them takes no time.
    """
    best = next(iter(instructions), None)
    if best is None or (best.a_dtype, best.b_dtype) != ("int16", "int8"):
        return data
    if not (is_read_once or best.widens_freely):
        return data
    return op_registry.make("cast")(data, best.a_dtype)  # type: ignore[no-any-return]


def _by_winograd(
    data: Expr,
    weight: Array,
    attrs: IntegerConvAttrs,
    instructions: list[HardwareIntrinsic],
    call: Call,
    costs: Costs,
) -> Expr | None:
    """Return the convolution by Winograd's algorithm where the best instruction takes int16.

    One for bytes does as much in a step as is saved.
    """
    entry = next((i for i in instructions if _suits(i, data, weight, attrs)), None)
    if entry is None or entry.a_dtype != "int16" or entry.depth != 2:
        return None
    kh, kw, channels, outputs = weight.shape
    _, height, width, _ = call.tensor_type.shape
    fits = (
        (kh, kw, *attrs.strides, *attrs.dilation, attrs.groups) == (3, 3, 1, 1, 1, 1, 1)
        and channels % costs.winograd_channels == 0
        and channels <= MOST_CHANNELS
        and outputs >= costs.winograd_channels
        and usual(height * width) >= costs.winograd_positions
    )
    if not fits:
        return None
    packed = pack_weights(transform_weights(weight), entry.columns, entry.depth, entry.b_dtype)
    return op_registry.get(WINOGRAD)(data, Constant(packed), attrs=attrs, span=call.span)


def _dense(call: Call, instructions: list[HardwareIntrinsic], costs: Costs) -> Expr | None:
    """Rows of the data as positions of an image."""
    data, weight = call.args
    attrs: Any = call.attrs
    if not isinstance(weight, Constant) or not _is_bytes(data):
        return None
    shape = data.tensor_type.shape
    depth, units = weight.array.shape
    rows = data.tensor_type.size // max(depth, 1)
    make: Any = op_registry.make("reshape")
    image = _widened(make(data, (1, rows, 1, depth)), instructions, is_read_once=rows == 1)
    made = _packed(
        image, weight.array[None, None], IntegerConvAttrs(out_dtype=attrs.out_dtype),
        instructions, call.span, costs,
    )  # fmt: skip
    return made and make(made, (*shape[:-1], units))


def _packed(
    data: Any,
    weight: Array,
    attrs: Any,
    instructions: list[HardwareIntrinsic],
    span: Any,
    costs: Costs,
) -> Expr | None:
    entry = next(
        (
            i
            for i in instructions
            if _suits(i, data, weight, attrs) and _fills(i, data, weight, attrs, costs)
        ),
        None,
    )
    if entry is None:
        return None
    packed = Constant(pack_weights(weight, _columns(entry, weight), entry.depth, entry.b_dtype))
    whole = packed.array.shape[3] * entry.depth == BYTES
    if whole and entry.a_dtype in WORDS_OF and _is_image(data):
        data = op_registry.make("qnn.contrib_words")(data.args[0])
        return op_registry.get(PACKED)(data, packed, attrs=attrs, span=span)
    totals = weight.astype(np.int64).sum(axis=(0, 1, 2))
    return _sums(PACKED, data, packed, attrs, entry, totals, span)


def _fills(
    entry: HardwareIntrinsic, data: Expr, weight: Array, attrs: IntegerConvAttrs, costs: Costs
) -> bool:
    """Return whether there are positions and channels enough for an instruction on matrices.

    In groups each would read channels of its own.
    """
    if entry.rows == 0:
        return True
    if attrs.groups > 1:
        return False
    height, width = conv_extents(
        data.tensor_type.shape[1:3], weight.shape[:2], attrs.strides, attrs.padding, attrs.dilation
    )
    return usual(height * width) >= costs.packed_rows and weight.shape[3] % 4 == 0


def _columns(entry: HardwareIntrinsic, weight: Array) -> int:
    """Return how many channels to pack together: several pairs for a product of matrices."""
    if entry.rows == 0:
        return entry.columns
    return next(columns for columns in (16, 8, 4) if weight.shape[3] % columns == 0)


def _is_image(data: Any) -> bool:
    """Return whether unsigned data has a word of channels at most, brought to the last axis."""
    return (
        is_call_of(data, "transpose")
        and data.tensor_type.dtype == "uint8"
        and data.tensor_type.shape[-1] <= BYTES
        and [a % 4 for a in data.attrs.axes] == [0, 2, 3, 1]
    )


def _sums(
    name: str,
    data: Expr,
    weight: Constant,
    attrs: IntegerConvAttrs,
    entry: HardwareIntrinsic,
    totals: Array,
    span: Any,
) -> Expr:
    """Return the call; with data moved to the other sign where it has to be.

    `totals` are the sums of the weights: so many times the move is in the result.
    """
    definition: Any = op_registry.get(name)
    if data_kind(data.tensor_type.dtype, entry.b_dtype) == entry.a_dtype:
        return definition(data, weight, attrs=attrs, span=span)  # type: ignore[no-any-return]
    move = _move(data.tensor_type.dtype, entry)
    cast, add = (op_registry.make(n) for n in ("cast", "add"))
    moved = cast(add(cast(data, "int16"), const(move, "int16")), entry.a_dtype)
    attrs = attrs.replace(pad_value=attrs.pad_value + move)
    sums = definition(moved, weight, attrs=attrs, span=span)
    return op_registry.make("subtract")(sums, const((move * totals).astype(np.int32)))  # type: ignore[no-any-return]


def _move(given: str, entry: HardwareIntrinsic) -> int:
    """Return what to add to bytes of dtype `given` for an instruction on the other sign; else 0."""
    if (given, entry.a_dtype) == ("int8", "uint8"):
        return OFFSET
    return -OFFSET if (given, entry.a_dtype) == ("uint8", "int8") else 0


def _is_bytes(data: Expr) -> bool:
    return data.tensor_type.dtype in ("int8", "uint8")


def _depthwise(call: Call, instructions: list[HardwareIntrinsic]) -> Expr | None:
    data, weight = call.args
    attrs: Any = call.attrs
    if not isinstance(weight, Constant) or not _is_bytes(data):
        return None
    kernel = weight.array
    if kernel.shape[1] == 1 < kernel.shape[0] and data.tensor_type.shape[2] == 1:
        return _column(call, instructions)
    channels, window, stride = kernel.shape[2], kernel.shape[1], attrs.strides[1]
    if channels != data.tensor_type.shape[3] or tuple(attrs.dilation) != (1, 1) or window == 1:
        return None
    fits = (i for i in instructions if i.columns <= channels)
    full = kernel[:, :, None]
    entry = next((i for i in fits if _suits(i, data, full, attrs, whole=False)), None)
    if entry is None:
        return None
    most = together(window, stride, entry.depth)
    width = call.tensor_type.shape[2]
    results = max(r for r in range(1, most + 1) if width % r == 0)
    packed = Constant(pack_taps(kernel.astype(entry.b_dtype), stride, entry.depth, results))
    geometry = PackedDepthwiseAttrs(
        attrs.strides, attrs.padding, (1, 1), 1, attrs.pad_value, attrs.out_dtype, window
    )
    totals = kernel.astype(np.int64).sum(axis=(0, 1))
    name = "qnn.contrib_depthwise_packed"
    return _sums(name, data, packed, geometry, entry, totals, call.span)


def _column(call: Call, instructions: list[HardwareIntrinsic]) -> Expr | None:
    """Return windows over an image of one column as those over an image of one row."""
    data, weight = call.args
    attrs: Any = call.attrs
    assert isinstance(weight, Constant)
    if any(attrs.padding[1::2]) or attrs.strides[1] != 1:
        return None
    make: Any = op_registry.make
    batch, height, _, channels = data.tensor_type.shape
    top, _, bottom, _ = attrs.padding
    across = attrs.replace(
        strides=(1, attrs.strides[0]),
        padding=(0, top, 0, bottom),
        dilation=(1, attrs.dilation[0]),
    )
    row = make("reshape")(data, (batch, 1, height, channels))
    transposed = Constant(np.asarray(weight.array.swapaxes(0, 1), order="C"))
    with op_registry.span(call.span):
        made = op_registry.get("qnn.depthwise_conv2d_nhwc")(row, transposed, attrs=across)
        packed = _depthwise(made, instructions)
        return packed and make("reshape")(packed, call.tensor_type.shape)


def _suits(
    entry: HardwareIntrinsic, data: Expr, weight: Array, attrs: Any, whole: bool = True
) -> bool:
    """Return whether an instruction can sum these products."""
    given = data.tensor_type.dtype
    move = _move(given, entry)
    kind = entry.a_dtype if move else data_kind(given, entry.b_dtype)
    bounds = np.iinfo(kind)
    return (
        kind == entry.a_dtype
        and attrs.out_dtype == entry.c_dtype
        and (not whole or weight.shape[3] % (attrs.groups * entry.columns) == 0)
        and (attrs.groups == 1 or not whole or weight.shape[2] % entry.depth == 0)
        and np.can_cast(weight.dtype, entry.b_dtype)
        and (entry.min_b is None or weight.min() >= entry.min_b)
        and bounds.min <= attrs.pad_value + move <= bounds.max
    )
