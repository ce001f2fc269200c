"""`to_onnx`: a relay graph as an ONNX model, for systems that read that."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

import numpy as np

from slipway.errors import MissingPackageError, ModelError
from slipway.ir.function import IRModule
from slipway.relay.expr import Call, Constant, Expr, Function, Op, Tuple, TupleGetItem, Var
from slipway.relay.types import TensorType, flatten
from slipway.relay.visit import post_order
from slipway.transform.graph.classic import (
    ConvertLayout,
    FoldConstant,
    InferType,
    SimplifyInference,
)
from slipway.transform.graph.inline import inline
from slipway.version import install_line

OPSET_VERSIONS = tuple(range(13, 19))
# Operators that have the same meaning, inputs and defaults there.
_SAME = {
    "add": "Add", "subtract": "Sub", "multiply": "Mul", "divide": "Div", "power": "Pow",
    "nn.relu": "Relu", "sigmoid": "Sigmoid", "tanh": "Tanh", "exp": "Exp", "log": "Log",
    "sqrt": "Sqrt", "erf": "Erf", "abs": "Abs", "negative": "Neg", "floor": "Floor",
    "ceil": "Ceil", "maximum": "Max", "minimum": "Min", "nn.global_avg_pool2d": "GlobalAveragePool",
    "nn.global_max_pool2d": "GlobalMaxPool", "where": "Where", "equal": "Equal",
    "greater": "Greater", "less": "Less", "nn.prelu": "PRelu", "nn.batch_matmul": "",
}  # fmt: skip
_REDUCE = {"mean": "ReduceMean", "max": "ReduceMax", "min": "ReduceMin", "prod": "ReduceProd"}


def to_onnx(
    relay_ir: IRModule | Function,
    params: Mapping[str, Any] | None,
    name: str,
    opset_version: int = 13,
    path: str | None = None,
) -> Any:
    """Return the ONNX model of a relay function, whose `params` become initializers.

    With `path` the model is written there too.  Raises ModelError for an opset or operators that
    are not served, all at once.
    """
    if opset_version not in OPSET_VERSIONS:
        raise ModelError(
            f"opset_version={opset_version}: to_onnx writes {OPSET_VERSIONS[0]} to "
            f"{OPSET_VERSIONS[-1]}"
        )
    try:
        import onnx
    except ImportError as error:
        raise MissingPackageError(
            f"to_onnx needs the package onnx: {install_line('onnx')}"
        ) from error
    function = relay_ir["main"] if isinstance(relay_ir, IRModule) else relay_ir
    if not isinstance(function, Function):
        raise ModelError(f"to_onnx takes a relay function, not a {type(function).__name__}")
    module: Any = relay_ir if isinstance(relay_ir, IRModule) else IRModule.from_expr(function)
    layouts = {"nn.conv2d": ["NCHW", "OIHW"], "nn.max_pool2d": ["NCHW"], "nn.avg_pool2d": ["NCHW"]}
    module = module.update("main", inline(module["main"], module))
    for step in (InferType(), SimplifyInference(), ConvertLayout(layouts),
                 FoldConstant(), InferType()):  # fmt: skip
        module = step(module)
    values = {k: np.asarray(v.numpy() if hasattr(v, "numpy") else v)
              for k, v in (params or {}).items()}  # fmt: skip
    made = _Writer(onnx, values, opset_version).model(module["main"], name)
    onnx.checker.check_model(made)
    if path:
        onnx.save(made, path)
    return made


class _Writer:
    def __init__(
        self, onnx: ModuleType, params: dict[str, np.ndarray[Any, Any]], opset: int
    ) -> None:
        self.onnx, self.params, self.opset = onnx, params, opset
        self.nodes: list[Any] = []
        self.initializers: list[Any] = []
        self.names: dict[int, Any] = {}
        self.unknown: list[str] = []

    def model(self, function: Function, name: str) -> Any:
        """Return the model of a function."""
        helper, inputs = self.onnx.helper, []
        for param in function.params:
            self.names[id(param)] = param.name_hint
            if param.name_hint in self.params:
                self._constant(self.params[param.name_hint], param.name_hint)
            else:
                inputs.append(self._info(param.name_hint, param.checked_type))
        for expr in post_order(function.body):
            self._visit(expr)
        if self.unknown:
            raise ModelError(
                "to_onnx has no counterpart for the operators: "
                f"{', '.join(sorted(set(self.unknown)))}"
            )
        found = self.names[id(function.body)]
        names = list(found) if isinstance(found, tuple) else [found]
        kinds = flatten(function.body.checked_type)
        outputs = []
        for number, (one, kind) in enumerate(zip(names, kinds, strict=True)):
            made = f"output_{number}"
            self._node("Identity", [one], outputs=[made])
            outputs.append(self._info(made, kind))
        graph = helper.make_graph(self.nodes, name, inputs, outputs, self.initializers)
        opset = helper.make_opsetid("", self.opset)
        version = helper.find_min_ir_version_for([opset])
        return helper.make_model(graph, opset_imports=[opset], ir_version=version)

    def _info(self, name: str, kind: Any) -> Any:
        dtype = self.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(kind.dtype))
        shape = [int(d) for d in kind.shape]
        return self.onnx.helper.make_tensor_value_info(name, dtype, shape)

    def _constant(self, value: Any, name: str = "") -> str:
        name = name or f"constant_{len(self.initializers)}"
        array = np.asarray(value, order="C")
        self.initializers.append(self.onnx.numpy_helper.from_array(array, name))
        return name

    def _node(
        self, kind: str, inputs: list[str], outputs: list[str] | None = None, **attributes: Any
    ) -> str:
        made = outputs or [f"value_{len(self.nodes)}"]
        self.nodes.append(self.onnx.helper.make_node(kind, inputs, made, **attributes))
        return made[0]

    def _visit(self, expr: Expr) -> None:
        match expr:
            case Constant():
                self.names[id(expr)] = self._constant(expr.array)
            case Tuple():
                self.names[id(expr)] = tuple(self.names[id(f)] for f in expr.fields)
            case TupleGetItem():
                whole = self.names[id(expr.tuple_value)]
                self.names[id(expr)] = whole[expr.index] if isinstance(whole, tuple) else ""
            case Call() if isinstance(expr.op, Op):
                name = expr.op.name
                writer = _WRITERS.get(name)
                if writer is None and not _SAME.get(name):
                    self.unknown.append(name)
                    self.names[id(expr)] = ""
                    return
                given = [self.names[id(a)] for a in expr.args]
                self.names[id(expr)] = (
                    self._node(_SAME[name], given) if writer is None else writer(self, expr, given)
                )
            case Var() | Op() | Function():
                pass
            case _:
                self.unknown.append(type(expr).__name__)
                self.names[id(expr)] = ""

    # -- operators -------------------------------------------------------------------------------

    def window(self, call: Call, given: list[str], kind: str) -> str:
        """Write a convolution or a pool of two dimensions."""
        a = call.attrs
        common: dict[str, Any] = {"strides": list(a.strides), "pads": list(a.padding)}
        if kind == "Conv":
            weight = call.args[1].checked_type
            assert isinstance(weight, TensorType)
            common |= {"dilations": list(a.dilation), "group": a.groups}
            return self._node("Conv", given, kernel_shape=[int(d) for d in weight.shape[2:]],
                              **common)  # fmt: skip
        common |= {"kernel_shape": list(a.pool_size), "ceil_mode": int(a.ceil_mode)}
        if kind == "AveragePool":
            common["count_include_pad"] = int(a.count_include_pad)
        return self._node(kind, given, **common)

    def dense(self, call: Call, given: list[str]) -> str:
        """Write data @ weight.T."""
        transposed = self._node("Transpose", [given[1]], perm=[1, 0])
        return self._node("MatMul", [given[0], transposed])

    def batch_matmul(self, call: Call, given: list[str]) -> str:
        """Write products of batches."""
        transposed = [
            self._node("Transpose", [one], perm=[0, 2, 1]) if flag else one
            for one, flag in zip(given, (call.attrs.transpose_a, call.attrs.transpose_b),
                                 strict=True)
        ]  # fmt: skip
        return self._node("MatMul", transposed)

    def bias_add(self, call: Call, given: list[str]) -> str:
        """Write the addition of a vector along an axis."""
        rank = call.args[0].checked_type.rank  # type: ignore[attr-defined]
        axis = call.attrs.axis % rank
        shape = self._constant(np.array([-1, *[1] * (rank - 1 - axis)], "int64"))
        return self._node("Add", [given[0], self._node("Reshape", [given[1], shape])])

    def reshaped(self, call: Call, given: list[str]) -> str:
        """Write what gives the same elements another shape."""
        kind = call.checked_type
        assert isinstance(kind, TensorType)
        shape = self._constant(np.array([int(d) for d in kind.shape], "int64"))
        return self._node("Reshape", [given[0], shape])

    def transpose(self, call: Call, given: list[str]) -> str:
        """Write a transposition."""
        rank = call.args[0].checked_type.rank  # type: ignore[attr-defined]
        axes = call.attrs.axes or range(rank)[::-1]
        return self._node("Transpose", given[:1], perm=[int(a) % rank for a in axes])

    def reduced(self, call: Call, given: list[str], kind: str) -> str:
        """Write a reduction."""
        before, after = call.args[0].checked_type, call.checked_type
        assert isinstance(before, TensorType)
        assert isinstance(after, TensorType)
        axes = call.attrs.axis
        axes = range(before.rank) if axes is None else np.atleast_1d(axes)
        chosen = sorted(int(a) % before.rank for a in axes)
        if getattr(call.attrs, "exclude", False):
            chosen = [a for a in range(before.rank) if a not in chosen]
        keep = int(call.attrs.keepdims)
        if kind == "ReduceSum" or self.opset >= 18:
            positions = self._constant(np.array(chosen, "int64"))
            return self._node(kind, [given[0], positions], keepdims=keep)
        return self._node(kind, given, axes=chosen, keepdims=keep)

    def clip(self, call: Call, given: list[str]) -> str:
        """Write a clip."""
        dtype = call.checked_type.dtype  # type: ignore[attr-defined]
        ends = [self._constant(np.array(v, dtype)) for v in (call.attrs.a_min, call.attrs.a_max)]
        return self._node("Clip", [given[0], *ends])

    def pad(self, call: Call, given: list[str]) -> str:
        """Write a padding; ONNX has none that repeats the last element."""
        if call.attrs.pad_mode == "symmetric":
            self.unknown.append("nn.pad (symmetric)")
            return given[0]
        width = [[int(v) for v in pair] for pair in call.attrs.pad_width]
        pads = self._constant(np.array([p[0] for p in width] + [p[1] for p in width], "int64"))
        dtype = call.checked_type.dtype  # type: ignore[attr-defined]
        value = self._constant(np.array(call.attrs.pad_value, dtype))
        return self._node("Pad", [given[0], pads, value], mode=call.attrs.pad_mode)


def _of_window(kind: str) -> Callable[..., str]:
    return lambda w, call, given: w.window(call, given, kind)


def _of_reduce(kind: str) -> Callable[..., str]:
    return lambda w, call, given: w.reduced(call, given, kind)


_WRITERS: dict[str, Callable[..., str]] = {
    "nn.conv2d": _of_window("Conv"), "nn.max_pool2d": _of_window("MaxPool"),
    "nn.avg_pool2d": _of_window("AveragePool"), "nn.dense": _Writer.dense,
    "nn.batch_matmul": _Writer.batch_matmul, "nn.bias_add": _Writer.bias_add,
    "transpose": _Writer.transpose, "clip": _Writer.clip, "nn.pad": _Writer.pad,
    "sum": _of_reduce("ReduceSum"), **{k: _of_reduce(v) for k, v in _REDUCE.items()},
    **dict.fromkeys(("reshape", "squeeze", "expand_dims", "nn.batch_flatten"), _Writer.reshaped),
    "rsqrt": lambda w, _c, given: w._node("Reciprocal", [w._node("Sqrt", given)]),
    "nn.softmax": lambda w, c, given: w._node("Softmax", given, axis=c.attrs.axis),
    "nn.log_softmax": lambda w, c, given: w._node("LogSoftmax", given, axis=c.attrs.axis),
    "nn.leaky_relu": lambda w, c, given: w._node("LeakyRelu", given, alpha=c.attrs.alpha),
    "concatenate": lambda w, c, given: w._node("Concat", list(given[0]), axis=c.attrs.axis),
    "cast": lambda w, c, given: w._node("Cast", given, to=w.onnx.helper.np_dtype_to_tensor_dtype(
        np.dtype(c.checked_type.dtype))),
}  # fmt: skip
