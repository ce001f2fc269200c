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
# What has tests of its own against other runtimes, and no rule here yet.
NOT_DRAWN = {
    "annotation.compiler_begin": "a mark of parts for an accelerator, gone before code is made",
    "annotation.compiler_end": "a mark of parts for an accelerator, gone before code is made",
    "annotation.checkpoint": "the value itself: tests/relay/test_annotation.py",
    "annotation.on_device": "the value itself: tests/compiler/devices/test_several_devices.py",
    "device_copy": "the value itself: tests/compiler/devices/test_several_devices.py",
    "annotation.stop_fusion": "the value itself: tests/relay/test_annotation.py",
    "vision.suppress_boxes": "greedy: one rounding changes everything after it",
    "nn.deformable_im2col": "tests/relay/test_float64_positions.py, tests/frontends",
    "branch": "functions of its own: tests/transform/graph/test_outline_branches.py, ONNX",
    "while_loop": "functions of its own: tests/relay/test_control.py, ONNX",
    "scan": "a loop over a function of its own, against PyTorch and ONNX Runtime",
    "nn.block_dense": "bytes of weights: tests/relay/operators, tests/llm",
    "nn.block_take": "bytes of weights: tests/relay/operators, tests/llm",
    "nn.contrib_block_dense": "drawn as what it is packed from",
    "nn.cached_attention": "writes its inputs: tests/relay/operators, tests/llm",
    "nn.rotary_embedding": "tables of angles: tests/relay/operators, tests/llm",
    "shape_of": "a constant where shapes are fixed; tests/frontends/onnx/test_onnx_size_values.py",
    "vision.roi_align": "tests/relay/test_float64_positions.py, tests/frontends",
    "vision.select_boxes": "greedy: one rounding changes everything behind it",
    "nn.float_parts": "bfloat16 with denormal numbers: tests/compiler/numerics/test_precision.py",
    "qnn.avg_pool2d": "tests/frontends/tflite against LiteRT",
    "qnn.normalize": "a step of the integer softmax, against LiteRT",
    "qnn.reciprocal": "a step of the integer softmax, against LiteRT",
    "qnn.rescale": "drawn as qnn.op.requantize",
    "qnn.rsqrt_multiplier": "a step of the integer layer norm, against LiteRT",
    "qnn.rsqrt_shift": "a step of the integer layer norm, against LiteRT",
}
