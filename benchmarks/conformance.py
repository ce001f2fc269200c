"""Run the public conformance cases of the installed onnx package through Slipway.

    python benchmarks/conformance.py onnx                    # NumPy references (fast)
    python benchmarks/conformance.py onnx --engine llvm      # compiled for this machine
    python benchmarks/conformance.py onnx --only resize -v   # cases whose name holds a word
    python benchmarks/conformance.py onnx --engine opencl --every 8   # on a GPU, an eighth of them
    python benchmarks/conformance.py onnx --engine opencl --record seen.jsonl --beside llvm
    python benchmarks/conformance.py light --engine llvm     # the real networks of the package

Each case counts as passed, relaxed (right within two units in the last place of a half type, and
1e-6, but not within the suite's own tolerances), unsupported (the importer or compiler said so),
failed (an unexpected error) or WRONG (other numbers, shapes or types; of numbers that are drawn
other shapes or types, since each runtime draws its own, and of a Dropout elements that are neither
zero nor scaled).  Passed cases whose outputs
are all constants once the file is read, so that nothing is left to compile, are counted apart.  A
case is tried as it is, and, if unsupported, again
with its small integer inputs (shapes, axes, pads) turned into initialisers, which is what a
compiler for static shapes needs; then with every input of at most one axis pinned so (the scales
of a Resize, the depth of a OneHot).  All three counts are printed.

A record is a file of one line for each case.  A run that finds one leaves out the cases that it
holds, so that a long run may be stopped, and one that a driver ended goes on after the case
that did it, which counts as failed.  With `--beside`, each case that does not pass runs on a second
engine too, and those that pass there are told; with `--open`, each case whose outputs are constants
runs again with sizes that are open around its own, and small integers in ranges, or pinned.
"""

import argparse
import collections
import json
import sys
import traceback
import warnings
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
from onnx import numpy_helper

SMALL = 64  # elements of an integer input that is pinned
HALVES = (np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16))
GPUS = ("opencl", "vulkan", "cuda")
FOLDERS = ("pytorch-operator", "pytorch-converted", "simple")
VERDICTS = ("passed", "folded", "relaxed", "unsupported", "failed", "WRONG")  # best first
ENDED = "the process ended"
DRAWN = {
    "Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform",
    "RandomUniformLike",
}  # fmt: skip


class Case:
    """One model with its data sets; `rtol` and `atol` are the case's own."""

    def __init__(self, name, model, data_sets, rtol=1e-3, atol=1e-7):
        self.name, self.model, self.data_sets = name, model, data_sets
        self.rtol, self.atol = rtol, atol


def load_value(data):
    """Read a TensorProto, SequenceProto or OptionalProto file's bytes."""
    tensor = onnx.TensorProto()
    try:
        tensor.ParseFromString(data)
        return numpy_helper.to_array(tensor)
    except Exception:
        return data  # a sequence or an optional: not a tensor, and reported as unsupported


def as_array(value):
    """Return a tensor given as TensorProto or NumPy scalar as an array; others as they are."""
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    return np.asarray(value) if isinstance(value, np.generic) else value


def collect():
    """Return all cases: generated node cases and the stored single-operator models."""
    from onnx.backend.test.case.node import collect_testcases

    cases = [Case(c.name, c.model, c.data_sets, c.rtol, c.atol) for c in collect_testcases(None)]
    root = Path(onnx.__file__).parent / "backend" / "test" / "data"
    for folder in FOLDERS:
        for directory in sorted((root / folder).iterdir()):
            model = onnx.load(directory / "model.onnx")
            sets = []
            for data in sorted(directory.glob("test_data_set_*")):
                inputs, outputs = (
                    [
                        load_value((data / f"{kind}_{i}.pb").read_bytes())
                        for i in range(len(list(data.glob(f"{kind}_*.pb"))))
                    ]
                    for kind in ("input", "output")
                )
                sets.append((inputs, outputs))
            cases.append(Case(directory.name, model, sets))
    return cases


