"""Models with open sizes and loops, small, with weights drawn at random.

Each function returns the module, its parameters, inputs to try, and the reference.
"""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from slipway import relay
from slipway.relay.dims import Dim

node = helper.make_node
info = helper.make_tensor_value_info
RNG = np.random.default_rng(11)


def weights_of(values):
    return [numpy_helper.from_array(np.asarray(v), k) for k, v in values.items()]


def made(nodes, inputs, outputs, weights):
    graph = helper.make_graph(nodes, "g", inputs, outputs, weights_of(weights))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def by_onnx(model):
    """Return what runs a model by the onnx package's own reference, outputs as a list."""
    from onnx.reference import ReferenceEvaluator

    reference = ReferenceEvaluator(model)
    return lambda feeds: reference.run(None, feeds)


def detector():
    """A convolution over an image of open height, boxes of its cells, and those that are kept."""
    weights = {
        "w": (RNG.standard_normal((6, 3, 3, 3)) * 0.4).astype(np.float32),
        "four": np.int64([4]), "zero": np.int64([0]), "six": np.int64([6]), "one": np.int64([1]),
        "cells": np.int64([1, 6, -1]), "most": np.int64([5]), "overlap": np.float32([0.5]),
        "least": np.float32([0.92]), "two": np.int64([2]), "three": np.int64([3]),
    }  # fmt: skip
    nodes = [
        node("Conv", ["x", "w"], ["c"], strides=[4, 4], pads=[1, 1, 1, 1]),
        node("Sigmoid", ["c"], ["s"]), node("Reshape", ["s", "cells"], ["r"]),
        node("Slice", ["r", "zero", "four", "one"], ["sides"]),
        node("Transpose", ["sides"], ["boxes"], perm=[0, 2, 1]),
        node("Slice", ["r", "four", "six", "one"], ["scores"]),
        node("NonMaxSuppression", ["boxes", "scores", "most", "overlap", "least"], ["kept"],
             center_point_box=1),
        node("Slice", ["kept", "two", "three", "one"], ["place1"]),
        node("Squeeze", ["place1", "one"], ["place"]),
        node("Gather", ["boxes", "place"], ["found"], axis=1),
    ]  # fmt: skip
    model = made(
        nodes,
        [info("x", TensorProto.FLOAT, [1, 3, "h", 32])],
        [info("kept", TensorProto.INT64, None), info("found", TensorProto.FLOAT, None)],
        weights,
    )
    mod, params = relay.frontend.from_onnx(model, shape={"x": (1, 3, 8 * Dim("h", 1, 6), 32)})
    rng = np.random.default_rng(2)
    feeds = [{"x": rng.standard_normal((1, 3, 8 * h, 32)).astype(np.float32)} for h in (1, 6, 3, 4)]
    return mod, params, feeds, by_onnx(model)


def by_onnxruntime(model):
    """Return what runs a model by onnxruntime, outputs as a list."""
    import onnxruntime

    session = onnxruntime.InferenceSession(model.SerializeToString())
    return lambda feeds: session.run(None, feeds)


def scaled_image():
    """The nodes that scale an image: its shorter side to 12, and the longer one to 24 at most."""
    return [
        node("Shape", ["x"], ["shape"]), node("Slice", ["shape", "two", "four"], ["sides"]),
        node("Cast", ["sides"], ["floats"], to=1),
        node("ReduceMin", ["floats"], ["short"], keepdims=0),
        node("ReduceMax", ["floats"], ["long"], keepdims=0),
        node("Div", ["short_side", "short"], ["by_short"]),
        node("Div", ["long_side", "long"], ["by_long"]),
        node("Min", ["by_short", "by_long"], ["scale"]),
        node("Mul", ["floats", "scale"], ["exact"]), node("Floor", ["exact"], ["whole"]),
        node("Cast", ["whole"], ["wanted"], to=7), node("Slice", ["shape", "zero", "two"], ["n_c"]),
        node("Concat", ["n_c", "wanted"], ["sizes"], axis=0),
        node("Resize", ["x", "", "", "sizes"], ["image"], mode="linear"),
    ]  # fmt: skip


