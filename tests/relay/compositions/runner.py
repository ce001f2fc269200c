"""Run many small expressions at once: one module of all of them, compiled for llvm and for C."""

import numpy as np

import slipway as tvm
from slipway import relay
from slipway.contrib import graph_executor
from slipway.relay.interpret import interpret
from slipway.relay.types import flatten


def check_all(cases, target):
    """Check (name, builder of expressions, arrays, expected values) against the expectation."""
    params, feeds, fields, spans = [], {}, [], []
    for number, (name, build, arrays, wanted) in enumerate(cases):
        inputs = [
            relay.var(f"v{number}_{i}", shape=a.shape, dtype=a.dtype.name)
            for i, a in enumerate(arrays)
        ]
        feeds.update((v.name, a) for v, a in zip(inputs, arrays, strict=True))
        params += inputs
        made = build(*inputs)
        if isinstance(made, relay.TupleWrapper):
            made = list(made)
        results = made if isinstance(made, list) else [made]
        values = wanted if isinstance(wanted, (list, tuple)) else [wanted]
        assert len(results) == len(values), name
        for result, value in zip(results, values, strict=True):
            (kind,) = flatten(result.checked_type)
            assert (kind.shape, kind.dtype) == (value.shape, value.dtype.name), name
            fields.append(result)
            spans.append((name, value))
    function = relay.Function(tuple(params), relay.Tuple(tuple(fields)))
    if target == "interpreter":
        got = interpret(function, **feeds)
    else:
        with tvm.transform.PassContext(opt_level=3):
            lib = relay.build(tvm.IRModule.from_expr(function), target)
        module = graph_executor.GraphModule(lib["default"](tvm.cpu(0)))
        module.run(**feeds)
        got = [module.get_output(i).numpy() for i in range(len(fields))]
    for found, (name, value) in zip(got, spans, strict=True):
        np.testing.assert_allclose(found, value, rtol=2e-5, atol=2e-6, err_msg=name)
