"""fp32 GEMM and a 3x3 convolution scheduled by hand in te, beside OpenBLAS and ONNX Runtime.

Run ``python -m benchmarks.gemm [--json FILE]`` from the repository's root.  Everything runs on
one thread, and its processor time is what counts, so that other programs disturb less.  All
contestants take turns in each round, on the same inputs; the table gives the median over the
rounds, its spread (quartiles), and the share of this core's fused-multiply-add peak, which is
measured in the same rounds by a loop that does nothing else.
"""

import argparse
import json
import os
import time

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"
os.environ["SLIPWAY_NUM_THREADS"] = "1"

import numpy as np  # noqa: E402  (the thread limits above must be set first)

import slipway as tvm  # noqa: E402
from slipway import te  # noqa: E402

TARGET = "llvm -mcpu=native"
LANES = tvm.target.Target(TARGET).vector_bits // 32
# AVX-512 and ARM have 32 registers, in which larger tiles fit than in AVX2's 16: accumulators of
# the loop of multiply-adds, (rows, vectors) of the product's tile, (columns, vectors) of the
# convolution's.
CHAINS, TILE, STRIP = (12, (6, 2), (4, 2)) if LANES == 8 else (24, (4, 4), (14, 2))


def peak_kernel(accumulators=CHAINS, steps=20000):
    """Independent chains acc = acc * x + y: as many fused multiply-adds as the core can do."""
    x = te.placeholder((LANES,), name="x")
    k = te.reduce_axis((0, steps), "k")
    fma = te.comm_reducer(lambda a, b: a * 0.5 + b, lambda t: te.const(0, t), name="fma")
    c = te.compute((accumulators, LANES), lambda i, v: fma(x[v], axis=k), name="c")
    s = te.create_schedule(c.op)
    cc = s.cache_write(c, "local")
    ic, vc = s[cc].op.axis
    s[cc].reorder(k, ic, vc)
    s[cc].unroll(ic)
    s[cc].vectorize(vc)
    s[c].unroll(c.op.axis[0])
    s[c].vectorize(c.op.axis[1])
    flop = 2 * accumulators * LANES * steps
    return tvm.build(s, [x, c], TARGET), flop, (LANES,), (accumulators, LANES)


def gemm(m, n, depth, tile=TILE, unroll=2):
    """C = A @ B: a tile of a few rows by vectors in registers, each column panel of B packed."""
    rows, vectors = tile
    width = vectors * LANES
    a, b = te.placeholder((m, depth), name="A"), te.placeholder((depth, n), name="B")
    panel = te.compute(
        (n // width, depth, width), lambda j, k, v: b[k, j * width + v], name="panel"
    )
    k = te.reduce_axis((0, depth), "k")
    c = te.compute(
        (m, n), lambda i, j: te.sum(a[i, k] * panel[j // width, k, j % width], axis=k), name="C"
    )
    # schedule
    s = te.create_schedule(c.op)
    sums = s.cache_write(c, "local")
    io, jo, ii, ji = s[c].tile(*c.op.axis, rows, width)
    s[c].reorder(jo, io, ii, ji)
    s[c].unroll(ii)
    s[c].vectorize(ji)
    s[panel].compute_at(s[c], jo)  # a panel stays in the L2 cache while all rows go past it
    s[panel].vectorize(panel.op.axis[2])
    s[sums].compute_at(s[c], io)
    ic, jc = s[sums].op.axis
    ko, ki = s[sums].split(k, unroll)
    s[sums].reorder(ko, ki, ic, jc)
    s[sums].unroll(ki)
    s[sums].unroll(ic)
    s[sums].vectorize(jc)
    return s, [a, b, c]


def conv2d(channels=64, size=56, strip=STRIP, unroll=2):
    """A 3x3 convolution in blocks of channels: points by vectors are summed in registers."""
    columns, vectors = strip
    blocks, edge = channels // LANES, size + 2
    data = te.placeholder((blocks, edge, edge, LANES), name="data")
    kernel = te.placeholder((blocks, blocks, 3, 3, LANES, LANES), name="kernel")
    ci, cv = te.reduce_axis((0, blocks), "ci"), te.reduce_axis((0, LANES), "cv")
    dy, dx = te.reduce_axis((0, 3), "dy"), te.reduce_axis((0, 3), "dx")
    conv = te.compute(
        (blocks, size, size, LANES),
        lambda o, y, x, v: te.sum(
            data[ci, y + dy, x + dx, cv] * kernel[o, ci, dy, dx, cv, v], axis=[ci, cv, dy, dx]
        ),
        name="conv",
    )
    # schedule
    s = te.create_schedule(conv.op)
    tile = s.cache_write(conv, "local")
    o, y, x, v = conv.op.axis
    oo, oi = s[conv].split(o, vectors)
    xo, xi = s[conv].split(x, columns)
    s[conv].reorder(oo, y, xo, oi, xi, v)
    s[conv].unroll(oi)
    s[conv].unroll(xi)
    s[conv].vectorize(v)
    s[tile].compute_at(s[conv], xo)
    oc, yc, xc, vc = s[tile].op.axis
    co, cu = s[tile].split(cv, unroll)
    s[tile].reorder(yc, ci, dy, dx, co, cu, xc, oc, vc)
    for axis in (cu, oc, xc):
        s[tile].unroll(axis)
    s[tile].vectorize(vc)
    return s, [data, kernel, conv]


def onnx_session(op, inputs, output, **attributes):
    """An ONNX Runtime session of one operator, or None where it is not installed."""
    try:
        import onnx
        import onnxruntime
    except ImportError:
        return None
    node = onnx.helper.make_node(op, list(inputs), ["out"], **attributes)
    info = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        [node],
        "one",
        [info(name, 1, value.shape) for name, value in inputs.items()],
        [info("out", 1, output)],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)])
    model.ir_version = 9
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return lambda: session.run(None, inputs)[0]