def chosen_boxes():
    """The nodes that choose boxes by their scores and overlap, or none where no score is high."""
    none = [node("Constant", [], ["no"], value=helper.make_tensor("no", 7, [0], []))]
    some = [
        node("Unsqueeze", ["corners", "zero"], ["batch"]),
        node("Unsqueeze", ["high", "zero_one"], ["classes"]),
        node("NonMaxSuppression", ["batch", "classes", "most", "overlap"], ["found"]),
        node("Slice", ["found", "two", "three", "one"], ["column"]),
        node("Squeeze", ["column", "one"], ["keep"]),
    ]
    branches = {
        name: helper.make_graph(nodes, name, [], [info(out, TensorProto.INT64, [size])])
        for name, nodes, out, size in (
            ("then_branch", none, "no", 0), ("else_branch", some, "keep", "k")
        )
    }  # fmt: skip
    return [
        node("Conv", ["image", "w"], ["c"], strides=[2, 2], pads=[1, 1, 1, 1]),
        node("Sigmoid", ["c"], ["s"]), node("Reshape", ["s", "cells"], ["rows"]),
        node("Transpose", ["rows"], ["each"], perm=[1, 0]),
        node("Slice", ["each", "zero", "four", "one"], ["raw"]),
        node("Gather", ["rows", "fifth"], ["scores"]),
        node("Greater", ["scores", "low"], ["is_high"]), node("NonZero", ["is_high"], ["at"]),
        node("Squeeze", ["at", "zero"], ["index"]), node("Gather", ["raw", "index"], ["boxes"]),
        node("Gather", ["scores", "index"], ["high"]), node("MatMul", ["boxes", "m"], ["rotated"]),
        node("Add", ["rotated", "shift"], ["corners"]), node("Shape", ["corners"], ["extents"]),
        node("ReduceProd", ["extents"], ["number"], keepdims=0),
        node("Equal", ["number", "nothing"], ["is_none"]),
        node("If", ["is_none"], ["kept"], **branches),
    ]  # fmt: skip


def two_stages():
    """As Faster R-CNN: an image scaled in floats, boxes or none, and a network on each box."""
    weights = {
        "w": RNG.standard_normal((6, 3, 3, 3)).astype(np.float32) * 0.4,
        "two": np.int64([2]), "three": np.int64([3]), "four": np.int64([4]), "one": np.int64([1]),
        "zero": np.int64([0]), "zero_one": np.int64([0, 1]), "fifth": np.int64(4),
        "nothing": np.int64(0), "cells": np.int64([6, -1]), "most": np.int64([50]),
        "overlap": np.float32([0.4]), "low": np.float32(0.6), "short_side": np.float32(12),
        "long_side": np.float32(24), "shift": np.float32([0, 0, 1, 1]),
        "m": np.float32([[10, 0, 10, 0], [0, 10, 0, 10], [0, 0, 8, 0], [0, 0, 0, 8]]),
        "dense": RNG.standard_normal((24, 3)).astype(np.float32),
    }  # fmt: skip
    nodes = [
        *scaled_image(), *chosen_boxes(), node("Slice", ["kept", "zero", "four"], ["few"]),
        node("Gather", ["corners", "few"], ["best"]), node("Shape", ["few"], ["size"]),
        node("ConstantOfShape", ["size"], ["numbers"], value=helper.make_tensor("v", 7, [1], [0])),
        node("RoiAlign", ["c", "best", "numbers"], ["parts"], output_height=2, output_width=2,
             sampling_ratio=2, spatial_scale=0.5),
        node("Flatten", ["parts"], ["flat"], axis=1), node("MatMul", ["flat", "dense"], ["kinds"]),
    ]  # fmt: skip
    model = made(
        nodes,
        [info("x", TensorProto.FLOAT, [1, 3, "h", "w_"])],
        [info("best", TensorProto.FLOAT, None), info("kinds", TensorProto.FLOAT, None)],
        weights,
    )
    mod, params = relay.frontend.from_onnx(model, dims={"h": (8, 30), "w_": (8, 30)}, counted=False)
    rng = np.random.default_rng(2)
    sizes = [(8, 8), (30, 30), (8, 30), (29, 9), (13, 17)]
    feeds = [{"x": rng.standard_normal((1, 3, *size)).astype(np.float32)} for size in sizes]
    feeds.append({"x": np.zeros((1, 3, 11, 12), np.float32)})  # no score is high
    return mod, params, feeds, by_onnxruntime(model)


