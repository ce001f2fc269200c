"""Layers tuned here, timed in the same rounds as MetaSchedule's winners and onnxruntime."""

import json
import os
import select
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.tuning.layers import module_of
from slipway import relay
from slipway.relay.interpret import interpret
from slipway.tuning.measure import numeric_difference
from slipway.tuning.model_bench import ModelBench
from slipway.tuning.session import ModelSession, interleaved
from slipway.tuning.space import candidate_of

PEER = "SLIPWAY_TVM_PYTHON"  # names the Python of an environment that has apache-tvm
ANSWER_S = 180.0  # for what is no search: a layer compiles, or the libraries load
SLACK = 3.0  # times its seconds: the search ends when the batch that it is in has ended


class PeerError(Exception):
    """The other side gave no answer, or an error."""


class MetaSchedule:
    """apache-tvm's search and its winners, in a process of its own environment."""

    def __init__(self, python):
        self.folder = tempfile.TemporaryDirectory()
        self.log = Path(self.folder.name, "log")
        self._unread = b""
        with self.log.open("w") as log:
            self._process = subprocess.Popen(
                [python, str(Path(__file__).with_name("metaschedule.py")), self.folder.name],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, bufsize=0,
                env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"},
            )  # fmt: skip

    def ask(self, request, limit_s=ANSWER_S):
        """Return the answer to a request; PeerError where there is none in time."""
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            answer = json.loads(self._line(time.monotonic() + limit_s))
        except OSError as error:
            raise PeerError(f"its process ended ({error}): {self._last_words()}") from error
        if "error" in answer:
            raise PeerError(answer["error"])
        return answer

    def search(self, layers, seconds, population):
        """Search the layers for so many seconds; return its trials and the seconds it took."""
        request = {"search": layers, "seconds": seconds, "population": population}
        return self.ask(request, SLACK * seconds + 4 * ANSWER_S)

    def prepare(self, name, inputs):
        """Compile a layer with its winner; return whether it has one, and the layer's output."""
        path = Path(self.folder.name, "arrays.npz")
        np.savez(path, **inputs)
        has_record = self.ask({"load": name, "arrays": str(path)})["has_record"]
        with np.load(path) as arrays:
            return has_record, arrays["output"]

    def seconds(self, name, number):
        """Return the seconds of a run of a layer, the mean of so many."""
        return self.ask({"run": name, "number": number})["seconds"]

    def close(self):
        self._process.kill()
        self._process.communicate()
        self.folder.cleanup()

    def _line(self, deadline):
        while b"\n" not in self._unread:
            left = max(0.0, deadline - time.monotonic())
            if not select.select([self._process.stdout], [], [], left)[0]:
                raise PeerError(f"no answer in time: {self._last_words()}")
            part = os.read(self._process.stdout.fileno(), 65536)
            if not part:
                raise PeerError(f"its process ended: {self._last_words()}")
            self._unread += part
        line, _, self._unread = self._unread.partition(b"\n")
        return line

    def _last_words(self):
        return " | ".join(self.log.read_text(errors="replace").splitlines()[-3:])


