"""Loops and branches: functions of relay as graphs inside nodes."""

from __future__ import annotations

from typing import Any

import numpy as np

from slipway.frontends.onnx.export.writer import Given, Write, Writer
from slipway.relay.expr import Call
from slipway.relay.types import flatten


def _scan(w: Writer, call: Call, given: Given) -> Any:
    """States, then what each step gives; what stays the same is read from outside."""
    a = call.attrs
    states, sequences, others = (list(v) for v in given)
    params = a.body.params
    if not sequences:  # a Scan counts the steps of its sequences
        sequences = [w.constant(np.zeros(a.steps, "bool"))]
    inside = [w.new_name("step") for _ in params[: a.states + a.sequences]]
    infos = [w.info(name, param.checked_type)
             for name, param in zip(inside, params, strict=False)]  # fmt: skip
    if not a.sequences:
        infos.append(w.onnx.ValueInfoProto(name=w.new_name("step")))
    body = w.graph_of(a.body, [*inside, *others], infos)
    count = len(body.output)
    steps, gives = len(sequences), count - a.states
    direction = int(a.reverse)
    return w.several(
        "Scan", [*states, *sequences], count, body=body, num_scan_inputs=steps,
        scan_input_directions=[direction] * steps,
        scan_output_directions=[direction] * gives or None,
    )  # fmt: skip


def _branch(w: Writer, call: Call, given: Given) -> Any:
    a = call.attrs
    sides = (("then_branch", a.then_body), ("else_branch", a.else_body))
    graphs = {side: w.graph_of(body, list(given[1])) for side, body in sides}
    condition = w.reshape(given[0], [1])
    return w.several("If", [condition], len(flatten(call.checked_type)), **graphs)


def _while_loop(w: Writer, call: Call, given: Given) -> Any:
    """A Loop without a trip count, whose condition is computed before and in each iteration."""
    a = call.attrs
    states, others = (list(v) for v in given)
    kinds = flatten(call.checked_type)
    inside = [w.new_name("state") for _ in states]
    number, going = w.new_name("iteration"), w.new_name("going")
    helper, proto = w.onnx.helper, w.onnx.TensorProto
    infos = [helper.make_tensor_value_info(number, proto.INT64, []),
             helper.make_tensor_value_info(going, proto.BOOL, []),
             *(w.info(name, kind) for name, kind in zip(inside, kinds, strict=True))]  # fmt: skip

    def holds(values: list[Any]) -> str:
        """Write the condition of states where it is asked."""
        kept = dict(w.names)
        w.names |= {id(param): name for param, name in
                    zip(a.condition.params, [*values, *others], strict=True)}  # fmt: skip
        (made,) = w.written(a.condition.body)
        w.names = kept
        return w.reshape(made, [])

    first = holds(states)
    body = w.graph_of(a.body, [*inside, *others], infos, lambda new: [holds(new), *new])
    return w.several("Loop", ["", first, *states], len(states), body=body)


WRITERS: dict[str, Write] = {"scan": _scan, "branch": _branch, "while_loop": _while_loop}
