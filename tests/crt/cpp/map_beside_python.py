"""Tables cross between Python and C++, in both directions; run by test_cpp.py."""

import ctypes
import gc
import sys

import numpy as np
import pytest

import slipway as tvm

ctypes.CDLL(sys.argv[1])
total, swapped, nested, size = (
    tvm.get_global_func(f"map.{name}") for name in ("total", "swapped", "nested", "size_or_none")
)
arrays = {f"array number {i}": tvm.nd.array(np.full((2,), i, "float32")) for i in range(5)}
assert total(arrays) == 10.0
assert total({}) == 0.0
assert total([["pair", arrays["array number 3"]]]) == 3.0
made = swapped({"a": 1, "a text of more than eight bytes": 2})
gc.collect()
assert {k: str(v) for k, v in made.items()} == {1: "a", 2: "a text of more than eight bytes"}
assert dict(swapped({})) == {}
given = {"x": {1: ["one"]}, "y": {}}
found = {k: {n: [str(t) for t in ts] for n, ts in v.items()} for k, v in nested(given).items()}
assert found == {"x": {1: ["one"], 7: ["x"]}, "y": {7: ["y"]}}
assert {k: dict(v) for k, v in nested(nested(given)).items()}.keys() == {"x", "y"}
assert given == {"x": {1: ["one"]}, "y": {}}
assert (size({"a": 1}), size(None)) == (1, None)
for wrong, text in (
    (3, "expected a map, got int"),
    ({"a": "b"}, "value 0: expected int, got str"),
    ([1], "expected a list, got int"),
    ([[1, 2, 3]], "expected a map, or a list of pairs"),
):
    with pytest.raises(TypeError, match=text):
        swapped(wrong)
for _ in range(20000):
    swapped({"a": 1})
print("done")
