"""Small TFLite files: one per operator and form, and programs of several subgraphs."""

from builder import const, model, program
from tests.frontends.tflite import test_control, test_more_operators, test_operators


def files():
    """Return (name, bytes) of every model that the tests build."""
    found = [(n, model(*args, **options)) for n, (args, options, _) in test_operators.CASES.items()]
    for name, (kind, inputs, outs, options, fields) in test_more_operators.CASES.items():
        found.append((f"more-{name}", model(kind, inputs, outs, options, **fields)))
    loop = test_control.loop(const([0]), const([3]), [])
    summed = test_control.accumulator([[5.0, -1.0, 0.5]])
    chosen = program(*test_control.choice())
    return [*found, ("while", loop), ("variables", summed), ("if", chosen)]