def onnx_runner(layer, inputs):
    """Return a function (number) -> seconds of a run of a layer in onnxruntime, and its output."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        onnx_model(layer, inputs), options, providers=["CPUExecutionProvider"]
    )
    binding = session.io_binding()
    for port in session.get_inputs():
        value = inputs[port.name]
        # Its convolutions of integers take unsigned data, with a zero.
        is_shifted = "uint8" in port.type and value.dtype == np.int8
        binding.bind_cpu_input(port.name, _shifted(value) if is_shifted else value)
    binding.bind_output("out")

    def seconds(number):
        start = time.perf_counter()
        for _ in range(number):
            session.run_with_iobinding(binding)
        return (time.perf_counter() - start) / number

    seconds(1)
    return seconds, binding.copy_outputs_to_cpu()[0]


def _shifted(value):
    return (value.astype("int16") + 128).astype("uint8")


def onnx_model(layer, inputs):
    """Return a layer as the bytes of an ONNX model, its weight a constant."""
    from onnx import TensorProto, helper, numpy_helper

    kind, data_shape, weight_shape, stride, groups, dtype = layer
    is_int8 = dtype == "int8"
    of = TensorProto.UINT8 if is_int8 else TensorProto.FLOAT
    out = TensorProto.INT32 if is_int8 else TensorProto.FLOAT
    ports = [helper.make_tensor_value_info("data", of, data_shape)]
    weight, nodes, arguments = inputs["weight"], [], ["data", "weight"]
    if kind == "conv":
        pads = [k // 2 for k in weight_shape[2:]] * 2
        nodes.append(
            helper.make_node(
                "ConvInteger" if is_int8 else "Conv", arguments, ["out"], pads=pads,
                strides=[stride, stride], group=groups,
            )
        )  # fmt: skip
    elif kind == "dense":
        weight = np.ascontiguousarray(weight.T)
        nodes.append(helper.make_node("MatMulInteger" if is_int8 else "MatMul", arguments, ["out"]))
    else:
        ports.append(helper.make_tensor_value_info("weight", of, weight_shape))
        nodes.append(helper.make_node("Transpose", ["weight"], ["transposed"], perm=[0, 2, 1]))
        nodes.append(helper.make_node("MatMul", ["data", "transposed"], ["out"]))
    constants = [] if kind == "batch_matmul" else [numpy_helper.from_array(weight, "weight")]
    if is_int8:
        nodes[0].input.append("zero")
        constants.append(numpy_helper.from_array(np.uint8(128), "zero"))
    results = [helper.make_tensor_value_info("out", out, None)]
    graph = helper.make_graph(nodes, "layer", ports, results, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 9
    return model.SerializeToString()


def compare_beside(layers, target, database, runner, rounds, peer, folder):
    """Return a row for each layer: milliseconds of each, and the ratios of what was tuned."""
    rows = []
    for name, layer in layers.items():
        rows.append(_compared(name, layer, target, database, runner, rounds, peer, folder))
        print(f"{name}: {rows[-1]['ms']}", file=sys.stderr, flush=True)
    return rows


def _compared(name, layer, target, database, runner, rounds, peer, folder):
    module, params = module_of(layer)
    runs, outputs, has_record = {}, {}, False
    with ModelBench(module, target, params, runner, folder) as bench:
        paths = {"untuned": bench.build([])}
        with database:
            paths["tuned"] = folder / f"tuned_{name}{target.upload_suffix}"
            relay.build(module, target, params=params).export_library(str(paths["tuned"]))
        inputs = {**params, **bench.inputs}
    session = ModelSession(runner.open(), bench.inputs)
    try:
        for which, path in paths.items():
            outputs[which] = session.results(path)
            runs[which] = lambda number, path=path: session.seconds(path, number)
        if peer is not None:
            try:
                has_record, outputs["metaschedule"] = peer.prepare(name, inputs)
                runs["metaschedule"] = lambda number: peer.seconds(name, number)
            except PeerError as error:
                print(f"MetaSchedule, {name}: {error}", file=sys.stderr)
        runs["onnxruntime"], outputs["onnxruntime"] = onnx_runner(layer, inputs)
        candidates = {candidate_of(which, {}): which for which in runs}
        measured = interleaved(
            lambda candidate, number: runs[candidates[candidate]](number), list(candidates), rounds
        )
    finally:
        session.close()
    times = {candidates[c]: seconds for c, seconds in measured.items()}
    wanted = [np.asarray(interpret(module, params=params, **bench.inputs))]
    wrong = {
        which: numeric_difference(got if isinstance(got, list) else [got], wanted)
        for which, got in outputs.items()
    }
    over = {
        which: statistics.median(a / b for a, b in zip(times["tuned"], seconds, strict=False))
        for which, seconds in times.items()
        if which != "tuned"
    }
    return {
        "layer": name,
        "ms": {which: statistics.median(seconds) * 1e3 for which, seconds in times.items()},
        "over": over,
        "has_record": has_record,
        "wrong": {which: text for which, text in wrong.items() if text},
    }


def print_beside(rows, searched):
    """Print the rows as a table, and the means; `searched` is what each search took."""
    others = ("untuned", "metaschedule", "onnxruntime")
    print("| layer | untuned ms | tuned | MetaSchedule | onnxruntime | tuned / untuned "
          "| / MetaSchedule | / onnxruntime |")  # fmt: skip
    print("| --- |" + " ---: |" * 7)
    for row in rows:
        cells = [_cell(row["ms"].get(which), 4) for which in ("untuned", "tuned", *others[1:])]
        ratios = {**row["over"]}
        if not row["has_record"]:
            ratios.pop("metaschedule", None)
        cells += [_cell(ratios.get(which), 2) for which in others]
        wrong = "".join(f" WRONG {which}: {text}" for which, text in row["wrong"].items())
        print(f"| {row['layer']} | {' | '.join(cells)} |{wrong}")
    for which in others:
        of = [
            r for r in rows if which in r["over"] and (which != "metaschedule" or r["has_record"])
        ]
        ratios = [row["over"][which] for row in of]
        if ratios:
            print(
                f"tuned over {which}: geometric mean {statistics.geometric_mean(ratios):.3f}, "
                f"slowest {max(ratios):.2f}, of {len(ratios)} layers"
            )
    for which, (trials, seconds) in searched.items():
        print(f"{which}: {trials} trials in {seconds:.0f} s")


def _cell(value, digits):
    return "-" if value is None else f"{value:.{digits}f}"
