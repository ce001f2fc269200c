"""Graph passes of classic TVM that the compiler itself has no need of, for scripts that call them.

What they make computes the same as what they are given; `slipway.relay.build` finds its own ways.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from slipway.arguments import integer_of
from slipway.errors import LoweringError
from slipway.ir.function import IRModule
from slipway.relay.expr import Call, Expr, Function, If, Let, Op, Tuple, TupleGetItem, Var
from slipway.relay.op_registry import const, is_call_of, make
from slipway.relay.types import TensorType, Type
from slipway.relay.visit import post_order, rebuild, rewrite, substitute
from slipway.transform.graph.classic import FuseOps, InferType, on_functions
from slipway.transform.graph.conv.flatten_atrous import flatten_atrous_conv
from slipway.transform.graph.conv.fold_scale_axis import fold_scale_axis
from slipway.transform.graph.conv.forward_scale_axis import forward_scale_axis
from slipway.transform.graph.infer_type import infer_type
from slipway.transform.graph.integers.integer_arithmetic import integer_arithmetic
from slipway.transform.graph.split_joins import split_joins
from slipway.transform.manager import Pass, Sequential

__all__ = [
    "AnnotateSpans", "BackwardFoldScaleAxis", "BatchingOps", "CanonicalizeCast", "ChangeBatch",
    "CombineParallelBatchMatmul", "CombineParallelConv2D", "CombineParallelDense", "DefuseOps",
    "DenseToSparse", "FakeQuantizationToInteger", "FastMath", "FlattenAtrousConv",
    "FoldExplicitPadding", "ForwardFoldScaleAxis", "InferTypeLocal", "SplitArgs", "ToANormalForm",
    "extract_fused_functions",
]  # fmt: skip


def InferTypeLocal(expr: Expr) -> Type:
    """Return the type of an expression."""
    if isinstance(expr, Function):
        return infer_type(expr).checked_type
    return infer_type(Function((), expr)).body.checked_type


def FastMath() -> Pass:
    """Type the module: exp, tanh and erf are polynomials of full accuracy in kernels as it is."""
    return on_functions("FastMath", lambda f, m: f)


def AnnotateSpans() -> Pass:
    """Type the module: errors name operator and arguments without the spans of a text."""
    return on_functions("AnnotateSpans", lambda f, m: f)


def CanonicalizeCast() -> Pass:
    """Type the module: FuseOps repeats a cast in each kernel that reads it as it is."""
    return on_functions("CanonicalizeCast", lambda f, m: f)


def FlattenAtrousConv() -> Pass:
    """Dilate convolutions that stand between space_to_batch_nd and batch_to_space_nd."""
    return on_functions("FlattenAtrousConv", lambda f, m: infer_type(flatten_atrous_conv(f)))


def SplitArgs(max_function_args: int) -> Pass:
    """Join tensors in several steps, so that no kernel has more than `max_function_args`; -1: any.

    A result counts as one of them.
    """
    most = integer_of(max_function_args, "SplitArgs: max_function_args")
    if most != -1:
        most = integer_of(most, "SplitArgs: max_function_args", 3) - 1
    return on_functions(
        "SplitArgs", lambda f, m: infer_type(split_joins(f, most)) if most > 0 else f
    )


def ChangeBatch(data: Mapping[Var, int], batch_size: int = 16) -> Pass:
    """Give inputs another extent of the batch, which is the axis that `data` says for each."""
    axes = {var.name_hint: integer_of(axis, "ChangeBatch: an axis") for var, axis in data.items()}
    size = integer_of(batch_size, "ChangeBatch: batch_size", 1)

    def changed(param: Var) -> Var:
        axis, kind = axes.get(param.name_hint), param.type
        if axis is None or not isinstance(kind, TensorType):
            return param
        if not -kind.rank <= axis < kind.rank:
            raise LoweringError(f"ChangeBatch: %{param.name_hint} is {kind}; it has no axis {axis}")
        shape = list(kind.shape)
        shape[axis] = size
        return Var(param.name_hint, TensorType(tuple(shape), kind.dtype))

    def run(function: Function, module: IRModule) -> Function:
        params = [changed(param) for param in function.params]
        table = dict(zip(function.params, params, strict=True))
        body = substitute(function.body, table)
        return infer_type(Function(tuple(params), body, None, function.attrs))

    return on_functions("ChangeBatch", run)


def BackwardFoldScaleAxis() -> Pass:
    """Move per-channel factors into the weights before them."""
    return on_functions("BackwardFoldScaleAxis", lambda f, m: fold_scale_axis(f))


def ForwardFoldScaleAxis() -> Pass:
    """Move factors per channel into the weights behind them."""
    return on_functions("ForwardFoldScaleAxis", lambda f, m: forward_scale_axis(f))


def FakeQuantizationToInteger(hard_fail: bool = False, use_qat: bool = False) -> Pass:
    """Compute in integers what stands between qnn.dequantize and qnn.quantize.

    With `hard_fail`, LoweringError where dequantised values are left; `use_qat` changes nothing:
    weights that training has quantised are read as others are.
    """

    def run(function: Function, module: IRModule) -> Function:
        made = infer_type(integer_arithmetic(infer_type(function)))
        left = [e for e in post_order(made.body) if is_call_of(e, "qnn.dequantize")]
        if hard_fail and left and not all(e is made.body for e in left):
            raise LoweringError(
                f"FakeQuantizationToInteger: {len(left)} tensors are still dequantised; "
                "hard_fail=False leaves them so"
            )
        return made

    return on_functions("FakeQuantizationToInteger", run)


def extract_fused_functions(mod: IRModule) -> dict[str, Function]:
    """Return the kernels of "main", by a number of their own; of a module without any, FuseOps'."""
    if not _kernels(mod):
        mod = FuseOps()(InferType()(mod))
    return {f"fused_{i}": kernel for i, kernel in enumerate(_kernels(mod))}


