"""A recurrent network of LSTM cells, unrolled: each step calls a function of its own."""

from __future__ import annotations

from typing import Any

from slipway.relay.expr import Call, Expr, Function, Tuple, TupleGetItem, Var
from slipway.relay.scope_builder import ScopeBuilder
from slipway.relay.testing.init import create_workload
from slipway.relay.testing.layers import dense_add_bias, make
from slipway.relay.types import TensorType, TupleType


def _parameters(num_hidden: int, dtype: str, names: tuple[str, str, str, str]) -> list[Var]:
    """Return weight and bias of the input's product and of the state's."""
    shapes = ((4 * num_hidden, num_hidden), (4 * num_hidden,)) * 2
    return [Var(n, TensorType(s, dtype)) for n, s in zip(names, shapes, strict=True)]


def lstm_cell(
    num_hidden: int, batch_size: int = 1, dtype: str = "float32", name: str = ""
) -> Function:
    """Return a function of (inputs, (h, c), weights and biases) with the result (h, (h, c)).

    The gates lie in the order input, forget, candidate, output.
    """
    one = TensorType((batch_size, num_hidden), dtype)
    inputs, states = Var("inputs", one), Var("states", TupleType((one, one)))
    params = _parameters(
        num_hidden, dtype, ("i2h_weight", "i2h_bias", "h2h_weight", "h2h_bias")
    )  # fmt: skip
    builder = ScopeBuilder()
    wide = TensorType((batch_size, 4 * num_hidden), dtype)
    operands: list[tuple[str, Expr, Expr, Expr]] = [
        ("i2h", inputs, params[0], params[1]),
        ("h2h", TupleGetItem(states, 0), params[2], params[3]),
    ]
    products = [
        builder.let(
            (what, wide),
            dense_add_bias(x, weight, bias, units=4 * num_hidden, name=f"{name}{what}"),
        )
        for what, x, weight, bias in operands
    ]
    gates = builder.let(("gates", wide), make("add")(*products))
    parts = make("split")(gates, indices_or_sections=4, axis=1)
    sigmoid, tanh = make("sigmoid"), make("tanh")
    named = ("in_gate", sigmoid), ("forget_gate", sigmoid), ("in_transform", tanh), (
        "out_gate", sigmoid)  # fmt: skip
    enters, stays, candidate, leaves = (
        builder.let((what, one), function(part))
        for (what, function), part in zip(named, parts, strict=True)
    )
    kept = make("multiply")(stays, TupleGetItem(states, 1))
    new = make("multiply")(enters, candidate)
    next_c = builder.let(("next_c", one), make("add")(kept, new))
    next_h = builder.let(("next_h", one), make("multiply")(leaves, tanh(next_c)))
    builder.ret(Tuple((next_h, Tuple((next_h, next_c)))))
    return Function((inputs, states, *params), builder.get())


def get_net(
    iterations: int, num_hidden: int, batch_size: int = 1, dtype: str = "float32"
) -> Function:
    """Return the network of `iterations` steps; every step reads an input "data" of its own."""
    one = TensorType((batch_size, num_hidden), dtype)
    builder = ScopeBuilder()
    zeros = builder.let(("zeros", one), make("full")(0.0, (batch_size, num_hidden), dtype))
    states: Any = builder.let(("init_states", TupleType((one, one))), Tuple((zeros, zeros)))
    out: Any = zeros
    for i in range(iterations):
        names = (f"i2h_{i}_weight", f"i2h_{i}_bias", f"h2h_{i}_weight", f"h2h_{i}_bias")
        cell = lstm_cell(num_hidden, batch_size, dtype, f"lstm_{i}")
        args = (Var("data", one), states, *_parameters(num_hidden, dtype, names))
        call = builder.let(f"call_{i}", Call(cell, args))
        out = builder.let((f"out_{i}", one), TupleGetItem(call, 0))
        states = builder.let(f"states_{i}", TupleGetItem(call, 1))
    builder.ret(out)
    return builder.get().as_function()


def get_workload(
    iterations: int, num_hidden: int, batch_size: int = 1, dtype: str = "float32"
) -> Any:
    """Return (module, parameters) of `get_net`."""
    return create_workload(get_net(iterations, num_hidden, batch_size, dtype))
