"""What each step of a quantised trace computes, with plain tensors in place of quantised ones.

A quantised tensor is a `QView`: integers with a scale and a zero point.  An operator on such is
dequantise, compute, quantise, which the compiler turns into integer arithmetic; what only moves
elements moves the integers.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

from slipway.errors import ModelError

# Operators of ATen that move elements, and do the same to the integers.
_MOVES = (
    "flatten", "reshape", "view", "permute", "transpose", "contiguous", "unsqueeze", "squeeze",
    "slice", "select", "chunk", "split", "split_with_sizes", "clone", "detach", "unflatten", "t",
    "expand", "narrow", "index_select", "alias", "reshape_as", "channel_shuffle", "pixel_shuffle",
    "pixel_unshuffle", "flip", "roll", "movedim", "numpy_T", "unbind", "repeat",
)  # fmt: skip
# Operators whose result has a scale and a zero point of its own: 1 / n, and (uint8, int8).
_FIXED = {"sigmoid": (256, (0, -128)), "hardsigmoid": (256, (0, -128)), "tanh": (128, (128, 0))}
# TraceSteps that give the number in a tensor.
OF_ONE = (
    "prim::NumToTensor", "aten::ScalarImplicit", "aten::IntImplicit", "aten::FloatImplicit",
    "aten::Int", "aten::Float",
)  # fmt: skip
_OF_NUMBERS: dict[str, Callable[..., Any]] = {
    "aten::add": lambda a, b, *_: a + b, "aten::sub": lambda a, b, *_: a - b,
    "aten::mul": lambda a, b: a * b, "aten::floor_divide": lambda a, b: a // b,
    "aten::floordiv": lambda a, b: a // b, "aten::remainder": lambda a, b: a % b,
    "aten::div": lambda a, b, *_: a / b, "aten::neg": lambda a: -a,
    "aten::eq": operator.eq, "aten::ne": operator.ne, "aten::lt": operator.lt,
    "aten::le": operator.le, "aten::gt": operator.gt, "aten::ge": operator.ge,
    "aten::__not__": operator.not_, "aten::__is__": operator.is_,
    "aten::__isnot__": operator.is_not,
    "aten::__and__": operator.and_, "aten::__or__": operator.or_,
    "aten::len": len, "aten::__getitem__": operator.getitem,
}  # fmt: skip


@dataclass(frozen=True)
class QView:
    """The tensor ``(ints - zero) * scale``; with an axis, a scale for each of its elements."""

    ints: Any
    scale: Any
    zero: Any
    axis: int | None = None

    @staticmethod
    def of(torch: ModuleType, value: Any) -> QView:
        """Return what a quantised tensor holds."""
        ints = value.int_repr()
        if value.qscheme() in (torch.per_tensor_affine, torch.per_tensor_symmetric):
            return QView(ints, float(value.q_scale()), int(value.q_zero_point()))
        if value.q_per_channel_zero_points().is_floating_point():
            raise ModelError("weights with zero points that are floats are not served")
        scales = value.q_per_channel_scales().float()
        zeros = value.q_per_channel_zero_points()
        return QView(ints, scales, zeros, int(value.q_per_channel_axis()))

    def with_ints(self, ints: Any) -> QView:
        """Return other integers of the same scale."""
        return replace(self, ints=ints)


@dataclass(frozen=True)
class Packed:
    """The weights of a layer as an engine packs them, and the numbers that go with them."""

    weight: QView
    bias: Any
    numbers: dict[str, Any]

    def with_ints(self, ints: Any) -> Packed:
        """Return the same layer with its weights as another tensor."""
        return replace(self, weight=self.weight.with_ints(ints))


class TraceSteps:
    """Runs the steps of a trace; `torch` is the package."""

    def __init__(self, package: ModuleType) -> None:
        from torch.ao.quantization.fx import _decomposed  # noqa: F401 - it defines the operators

        self.torch = package
        self.q = package.ops.quantized_decomposed

    # -- quantised tensors -----------------------------------------------------------------------

    def limits(self, dtype: object) -> tuple[int, int]:
        """Return the minimum and the maximum of a dtype."""
        info = self.torch.iinfo(dtype)
        return info.min, info.max

    def floats(self, value: Any) -> Any:
        """Return a quantised tensor as floats, another value as it is."""
        if isinstance(value, (list, tuple)):
            return type(value)(self.floats(v) for v in value)
        if not isinstance(value, QView):
            return value
        low, high = self.limits(value.ints.dtype)
        if value.axis is None:
            return self.q.dequantize_per_tensor(
                value.ints, value.scale, value.zero, low, high, value.ints.dtype
            )
        return self.q.dequantize_per_channel(
            value.ints, value.scale, value.zero, value.axis, low, high, value.ints.dtype
        )

    def quantised(self, value: Any, scale: float, zero: int, dtype: object) -> QView:
        """Return floats as integers."""
        low, high = self.limits(dtype)
        ints = self.q.quantize_per_tensor(value, float(scale), int(zero), low, high, dtype)
        return QView(ints, float(scale), int(zero))

    def like(self, value: Any, other: QView) -> QView:
        """Return floats as integers of another tensor's scale."""
        return self.quantised(value, other.scale, other.zero, other.ints.dtype)

    def dtype(self, number: object) -> Any:
        """Return the integers behind a quantised dtype, which a trace writes as a number."""
        names = {12: "int8", 13: "uint8", 14: "int32"}
        known = {self.torch.qint8: "int8", self.torch.quint8: "uint8", self.torch.qint32: "int32"}
        name = names.get(number) if isinstance(number, int) else known.get(number)
        if name is None:
            raise ModelError(f"quantised tensors of {number} are not served: 8 bits and qint32 are")
        return getattr(self.torch, name)

    # -- packed weights --------------------------------------------------------------------------

    def unpacked(self, packed: Any) -> Packed:
        """Return the weights of a layer."""
        ops = self.torch.ops.quantized
        kind = str(packed._type().name()) if hasattr(packed, "_type") else ""
        if "Linear" in kind:
            weight, bias = ops.linear_unpack(packed)
            return Packed(QView.of(self.torch, weight), bias, {})
        if "Conv" not in kind:
            raise ModelError(f"weights packed as {kind or type(packed).__name__} are not served")
        rank = 3 if "Conv3d" in kind else 2
        transposed = bool(getattr(ops, f"conv{rank}d_transpose")(packed))
        name = f"conv_transpose{rank}d" if transposed else f"conv{rank}d"
        weight, bias = getattr(ops, f"{name}_unpack")(packed)
        numbers = {
            part: getattr(ops, f"{name}_{part}")(packed)
            for part in ("stride", "padding", "dilation", "groups")
        }
        numbers["transposed"] = transposed
        if transposed:
            numbers["output_padding"] = getattr(ops, f"{name}_output_padding")(packed)
        return Packed(QView.of(self.torch, weight), bias, numbers)

    def bias(self, packed: Packed, x: QView) -> Any:
        """Return the bias as the engines take it: 32-bit integers of scale input * weight."""
        if packed.bias is None:
            return None
        torch = self.torch
        bias = packed.bias.detach().float()
        scale = torch.as_tensor(packed.weight.scale, dtype=torch.float32) * x.scale
        scales = scale.expand(bias.shape[0]).contiguous()
        low, high = self.limits(torch.int32)
        ints = torch.round(bias.double() / scales.double()).clamp(low, high).to(torch.int32)
        zeros = torch.zeros_like(ints)
        return self.floats(QView(ints, scales, zeros, 0))

    # -- steps -----------------------------------------------------------------------------------

    def knows(self, kind: str) -> bool:
        """Return whether steps of a kind can be run."""
        space, _, name = kind.partition("::")
        if space == "quantized":
            return name in _QUANTISED
        if space == "prim":
            return kind in OF_ONE or name in _PRIM
        return space == "aten"

    def run(self, node: Any, given: list[Any]) -> Any:
        """Return what a step makes of its inputs."""
        kind = node.kind()
        space, _, name = kind.partition("::")
        if kind in OF_ONE and not isinstance(given[0], self.torch.Tensor):
            return given[0]
        if (space == "prim" and name not in _PRIM) or (
            space == "quantized" and name not in _QUANTISED
        ):
            raise ModelError(f"the quantised model has the step {kind}, which is not served")
        if space == "prim":
            return _PRIM[name](given)
        if space == "quantized":
            return _QUANTISED[name](self, *given)
        if kind in _OF_NUMBERS and not any(
            isinstance(g, (QView, self.torch.Tensor)) for g in given
        ):
            return _OF_NUMBERS[kind](*given)
        first = given[0] if given else None
        if isinstance(first, (list, tuple)) and first:
            first = first[0]
        if name in ("quantize_per_tensor", "quantize_per_channel"):
            return self._quantize(name, given)
        if not isinstance(first, QView):
            return self._aten(node, given)
        return self._on_view(node, name.removesuffix("_"), first, given)

    def _aten(self, node: Any, given: list[Any]) -> Any:
        """Return what an operator of ATen makes of its inputs."""
        schema = self.torch._C.parse_schema(node.schema())
        packet = getattr(self.torch.ops.aten, node.kind().partition("::")[2])
        call = getattr(packet, schema.overload_name or "default")
        pairs = list(zip(schema.arguments, given, strict=True))
        named = {a.name: v for a, v in pairs if a.kwarg_only}
        return call(*(v for a, v in pairs if not a.kwarg_only), **named)

    def _quantize(self, name: str, given: list[Any]) -> QView:
        if name == "quantize_per_tensor":
            value, scale, zero, kind = given
            return self.quantised(value, scale, zero, self.dtype(kind))
        value, scales, zeros, axis, kind = given
        dtype = self.dtype(kind)
        low, high = self.limits(dtype)
        made = self.q.quantize_per_channel(value, scales, zeros, axis, low, high, dtype)
        return QView(made, scales, zeros, axis)

    def _on_view(self, node: Any, name: str, first: QView, given: list[Any]) -> Any:
        """Return what an operator of ATen makes of quantised inputs."""
        if name == "dequantize":
            return self.floats(given[0])
        if name == "int_repr":
            return first.ints
        if name in ("q_scale", "q_zero_point"):
            return first.scale if name == "q_scale" else first.zero
        if name == "size":
            return first.ints.size(*given[1:])
        if name in ("dim", "numel"):
            return getattr(first.ints, name)()
        if name == "dropout":
            return first
        if name in _MOVES and first.axis is None:
            made = self._aten(node, [g.ints if isinstance(g, QView) else g for g in given])
            if isinstance(made, (list, tuple)):
                return [first.with_ints(one) for one in made]
            return first.with_ints(made)
        made = self._aten(node, [self.floats(g) for g in given])
        if not isinstance(made, self.torch.Tensor) or not made.is_floating_point():
            return made
        if name in _FIXED:
            steps, zeros = _FIXED[name]
            signed = first.ints.dtype != self.torch.uint8
            return self.quantised(made, 1 / steps, zeros[signed], first.ints.dtype)
        return self.like(made, first)

    # -- operators of the namespace quantized ----------------------------------------------------

    def layer(
        self, x: QView, packed: Packed, scale: float, zero: int, after: Callable[[Any], Any] | None
    ) -> QView:
        """Return a convolution or a linear layer."""
        made = self.layer_floats(self.floats(x), packed, self.bias(packed, x))
        return self.quantised(made if after is None else after(made), scale, zero, x.ints.dtype)

    def layer_floats(self, x: Any, packed: Packed, bias: Any) -> Any:
        """Return a convolution or a linear layer of floats."""
        aten, weight, n = self.torch.ops.aten, self.floats(packed.weight), packed.numbers
        if not n:
            return aten.linear(x, weight, bias)
        rank = x.dim() - 2
        stride, padding, dilation = (
            list(n[part])[-rank:] for part in ("stride", "padding", "dilation")
        )
        if weight.dim() - 2 > rank:  # a convolution of one dimension is packed as one of two
            weight = weight.squeeze(2)
        if n["transposed"]:
            out = list(n["output_padding"])[-rank:]
            return aten.convolution(
                x, weight, bias, stride, padding, dilation, True, out, n["groups"]
            )
        return aten.convolution(
            x, weight, bias, stride, padding, dilation, False, [0] * rank, n["groups"]
        )

    def dynamic(self, x: Any, packed: Packed, relu: bool, reduce_range: bool = False) -> Any:
        """Return a linear layer whose input is quantised by its own minimum and maximum."""
        torch = self.torch
        steps = 127.0 if reduce_range else 255.0
        low = torch.clamp(torch.amin(x), max=0.0)
        high = torch.clamp(torch.amax(x), min=0.0)
        scale = torch.clamp((high - low) / steps, min=1e-7)
        zero = torch.clamp(torch.round(0.0 - low / scale), 0.0, steps)
        ints = torch.clamp(torch.round(x / scale) + zero, 0.0, steps)
        made = self.layer_floats((ints - zero) * scale, packed, packed.bias)
        return torch.relu(made) if relu else made

    def pair(self, name: str, a: Any, b: Any, scale: float, zero: int, relu: bool = False) -> QView:
        """Return an operator of two tensors."""
        made = getattr(self.torch.ops.aten, name)(self.floats(a), self.floats(b))
        return self.quantised(self.torch.relu(made) if relu else made, scale, zero, a.ints.dtype)

    def scaled(self, x: QView, factor: float) -> QView:
        """Return a tensor times a number: another scale."""
        factor = float(factor)
        if factor > 0:
            return replace(x, scale=x.scale * factor)
        low, high = self.limits(x.ints.dtype)
        if factor == 0:
            return self.quantised(self.floats(x) * 0.0, 1.0, 0, x.ints.dtype)
        flipped = (low + high - x.ints.to(self.torch.int32)).to(x.ints.dtype)
        return QView(flipped, x.scale * -factor, low + high - x.zero)

    def shifted(self, x: QView, number: float) -> QView:
        """Return a tensor plus a number: another zero point, where it is in range."""
        low, high = self.limits(x.ints.dtype)
        amount = round(float(number) / x.scale)
        begin, end = low - x.zero, high - x.zero
        if low <= x.zero - amount <= high:
            return replace(x, zero=x.zero - amount)
        if low > x.zero - amount:
            scale, zero = x.scale * (end + amount) / (high - low), low
        else:
            scale, zero = x.scale * -(begin + amount) / (high - low), high
        return self.quantised(self.floats(x) + amount * x.scale, scale, zero, x.ints.dtype)