BEAMS, WORDS, STEPS = 3, 11, 9


def beam_search():
    """Sequences of words by a table of how likely one follows another; it ends with all beams."""
    table = np.random.default_rng(4).standard_normal((WORDS, WORDS)).astype(np.float32) * 2
    table[:, 0] = -np.inf  # the word 0 ends a sequence, and only itself comes behind it
    table[:, 0] = table[:, 1:].max(1) + 0.5
    ended = np.full(WORDS, -4e9, np.float32)
    ended[0] = 0
    weights = {
        "table": table, "ended": ended, "zero": np.int64(0), "words": np.int64(WORDS),
        "flat": np.int64([-1]), "k": np.int64([BEAMS]), "last": np.int64([1]),
        "none": np.float32([[0]] + [[-1e9]] * (BEAMS - 1)), "yes": np.array(True),
    }  # fmt: skip
    body = helper.make_graph(
        [
            node("Gather", ["table", "now"], ["row"]),
            node("LogSoftmax", ["row"], ["chances"], axis=-1),
            node("Equal", ["now", "zero"], ["over"]),
            node("Unsqueeze", ["over", "last"], ["over1"]),
            node("Where", ["over1", "ended", "chances"], ["step"]),
            node("Add", ["score", "step"], ["sums"]), node("Reshape", ["sums", "flat"], ["all"]),
            node("TopK", ["all", "k"], ["best", "place"]),
            node("Div", ["place", "words"], ["parent"]), node("Mod", ["place", "words"], ["next"]),
            node("Unsqueeze", ["best", "last"], ["score_out"]),
            node("Cast", ["next"], ["word"], to=TensorProto.BOOL),
            node("Cast", ["word"], ["count"], to=TensorProto.INT64),
            node("ReduceMax", ["count"], ["left"], keepdims=0),
            node("Cast", ["left"], ["again"], to=TensorProto.BOOL),
        ],
        "body",
        [info("i", TensorProto.INT64, ()), info("going", TensorProto.BOOL, ()),
         info("now", TensorProto.INT64, (BEAMS,)), info("score", TensorProto.FLOAT, (BEAMS, 1))],
        [info("again", TensorProto.BOOL, ()), info("next", TensorProto.INT64, (BEAMS,)),
         info("score_out", TensorProto.FLOAT, (BEAMS, 1)),
         info("next", TensorProto.INT64, (BEAMS,)),
         info("parent", TensorProto.INT64, (BEAMS,))],
    )  # fmt: skip
    body.node.append(node("Identity", ["next"], ["written"]))
    body.output[3].name = "written"
    nodes = [
        node("Expand", ["first", "k"], ["start"]),
        node("Loop", ["steps", "yes", "start", "none"], ["end", "scores", "rows", "parents"],
             body=body),
    ]  # fmt: skip
    model = made(
        nodes,
        [info("first", TensorProto.INT64, [1])],
        [info(n, TensorProto.FLOAT if n == "scores" else TensorProto.INT64, None)
         for n in ("end", "scores", "rows", "parents")],
        {**weights, "steps": np.int64(STEPS)},
    )  # fmt: skip
    mod, params = relay.frontend.from_onnx(model)
    return mod, params, [{"first": np.int64([w])} for w in (3, 7, 1, 0)], by_onnx(model)


