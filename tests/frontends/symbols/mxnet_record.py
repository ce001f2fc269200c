"""Run the symbols of recorded.json.gz with MXNet, and keep what they give.

python tests/frontends/symbols/mxnet_record.py    (in a Python with MXNet 1.9 and its NumPy)

Beside a symbol's JSON lie its inputs; `add` enters a further one.
"""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np

FILE = Path(__file__).with_name("recorded.json.gz")
Case = dict[str, Any]  # "symbol" is its JSON, "in" arrays by name, "out" a list of arrays


def packed(array: np.ndarray) -> list[Any]:
    """Return an array as what JSON holds."""
    return [array.dtype.name, list(array.shape), base64.b64encode(array.tobytes()).decode()]


def unpacked(kept: list[Any]) -> np.ndarray:
    """Return the array that `packed` was given."""
    return np.frombuffer(base64.b64decode(kept[2]), kept[0]).reshape(kept[1])


def recorded() -> dict[str, Case]:
    """Return the cases by name."""
    cases = json.loads(gzip.decompress(FILE.read_bytes()))
    for case in cases.values():
        case["in"] = {name: unpacked(kept) for name, kept in case["in"].items()}
        case["out"] = [unpacked(kept) for kept in case["out"]]
    return cases


def outputs(symbol: str, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
    """Return what MXNet computes; labels, which no output depends on, are zeros."""
    import mxnet as mx

    graph = mx.sym.load_json(symbol)
    arguments, states = graph.list_arguments(), graph.list_auxiliary_states()
    shapes, _, _ = graph.infer_shape(
        **{name: value.shape for name, value in inputs.items() if name in arguments}
    )
    bound = {
        name: mx.nd.array(inputs[name], dtype=inputs[name].dtype)
        if name in inputs
        else mx.nd.zeros(shape)
        for name, shape in zip(arguments, shapes, strict=True)
    }
    kept = {name: mx.nd.array(inputs[name]) for name in states}
    program = graph.bind(mx.cpu(), bound, aux_states=kept, grad_req="null")
    return [made.asnumpy() for made in program.forward(is_train=False)]


def add(cases: dict[str, Case], name: str, symbol: str, inputs: dict[str, np.ndarray]) -> None:
    """Enter a case with what MXNet gives for it."""
    cases[name] = {"symbol": symbol, "in": inputs, "out": outputs(symbol, inputs)}


def write(cases: dict[str, Case]) -> None:
    """Write the file."""
    kept = {
        name: {
            "symbol": case["symbol"],
            "in": {key: packed(value) for key, value in case["in"].items()},
            "out": [packed(value) for value in case["out"]],
        }
        for name, case in cases.items()
    }
    FILE.write_bytes(gzip.compress(json.dumps(kept).encode(), 9, mtime=0))


if __name__ == "__main__":
    again = recorded()
    for case, parts in list(again.items()):
        add(again, case, parts["symbol"], parts["in"])
    write(again)