def _layer(name: str, after: str | None = None) -> None:
    def run(
        steps: TraceSteps, x: QView, packed: Packed, scale: float, zero: int, *extra: Any
    ) -> QView:
        functional = steps.torch.nn.functional
        wanted = {
            None: None, "relu": steps.torch.relu, "tanh": steps.torch.tanh,
            "leaky_relu": lambda v: functional.leaky_relu(v, *extra),
        }[after]  # fmt: skip
        return steps.layer(x, packed, scale, zero, wanted)

    _QUANTISED[name] = run


def _two(name: str, relu: bool) -> None:
    def run(steps: TraceSteps, a: Any, b: Any, scale: float, zero: int) -> QView:
        return steps.pair(name, a, b, scale, zero, relu)

    _QUANTISED[f"{name}_relu" if relu else name] = run


def _one(name: str, compute: Callable[..., Any]) -> None:
    """Enter an operator of a tensor, further arguments, and the scale and zero point last."""

    def run(steps: TraceSteps, x: QView, *rest: Any) -> QView:
        *others, scale, zero = rest
        made = compute(steps.torch, steps.floats(x), *map(steps.floats, others))
        return steps.quantised(made, scale, zero, x.ints.dtype)

    _QUANTISED[name] = run


def _concatenated(
    steps: TraceSteps,
    parts: Sequence[QView],
    dim: int,
    scale: float | None,
    zero: int | None,
    relu: bool,
) -> QView:
    first = parts[0]
    scale = first.scale if scale is None else scale
    zero = first.zero if zero is None else zero
    made = steps.torch.cat(steps.floats(list(parts)), dim)
    return steps.quantised(steps.torch.relu(made) if relu else made, scale, zero, first.ints.dtype)