def gemm_contest(size, rng):
    """The contestants of one square GEMM: (name, function), FLOP per call."""
    x, y = (rng.random((size, size), dtype=np.float32) - 0.5 for _ in range(2))
    s, args = gemm(size, size, size)
    module = tvm.build(s, args, TARGET)
    buffers = [tvm.nd.array(v) for v in (x, y, np.zeros((size, size), np.float32))]
    module(*buffers)
    np.testing.assert_allclose(buffers[2].numpy(), x @ y, rtol=1e-3, atol=1e-3)
    out = np.empty((size, size), np.float32)
    contest = [
        ("slipway", lambda: module(*buffers)),
        ("OpenBLAS", lambda: np.matmul(x, y, out=out)),
    ]
    session = onnx_session("MatMul", {"a": x, "b": y}, (size, size))
    if session is not None:
        contest.append(("onnxruntime", session))
    return contest, 2 * size**3


def conv_contest(rng, channels=64, size=56):
    """The contestants of the convolution: (name, function), FLOP per call."""
    image = rng.random((1, channels, size, size), dtype=np.float32) - 0.5
    weight = rng.random((channels, channels, 3, 3), dtype=np.float32) - 0.5
    s, args = conv2d(channels, size)
    module = tvm.build(s, args, TARGET)
    blocks = channels // LANES
    padded = np.pad(image[0], ((0, 0), (1, 1), (1, 1)))
    data = padded.reshape(blocks, LANES, size + 2, size + 2).transpose(0, 2, 3, 1)
    kernel = weight.reshape(blocks, LANES, blocks, LANES, 3, 3).transpose(0, 2, 4, 5, 3, 1)
    result = np.zeros((blocks, size, size, LANES), np.float32)
    buffers = [tvm.nd.array(np.ascontiguousarray(v)) for v in (data, kernel, result)]
    module(*buffers)
    contest = [("slipway", lambda: module(*buffers))]
    session = onnx_session(
        "Conv", {"x": image, "w": weight}, image.shape, pads=[1, 1, 1, 1], kernel_shape=[3, 3]
    )
    if session is not None:
        got = buffers[2].numpy().transpose(0, 3, 1, 2).reshape(image.shape)
        np.testing.assert_allclose(got, session(), rtol=1e-3, atol=1e-3)
        contest.append(("onnxruntime", session))
    return contest, 2 * size * size * channels * channels * 9


def measure(contest, flop, peak, rounds):
    """Let everybody take turns; return rows of (name, GFLOP/s quartiles, share of the peak)."""
    peak_module, peak_flop, *peak_shapes = peak
    peak_buffers = [tvm.nd.array(np.full(s, 0.5, np.float32)) for s in peak_shapes]
    rates = {name: [] for name, _ in contest}
    rates["peak"] = []
    for _ in range(rounds):
        for name, function in [("peak", lambda: peak_module(*peak_buffers)), *contest]:
            function()
            start = time.thread_time()
            function()
            spent = time.thread_time() - start
            rates[name].append((peak_flop if name == "peak" else flop) / spent / 1e9)
    top = float(np.median(rates.pop("peak")))
    rows = []
    for name, values in rates.items():
        low, middle, high = (float(v) for v in np.percentile(values, [25, 50, 75]))
        rows.append(
            {"name": name, "gflops": middle, "low": low, "high": high, "of_peak": middle / top}
        )
    return top, rows


def main():
    """Print the table; write it as JSON where asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15, help="turns of each contestant")
    parser.add_argument("--json", help="file to write the figures to")
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    peak = peak_kernel()
    results = []
    contests = [(f"GEMM {n}", gemm_contest, (n, rng)) for n in (512, 1024, 2048)]
    contests.append(("conv 3x3 64x56x56", conv_contest, (rng,)))
    print(f"{'case':<20}{'who':<14}{'GFLOP/s':>9}{'quartiles':>16}{'of peak':>9}")
    for case, make, arguments in contests:
        contest, flop = make(*arguments)
        top, rows = measure(contest, flop, peak, options.rounds)
        for row in rows:
            spread = f"{row['low']:.0f}..{row['high']:.0f}"
            print(
                f"{case:<20}{row['name']:<14}{row['gflops']:>9.1f}{spread:>16}{row['of_peak']:>9.1%}"
            )
            results.append({"case": case, "peak_gflops": top, **row})
        print(f"{case:<20}{'FMA peak':<14}{top:>9.1f}")
    if options.json:
        with open(options.json, "w") as file:  # noqa: PTH123
            json.dump(results, file, indent=1)


if __name__ == "__main__":
    main()
