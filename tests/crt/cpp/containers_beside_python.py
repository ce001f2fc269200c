"""Lists cross between Python and C++, in both directions; run by test_cpp.py."""

import ctypes
import gc
import sys

import numpy as np
import pytest

import slipway as tvm

ctypes.CDLL(sys.argv[1])
total, backwards, nested = (
    tvm.get_global_func(f"containers.{name}") for name in ("total", "reversed", "nested")
)
arrays = [tvm.nd.array(np.full((2,), i, "float32")) for i in range(5)]
assert total(arrays) == 10.0
assert total([]) == 0.0
texts = ["a", "a text of more than eight bytes"]
made = backwards(texts)
del texts
gc.collect()
assert [str(text) for text in made] == ["a text of more than eight bytes", "a"]
assert [str(text) for text in backwards(made)] == ["a", "a text of more than eight bytes"]
assert list(backwards([])) == []  # an empty list, and not None
rows = [[1], []]
assert [list(row) for row in nested(rows)] == [[1, 7], [7]]
assert rows == [[1], []]
assert tvm.get_global_func("containers.or_seven")(None) == 7
none = tvm.get_global_func("containers.none")
assert none(True) == "text"
assert none(False) is None
for wrong, text in ((3, "expected a list, got int"), ([1], "item 0: expected NDArray, got int")):
    with pytest.raises(TypeError, match=text):
        total(wrong)
print("done")