_QUANTISED: dict[str, Callable[..., Any]] = {}
for _rank in ("conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "linear"):
    _layer(_rank)
for _rank in ("conv1d", "conv2d", "conv3d", "linear"):
    _layer(f"{_rank}_relu", "relu")
_layer("linear_leaky_relu", "leaky_relu")
_layer("linear_tanh", "tanh")
for _name in ("add", "mul", "matmul"):
    _two(_name, relu=False)
for _name in ("add", "mul"):
    _two(_name, relu=True)
_QUANTISED |= {
    "linear_dynamic": lambda s, x, p, *reduced: s.dynamic(x, p, False, *reduced),
    "linear_relu_dynamic": lambda s, x, p, *reduced: s.dynamic(x, p, True, *reduced),
    "mul_scalar": lambda s, x, c: s.scaled(x, c),
    "add_scalar": lambda s, x, c: s.shifted(x, c),
    "cat": lambda s, xs, d, scale, zero: _concatenated(s, xs, d, scale, zero, False),
    "cat_relu": lambda s, xs, d, scale, zero: _concatenated(s, xs, d, scale, zero, True),
    "relu6": lambda s, x, *_: s.like(s.torch.clamp(s.floats(x), 0.0, 6.0), x),
    "dropout": lambda _s, x, *_: x,
}
_one("hardswish", lambda torch, x: torch.nn.functional.hardswish(x))
_one("sigmoid", lambda torch, x: torch.sigmoid(x))
_one("softmax", lambda torch, x, dim: torch.softmax(x, dim))
_one("prelu", lambda torch, x, weight: torch.nn.functional.prelu(x, weight))
_one("layer_norm", lambda torch, x, *a: torch.nn.functional.layer_norm(x, *a))
_one("group_norm", lambda torch, x, *a: torch.nn.functional.group_norm(x, *a))
_one("instance_norm", lambda torch, x, w, b, eps: torch.nn.functional.instance_norm(
    x, None, None, w, b, eps=eps))  # fmt: skip
for _name in ("batch_norm", "batch_norm1d", "batch_norm2d", "batch_norm3d"):
    _one(_name, lambda torch, x, w, b, m, v, eps: torch.nn.functional.batch_norm(
        x, m, v, w, b, eps=eps))  # fmt: skip
    _one(f"{_name}_relu", lambda torch, x, w, b, m, v, eps: torch.relu(
        torch.nn.functional.batch_norm(x, m, v, w, b, eps=eps)))  # fmt: skip
_QUANTISED["leaky_relu"] = lambda s, x, slope, _inplace, scale, zero: s.quantised(
    s.torch.nn.functional.leaky_relu(s.floats(x), slope), scale, zero, x.ints.dtype
)
_QUANTISED["elu"] = lambda s, x, scale, zero, alpha=1.0, *_: s.quantised(
    s.torch.nn.functional.elu(s.floats(x), alpha), scale, zero, x.ints.dtype
)
_QUANTISED["celu"] = lambda s, x, scale, zero, alpha=1.0: s.quantised(
    s.torch.nn.functional.celu(s.floats(x), alpha), scale, zero, x.ints.dtype
)

_PRIM: dict[str, Callable[[list[Any]], Any]] = {
    "ListConstruct": list, "TupleConstruct": tuple,
    "ListUnpack": lambda given: given[0], "TupleUnpack": lambda given: given[0],
    "DictConstruct": lambda given: dict(zip(given[::2], given[1::2], strict=True)),
}  # fmt: skip