def _kernels(mod: IRModule) -> list[Function]:
    main: Any = mod["main"]
    return [e for e in post_order(main) if isinstance(e, Function) and e.attr("Primitive")]


def DefuseOps() -> Pass:
    """Put the operators of kernels back into the graph: what FuseOps has grouped."""

    def rule(expr: Expr) -> Expr | None:
        if not isinstance(expr, Call) or not isinstance(expr.op, Function):
            return None
        values = {id(p): a for p, a in zip(expr.op.params, expr.args, strict=True)}
        made: Expr = rewrite(expr.op.body, lambda e: values.get(id(e)))
        return made

    return on_functions("DefuseOps", lambda f, m: infer_type(rewrite(f, rule)))


def FoldExplicitPadding() -> Pass:
    """Let convolutions and pools of maxima pad themselves where a padding stands before them."""

    def rule(expr: Expr) -> Expr | None:
        if not isinstance(expr, Call) or not is_call_of(expr.args[0] if expr.args else expr,
                                                        "nn.pad"):  # fmt: skip
            return None
        name = expr.op.name if isinstance(expr.op, Op) else ""
        pad, attrs = expr.args[0], expr.attrs
        assert isinstance(pad, Call)
        if name not in ("nn.conv1d", "nn.conv2d", "nn.conv3d") or pad.attrs.pad_mode != "constant":
            return None
        if pad.attrs.pad_value != 0 or min(v for pair in pad.attrs.pad_width for v in pair) < 0:
            return None
        spatial = "DHW"[-len(attrs.strides) :]
        width = dict(zip(attrs.data_layout, pad.attrs.pad_width, strict=False))
        if len(attrs.data_layout) != len(pad.attrs.pad_width) or any(
            width[axis] != (0, 0) for axis in width if axis not in spatial
        ):  # fmt: skip
            return None
        count = len(spatial)
        more = [*(width[a][0] for a in spatial), *(width[a][1] for a in spatial)]
        padding = tuple(int(p) + int(q) for p, q in zip(attrs.padding, more, strict=True))
        assert len(padding) == 2 * count
        return Call(expr.op, (pad.args[0], *expr.args[1:]), attrs.replace(padding=padding))

    return on_functions(
        "FoldExplicitPadding", lambda f, m: infer_type(rewrite(infer_type(f), rule))
    )