def collect_light():
    """Return the nine real networks of the package, with the inputs and results it states."""
    from onnx.backend.test.case.model import collect_testcases

    cases = []
    for case in collect_testcases():
        if case.kind != "real":
            continue
        folder = Path(onnx.__file__).parents[1] / case.url
        model = onnx.load(folder)
        known = {t.name for t in model.graph.initializer}
        inputs = []
        for info in model.graph.input:
            if info.name not in known:
                shape = [d.dim_value or 1 for d in info.type.tensor_type.shape.dim]
                count = np.prod(shape)
                inputs.append((np.arange(count).reshape(shape) / count).astype(np.float32))
        outputs = [
            load_value(folder.with_name(f"{folder.stem}_output_{i}.pb").read_bytes())
            for i in range(len(model.graph.output))
        ]
        cases.append(Case(case.name, model, [(inputs, outputs)], case.rtol, case.atol))
    return cases


def pinned(model, inputs, kinds):
    """Return the model with small inputs of these dtype kinds as initialisers, and the rest."""
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    kept_infos, kept_values = [], []
    for info, value in zip(model.graph.input, inputs, strict=False):
        small = isinstance(value, np.ndarray) and value.dtype.kind in kinds and value.size <= SMALL
        small = small and ("f" not in kinds or value.ndim <= 1)
        if small:
            changed.graph.initializer.append(numpy_helper.from_array(value, info.name))
        else:
            kept_infos.append(info)
            kept_values.append(value)
    del changed.graph.input[:]
    changed.graph.input.extend(kept_infos)
    return changed, kept_values


def shape_of(value):
    """What `shape=` says of an input: of a sequence its elements, of a missing optional None."""
    if isinstance(value, list):
        return [shape_of(np.asarray(v)) for v in value]
    return None if value is None else value.shape


def is_served(value):
    if isinstance(value, list):
        return all(is_served(v) for v in value)
    return value is None or (isinstance(value, np.ndarray) and value.dtype.kind not in "OUS")


def used_part(values, main):
    """Return the outputs; those with a count ("x" and "x.count") are cut to it."""
    names, axes = main.attr("output_names"), dict(main.attr("counted_outputs") or ())
    found, counts = [], {n.removesuffix(".count"): v for n, v in zip(names, values, strict=True)}
    for name, value in zip(names, values, strict=True):
        if name in axes:
            value = value.take(range(int(counts[name][0])), axis=axes[name])
        if name.removesuffix(".count") not in axes or name in axes:
            found.append(value)
    return found


def opened(feeds):
    """Return shapes that are open around those of the inputs, and ranges of small integers."""
    from slipway.relay import Dim

    shapes, ranges = {}, {}
    for name, value in feeds.items():
        shapes[name] = shape_of(value)
        if not isinstance(value, np.ndarray):
            continue
        if value.dtype.kind in "iu" and value.ndim <= 1 and 0 < value.size <= SMALL:
            ranges[name] = (int(value.min()), int(value.max()) + 1)
        else:
            shapes[name] = tuple(
                Dim(f"{name}_{axis}", max(extent - 1, 0), extent + 1)
                for axis, extent in enumerate(value.shape)
            )
    return shapes, ranges


def run(model, inputs, engine, is_open=False):
    """Import and run one model; return its outputs, and whether all of them are constants."""
    from slipway import relay
    from slipway.relay.interpret import interpret

    names = [i.name for i in model.graph.input]
    known = {t.name for t in model.graph.initializer}
    feeds = dict(zip([n for n in names if n not in known], inputs, strict=False))
    if len(feeds) < len(inputs):
        feeds = dict(zip(names, inputs, strict=True))
    feeds = {n: v for n, v in feeds.items() if n not in known}
    shapes, ranges = opened(feeds) if is_open else ({n: shape_of(v) for n, v in feeds.items()}, {})
    mod, _ = relay.frontend.from_onnx(model, shape=shapes, dims=ranges)
    for name, value in list(feeds.items()):  # a sequence is one input per element
        if not isinstance(value, np.ndarray):
            del feeds[name]
            feeds.update((f"{name}.{i}", np.asarray(v)) for i, v in enumerate(value or ()))
    main = mod["main"]
    folded = is_folded(main)
    if engine == "interpret":
        found = interpret(mod, **feeds)
        return used_part(list(found) if isinstance(found, tuple) else [found], main), folded
    from slipway.runtime import device
    from slipway.runtime.graph import graph_executor

    where = device(engine if engine in GPUS else "cpu", 0)
    module = graph_executor.GraphModule(relay.build(mod, target=engine)["default"](where))
    for name, value in feeds.items():
        module.set_input(name, value)
    module.run()
    found = [module.get_output(i).numpy() for i in range(module.get_num_outputs())]
    return used_part(found, main), folded


