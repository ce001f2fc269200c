"""The inputs of an ONNX graph: variables, or the values that they are bound to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from slipway.errors import ModelError
from slipway.frontends.binding import Constants, bound_constant, check_input_names
from slipway.frontends.onnx.open_sizes import input_shape, is_replaced
from slipway.frontends.onnx.reader import value_type
from slipway.frontends.onnx.stand_in import StandIns
from slipway.frontends.onnx.values import Optional, Value
from slipway.frontends.onnx.values import Sequence as SequenceValue
from slipway.relay.expr import Var
from slipway.relay.types import TensorType


def inputs_of(
    graph: Any,
    known: Mapping[str, Any],
    shapes: Mapping[str, Any],
    overrides: Mapping[str, str],
    constants: Constants,
    stand_ins: StandIns,
) -> dict[str, Value]:
    """Return the inputs of a graph by name, without the `known`: initializers.

    `overrides` are dtypes.  Raises ModelError for names that there are not and for shapes that do
    not fit, `OpenSizes` where a dimension is open and no shape is given.  `stand_ins` keeps
    which have another shape than the file's.
    """
    # Before IR version 4 initializers were listed among the inputs too.
    infos = [i for i in graph.input if i.name not in known]
    check_input_names([*shapes, *overrides, *constants], [i.name for i in infos])
    return {i.name: _input(i.name, i.type, shapes, overrides, constants, stand_ins) for i in infos}


def _input(
    name: str,
    type_: Any,
    shapes: Mapping[str, Any],
    overrides: Mapping[str, str],
    constants: Constants,
    stand_ins: StandIns,
) -> Value:
    """Return an input's variable, or for a sequence one per element."""
    kind = type_.WhichOneof("value")
    if kind == "optional_type":
        if name in shapes and shapes[name] is None:
            return Optional(None)
        inner = type_.optional_type.elem_type
        return Optional(_input(name, inner, shapes, overrides, constants, stand_ins))
    if kind != "sequence_type":
        dims, dtype = value_type(name, type_)
        dtype = overrides.get(name, dtype)
        given = shapes.get(name)
        if name in constants:
            return bound_constant(name, constants[name], given or dims, dtype)
        shape = input_shape(name, dims, given)
        if is_replaced(dims, shape):
            stand_ins.replaced[name] = f"{shape} for {dims}"
        return Var(name, TensorType(shape, dtype))
    if name not in shapes:
        raise ModelError(
            f"the input {name!r} is a sequence, whose length is not fixed: pass the shapes of "
            f"its elements, shape={{{name!r}: [(3, 4), (3, 4)]}}"
        )
    inner = type_.sequence_type.elem_type
    items = [
        _input(f"{name}.{i}", inner, {f"{name}.{i}": shape}, overrides, constants, stand_ins)
        for i, shape in enumerate(shapes[name])
    ]
    return SequenceValue(tuple(items), items[0].tensor_type.dtype if items else "")