def ToANormalForm() -> Pass:
    """Give each value a name of its own: ``let %x = ...``, in the order of computation."""
    return on_functions("ToANormalForm", lambda f, m: infer_type(_named(infer_type(f))))


def _named(function: Function) -> Function:
    return function.replace(body=_block(function.body))  # type: ignore[no-any-return]


def _block(body: Expr) -> Expr:
    """Return an expression as Lets; the branches of an If have Lets of their own."""
    done: dict[int, Expr] = {}
    lets: list[tuple[Var, Expr]] = []
    for expr in post_order(body, into_functions=False):
        if isinstance(expr, If | Let):
            return body  # its parts run under conditions, or have names already
    for expr in post_order(body, into_functions=False):
        if not isinstance(expr, Call | Tuple | TupleGetItem):
            done[id(expr)] = expr
            continue
        made: Any = rebuild(expr, lambda child: done.get(id(child), child))
        var = Var(f"x_{len(lets)}", expr.checked_type)
        lets.append((var, made))
        done[id(expr)] = var
    result = done[id(body)]
    for var, value in reversed(lets):
        result = Let(var, value, result)
    return result


def DenseToSparse(weight_name: Sequence[str], weight_shape: Sequence[Sequence[int]]) -> Pass:
    """Let products take weights as blocks: what `relay.analysis.sparse_dense` has made of them.

    The graph has the parameters "<w>.data", "<w>.indices" and "<w>.indptr" in place of "<w>"; when
    they are bound, `relay.build` computes the dense weight from them once.
    """

    def run(function: Function, module: IRModule) -> Function:
        shapes = dict(zip(map(str, weight_name), weight_shape, strict=True))
        params: list[Var] = []
        made: dict[int, Expr] = {}
        for param in function.params:
            if param.name_hint not in shapes:
                params.append(param)
                continue
            sizes = [int(n) for n in shapes[param.name_hint]]
            kind = param.tensor_type
            parts = [
                Var(f"{param.name_hint}.{part}", TensorType(tuple(shape), dtype))
                for part, shape, dtype in (("data", sizes[:-2], kind.dtype),
                                           ("indices", sizes[-2:-1], "int32"),
                                           ("indptr", sizes[-1:], "int32"))
            ]  # fmt: skip
            params += parts
            made[id(param)] = _dense_of(parts, kind)
        body = rewrite(function.body, lambda e: made.get(id(e)))
        return infer_type(function.replace(params=tuple(params), body=body))

    return on_functions("DenseToSparse", run)


