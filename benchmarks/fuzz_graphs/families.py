"""All families of operators: importing this enters their rules and makers."""

from benchmarks.fuzz_graphs import (  # noqa: F401
    elementwise,
    indexing,
    movement,
    pooling,
    products,
    quantized,
    reductions,
    resampling,
)

# Operators that only passes make: graphs reach them through the pass, not by name.
MADE_BY_PASSES = ("nn.contrib_", "qnn.contrib_", "qnn.dense_packed", "layout_transform")
