"""All families of operators: importing this enters their rules and makers."""

from benchmarks.fuzz_graphs import (  # noqa: F401
    control,
    elementwise,
    indexing,
    language,
    marks,
    movement,
    pooling,
    products,
    quantized,
    reductions,
    regions,
    resampling,
    windows,
)

# Operators that only passes make: graphs reach them through the pass, not by name.
MADE_BY_PASSES = ("nn.contrib_", "qnn.contrib_", "qnn.dense_packed", "layout_transform")
# What has tests of its own against other runtimes, and no rule here yet.
NOT_DRAWN = {
    "annotation.compiler_begin": "a mark of parts for an accelerator, gone before code is made",
    "annotation.compiler_end": "a mark of parts for an accelerator, gone before code is made",
    "nn.contrib_block_dense": "drawn as what it is packed from",
    "nn.cached_attention": "writes its inputs: tests/relay/operators, tests/llm",
    "nn.cached_conv1d": "writes its inputs: tests/relay/operators, tests/llm",
    "nn.sloped_cached_attention": "writes its inputs: tests/relay/operators, tests/llm",
    "qnn.normalize": "a step of the integer softmax, against LiteRT",
    "qnn.reciprocal": "a step of the integer softmax, against LiteRT",
    "qnn.rescale": "drawn as qnn.op.requantize",
    "qnn.rsqrt_multiplier": "a step of the integer layer norm, against LiteRT",
    "random.threefry_generate": "takes a key alone: tests/relay/compositions/test_random.py",
    "random.threefry_split": "takes a key alone: tests/relay/compositions/test_random.py",
    "vision.roi_align_adaptive": "as many samples as values say: tests/frontends/onnx/operators",
    "sized": "brings sizes that values decide: tests/compiler/test_told_sizes.py",
    "qnn.rsqrt_shift": "a step of the integer layer norm, against LiteRT",
}