def _dense_of(parts: list[Var], kind: TensorType) -> Expr:
    """Return the dense matrix of blocks (data, indices, indptr)."""
    data, indices, indptr = parts
    count, high, wide = (int(n) for n in data.tensor_type.shape)
    rows, columns = (int(n) for n in kind.shape)
    order = const(np.arange(count, dtype="int32").reshape(-1, 1))
    begun = make("cast")(make("less_equal")(indptr, order), "int32")
    row = make("subtract")(make("sum")(begun, 1), const(np.int32(1)))
    positions = make("stack")([row, indices], 0)
    tiles = const(np.zeros((rows // high, columns // wide, high, wide), kind.dtype))
    filled = make("scatter_nd")(tiles, positions, data)
    return make("reshape")(make("transpose")(filled, (0, 2, 1, 3)), (rows, columns))  # type: ignore[no-any-return]


# -- products that share their input -------------------------------------------------------------


@dataclass(frozen=True)
class _Parallel:
    """How products of one operator are joined: along which axis of the weights and the result."""

    name: str
    axes: Callable[[Any], tuple[int, int]]
    attrs: Callable[[Any, int], Any]


def _combined(function: Function, parallel: _Parallel, minimum: int) -> Function:
    """Return a function whose products with one input and several weights are one product."""
    while True:
        groups: dict[Any, list[Call]] = {}
        for expr in post_order(function.body, into_functions=False):
            if isinstance(expr, Call) and is_call_of(expr, parallel.name):
                key = _key(expr, parallel)
                if key is not None:
                    groups.setdefault(key, []).append(expr)
        group = next((g for g in groups.values() if len(g) >= max(minimum, 2)), None)
        if group is None:
            return function
        parts = _joined(group, parallel)
        body = rewrite(function.body, lambda e, parts=parts: parts.get(id(e)))  # type: ignore[misc]
        function = infer_type(function.replace(body=body))


def _key(call: Call, parallel: _Parallel) -> Any:
    weight = call.args[1].checked_type
    if not isinstance(weight, TensorType) or getattr(call.attrs, "groups", 1) != 1:
        return None
    axis = parallel.axes(call.attrs)[0]
    rest = tuple(s for n, s in enumerate(weight.shape) if n != axis)
    same = parallel.attrs(call.attrs, 0)
    fields = tuple(str(getattr(same, name)) for name in same.FIELDS) if same is not None else ()
    return id(call.args[0]), rest, weight.dtype, fields


def _joined(group: list[Call], parallel: _Parallel) -> dict[int, Expr]:
    first = group[0]
    axis, out = parallel.axes(first.attrs)
    sizes = []
    for call in group:
        kind = call.args[1].checked_type
        assert isinstance(kind, TensorType)
        sizes.append(int(kind.shape[axis]))
    weights = make("concatenate")([call.args[1] for call in group], axis)
    attrs = parallel.attrs(first.attrs, sum(sizes))
    whole = Call(first.op, (first.args[0], weights), attrs)
    parts: dict[int, Expr] = {}
    begin = 0
    for call, size in zip(group, sizes, strict=True):
        positions = const(_range(begin, begin + size))
        parts[id(call)] = make("take")(whole, positions, out)
        begin += size
    return parts


def _range(begin: int, end: int) -> Any:
    return np.arange(begin, end, dtype="int32")


def CombineParallelConv2D(min_num_branches: int = 3) -> Pass:
    """Join convolutions of one input into one, whose result is divided again."""

    def axes(attrs: Any) -> tuple[int, int]:
        return attrs.kernel_layout.index("O"), (attrs.out_layout or attrs.data_layout).index("C")

    def widened(attrs: Any, channels: int) -> Any:
        return attrs.replace(channels=channels or None)

    parallel = _Parallel("nn.conv2d", axes, widened)
    return on_functions(
        "CombineParallelConv2D",
        lambda f, m: _combined(infer_type(f), parallel, min_num_branches),
    )


def CombineParallelDense(min_num_branches: int = 3, to_batch: bool = True) -> Pass:
    """Join products of one input with several weights into one, whose result is divided again.

    Classic TVM makes a batch of equal ones unless `to_batch` is False; here it is one product.
    """
    parallel = _Parallel(
        "nn.dense", lambda attrs: (0, -1), lambda attrs, units: attrs.replace(units=units or None)
    )
    return on_functions(
        "CombineParallelDense",
        lambda f, m: _combined(infer_type(f), parallel, min_num_branches),
    )


def BatchingOps() -> Sequential:
    """Join convolutions and products of one input: CombineParallelConv2D and its siblings."""
    return Sequential(
        [CombineParallelConv2D(), CombineParallelDense(), CombineParallelBatchMatmul()],
        name="BatchingOps",
    )


def CombineParallelBatchMatmul(min_num_branches: int = 3) -> Pass:
    """Join products of one batch with several into one, whose result is divided again."""
    parallel = _Parallel(
        "nn.batch_matmul",
        lambda attrs: (1 if attrs.transpose_b else 2, -1),
        lambda attrs, _: attrs,
    )
    return on_functions(
        "CombineParallelBatchMatmul",
        lambda f, m: _combined(infer_type(f), parallel, min_num_branches),
    )