def mobile_net():
    """Depthwise and pointwise convolutions in MobileNet's order, for one to eight images."""
    import torch

    def layer(inner, outer, groups, stride, size):
        return torch.nn.Sequential(
            torch.nn.Conv2d(inner, outer, size, stride, size // 2, groups=groups, bias=False),
            torch.nn.BatchNorm2d(outer), torch.nn.ReLU6(),
        )  # fmt: skip

    torch.manual_seed(5)
    layers = [layer(3, 8, 1, 2, 3)]
    for inner, outer, stride in ((8, 16, 1), (16, 32, 2), (32, 32, 1), (32, 64, 2)):
        layers += [layer(inner, inner, inner, stride, 3), layer(inner, outer, 1, 1, 1)]
    ends = [torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(64, 10)]
    images = [torch.randn(n, 3, 32, 32) for n in (3, 8, 1, 5, 2)]
    return of_torch(torch.nn.Sequential(*layers, *ends), [(x,) for x in images],
                    [("x", ((Dim("n", 1, 8), 3, 32, 32), "float32"))])  # fmt: skip


def bert():
    """BERT of transformers with two open sizes, and a mask."""
    import torch
    from transformers import BertConfig, BertModel

    torch.manual_seed(0)
    config = BertConfig(vocab_size=99, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
                        intermediate_size=37, max_position_embeddings=64)  # fmt: skip

    class Encoder(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = BertModel(config)

        def forward(self, ids, mask):
            return self.model(input_ids=ids, attention_mask=mask).last_hidden_state

    values = []
    for size in ((2, 17), (1, 2), (3, 48), (1, 33)):
        mask = (torch.rand(size) > 0.2).long()
        mask[:, 0] = 1
        values.append((torch.randint(0, 99, size), mask))
    shape = ((Dim("rows", 1, 3), Dim("length", 2, 48)), "int64")
    return of_torch(Encoder(), values, [("ids", shape), ("mask", shape)])


def whisper():
    """Whisper's encoder and decoder of transformers, with an open number of tokens."""
    import torch
    from transformers import WhisperConfig, WhisperModel

    torch.manual_seed(0)
    config = WhisperConfig(
        vocab_size=99, d_model=32, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=48, decoder_ffn_dim=48, num_mel_bins=8,
        max_source_positions=32, max_target_positions=24, pad_token_id=0, bos_token_id=1,
        eos_token_id=2, decoder_start_token_id=1, use_cache=False,
    )  # fmt: skip

    class Both(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = WhisperModel(config)

        def forward(self, sound, ids):
            heard = self.model.encoder(sound).last_hidden_state
            said = self.model.decoder(input_ids=ids, encoder_hidden_states=heard, use_cache=False)
            return said.last_hidden_state

    values = [(torch.randn(1, 8, 64), torch.randint(0, 99, (1, n))) for n in (7, 1, 24, 2)]
    shapes = ((1, 8, 64), "float32"), ((1, Dim("length", 1, 24)), "int64")
    return of_torch(Both(), values, list(zip(("sound", "ids"), shapes, strict=True)))


def of_torch(model, values, infos):
    """Import a module with these inputs, values of which the first exports it."""
    import torch

    model = model.eval()
    names = [name for name, _ in infos]

    def reference(feeds):
        with torch.no_grad():
            return [model(*(torch.from_numpy(feeds[n]) for n in names)).numpy()]

    axes = [
        {a: torch.export.Dim(str(d), min=d.low, max=d.high) for a, d in enumerate(shape)
         if not isinstance(d, int)} for _, (shape, _) in infos
    ]  # fmt: skip
    program = torch.export.export(model, values[0], dynamic_shapes=tuple(axes), strict=False)
    mod, params = relay.frontend.from_pytorch(program, infos)
    feeds = [dict(zip(names, (v.numpy() for v in each), strict=True)) for each in values]
    return mod, params, feeds, reference