def is_folded(main):
    """Return whether every output of a function is a constant."""
    from slipway.relay.expr import Constant, Tuple

    results = main.body.fields if isinstance(main.body, Tuple) else (main.body,)
    return all(isinstance(result, Constant) for result in results)


def is_training(case):
    """Return whether a case is a Dropout that draws what it leaves out."""
    (first, *more), (inputs, _) = case.model.graph.node, case.data_sets[0]
    return not more and first.op_type == "Dropout" and len(inputs) == 3 and all(inputs[1:])


def as_dropped(case, got):
    """Return what a Dropout in training may give: a mask as it is; zeros, or scaled elements."""
    x, ratio, _ = map(as_array, case.data_sets[0][0])
    return got if got.dtype == bool else np.where(got == 0, 0, x / (1 - ratio)).astype(x.dtype)


def compare(case, found, wanted, relaxed=False):
    """Return None, or what differs."""
    if len(found) != len(wanted):
        return f"{len(found)} outputs, expected {len(wanted)}"
    for got, want in zip(found, wanted, strict=True):
        if not isinstance(want, np.ndarray):
            return f"output is a {type(want).__name__}"
        got = np.asarray(got)
        if got.shape != want.shape or got.dtype != want.dtype:
            return f"{got.dtype}{got.shape}, expected {want.dtype}{want.shape}"
        if any(node.op_type in DRAWN for node in case.model.graph.node):
            continue
        if is_training(case):
            want = as_dropped(case, got)
        rtol, atol = case.rtol, max(case.atol, 1e-6 if relaxed else 0.0)
        if relaxed and got.dtype in HALVES:  # two units in the last place, which is more than 1e-3
            rtol = max(rtol, 2 * float(ml_dtypes.finfo(got.dtype).eps))
        if got.dtype.kind == "V":  # a type of ml_dtypes
            got, want = got.astype(np.float32), want.astype(np.float32)
        try:
            np.testing.assert_allclose(got, want, rtol=rtol, atol=atol)
        except AssertionError as error:
            return " ".join(str(error).split())[:200]
    return None


def without_sizes(model):
    """Return a model that states no sizes of its inputs and results."""
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    for info in (*changed.graph.input, *changed.graph.output):
        if info.type.WhichOneof("value") == "tensor_type" and info.type.tensor_type.HasField(
            "shape"
        ):
            for dim in info.type.tensor_type.shape.dim:
                dim.Clear()
    return changed


def outcome(case, engine, pin="", is_open=False):
    """Return (verdict, note) of one case."""
    from slipway.errors import SlipwayError

    verdict, note = "folded", ""
    for inputs, wanted in case.data_sets:
        inputs, wanted = [as_array(v) for v in inputs], [as_array(v) for v in wanted]
        if not all(is_served(v) for v in (*inputs, *wanted)):
            return "unsupported", "strings"
        wanted = [v for value in wanted for v in (value if isinstance(value, list) else [value])]
        model = case.model
        if pin:
            model, inputs = pinned(model, inputs, pin)
        if is_open:
            model = without_sizes(model)
        try:
            found, folded = run(model, inputs, engine, is_open)
        except SlipwayError as error:
            return "unsupported", str(error).splitlines()[-1].strip()
        except Exception as error:
            frame = traceback.extract_tb(error.__traceback__)[-1]
            return "failed", f"{type(error).__name__}: {error} ({frame.filename}:{frame.lineno})"
        problem = compare(case, found, wanted)
        if problem is not None and compare(case, found, wanted, relaxed=True) is not None:
            return "WRONG", problem
        if problem is not None:
            verdict, note = "relaxed", problem
        elif not folded and verdict == "folded":
            verdict = "passed"
    return verdict, note


def outcomes(case, engine):
    """Return the verdicts of one case as it is, with integers and with all pinned, and the note."""
    verdicts = []
    for pin in ("", "iu", "iubf"):
        if not verdicts or verdicts[-1] == "unsupported":
            verdict, note = outcome(case, engine, pin)
        verdicts.append(verdict)
    return verdicts, note


def read_record(path):
    """Return {name: (verdicts, note)} of a record; a case that was begun and not ended, failed."""
    lines = path.read_text().splitlines() if path.exists() else []
    rows = [json.loads(line) for line in lines]
    return {
        row["name"]: (row.get("verdicts", ["failed"] * 3), row.get("note", ENDED)) for row in rows
    }


def run_cases(cases, engine, known, record):
    """Run the cases that are not known; return {name: (verdicts, note)} of all, as they come."""
    known = dict(known)
    for case in cases:
        if case.name not in known:
            if record:
                print(json.dumps({"name": case.name}), file=record, flush=True)
            verdicts, note = outcomes(case, engine)
            if record:
                row = {"name": case.name, "verdicts": verdicts, "note": note[:240]}
                print(json.dumps(row), file=record, flush=True)
            known[case.name] = (verdicts, note)
        yield case.name, *known[case.name]


def told_beside(found, cases, engine):
    """Print each case that another engine does better, and return how many there are."""
    rest = [c for c in cases if found[c.name][0][-1] not in ("passed", "folded")]
    worse = 0
    for case in rest:
        here, (*_, there) = found[case.name][0][-1], outcomes(case, engine)[0]
        if VERDICTS.index(here) > VERDICTS.index(there):
            worse += 1
            print(f"{case.name}: {there} on {engine}, {here} here: {found[case.name][1][:200]}")
    print(f"{len(rest)} cases not passed here, {worse} of them better on {engine}")
    return worse


def told_open(found, cases, engine):
    """Print what becomes of the constants where the sizes of their inputs are open."""
    folded = [c for c in cases if found[c.name][0][0] == "folded"]
    verdicts = collections.Counter()
    for case in folded:
        for pin in ("", "iu"):
            verdict, note = outcome(case, engine, pin, is_open=True)
            if verdict != "unsupported":
                break
        verdicts[verdict] += 1
        if verdict != "passed":
            print(f"{verdict:12s} {case.name} with open sizes: {note[:240]}", flush=True)
    text = ", ".join(f"{verdicts[k]} {k}" for k in VERDICTS)
    print(f"{len(folded)} that are constants, with open sizes: {text}")
    return verdicts["WRONG"] + verdicts["failed"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("suite", choices=["onnx", "light"])
    parser.add_argument("--engine", choices=["interpret", "llvm", "c", *GPUS], default="interpret")
    parser.add_argument("--only", default="", help="run the cases whose name holds this word")
    parser.add_argument("--every", type=int, default=1, help="run each so-manyth case only")
    parser.add_argument("--first", type=int, default=0, help="begin at this case")
    parser.add_argument("--record", type=Path, help="a file that keeps what came out")
    parser.add_argument("--beside", choices=["interpret", "llvm"], help="a second engine")
    parser.add_argument("--open", action="store_true", help="constants again with open sizes")
    parser.add_argument("-v", "--verbose", action="store_true", help="print every case not passed")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    gather = collect if args.suite == "onnx" else collect_light
    cases = [c for c in gather() if args.only in c.name][args.first :: args.every]
    known = read_record(args.record) if args.record else {}
    record = args.record.open("a") if args.record else None
    counts = [collections.Counter() for _ in range(3)]
    reasons, found = collections.Counter(), {}
    for name, verdicts, note in run_cases(cases, args.engine, known, record):
        found[name] = (verdicts, note)
        for counter, verdict in zip(counts, verdicts, strict=True):
            counter[verdict] += 1
        if verdict not in ("passed", "folded"):
            reasons[note.split(" x ")[0] if verdict == "unsupported" else verdict] += 1
            if args.verbose or verdict in ("WRONG", "failed", "relaxed"):
                print(f"{verdict:12s} {name}: {note[:240]}", flush=True)
    titles = ("as they are", "small integer inputs pinned", "all small vectors pinned")
    for title, counter in zip(titles, counts, strict=True):
        print(f"{len(cases)} cases, {title}: {', '.join(f'{counter[k]} {k}' for k in VERDICTS)}")
    for reason, count in reasons.most_common(60):
        print(f"  {count:4d} {reason[:120]}")
    worse = told_beside(found, cases, args.beside) if args.beside else 0
    worse += told_open(found, cases, args.engine) if args.open else 0
    return 1 if worse or counts[-1]["WRONG"] or counts[-1]["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
