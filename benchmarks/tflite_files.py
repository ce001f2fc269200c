"""Every .tflite file of a folder, compiled, run and held against LiteRT.

    python -m benchmarks tflite_files FOLDER [--runs 3] [--targets llvm,c] [--json FILE]

Needs ai-edge-litert.  Each file runs in a child process, so that what ends it is a finding too.
It is compiled from the file, saved as a shared object, loaded, and run on random inputs (the whole
range of integers); state is fed back from run to run, as LiteRT keeps its own.  The peer is
LiteRT's reference kernels, and its others where those lack an operator; matrix products are rounded
once, as it does (docs/quantization.md).

The last column is the largest difference: steps of an integer output, or parts of the largest
number of a real one.  A line is "equal", "differs", or "refused" with the reason; "no peer" where
LiteRT itself does not run the file.
"""

import argparse
import json
import os
import pickle
import signal
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

import slipway as tvm
from benchmarks._litert import without_bias_axes
from benchmarks.fuzz_graphs import campaign
from slipway import relay
from slipway.contrib import graph_executor
from slipway.errors import SlipwayError
from slipway.frontends.tflite.importer import initial_state
from slipway.frontends.tflite.reader import load_model

TOLERANCE = 1e-4  # of a real output, in parts of its largest number
LIMIT_S = 900.0


@dataclass
class Judged:
    """What became of one file on one target."""

    file: str
    target: str
    verdict: str
    worst: float = 0.0
    detail: str = ""


class Ours:
    """A model compiled here, with its state fed back."""

    def __init__(self, path: Path, target: str) -> None:
        mod, params = relay.frontend.from_tflite(path, dense_rounding="single")
        self.params = mod["main"].params
        self.state = initial_state(path)
        with tvm.transform.PassContext(opt_level=3):
            library = relay.build(mod, target=target, params=params)
        with tempfile.TemporaryDirectory() as folder:
            library.export_library(f"{folder}/model.so")
            loaded = tvm.runtime.load_module(f"{folder}/model.so")
            self.module = graph_executor.GraphModule(loaded["default"](tvm.cpu(0)))

    def __call__(self, inputs: list) -> list:
        given = iter(inputs)
        for parameter in self.params:
            name = parameter.name
            value = self.state[name] if name in self.state else next(given)
            self.module.set_input(name, value)
        self.module.run()
        found = [self.module.get_output(i).numpy() for i in range(self.module.get_num_outputs())]
        count = len(found) - len(self.state)
        self.state = dict(zip(self.state, found[count:], strict=True))
        return found[:count]


def peer_of(path: Path):
    """Return LiteRT's interpreter of a file; raise where there is none."""
    from ai_edge_litert import interpreter

    kinds = interpreter.OpResolverType
    problem: Exception | None = None
    for kind in (kinds.BUILTIN_REF, kinds.BUILTIN_WITHOUT_DEFAULT_DELEGATES, kinds.AUTO):
        try:
            peer = interpreter.Interpreter(
                model_content=without_bias_axes(path.read_bytes()),
                experimental_op_resolver_type=kind,
            )
            peer.allocate_tensors()
            return peer
        except (ValueError, RuntimeError) as error:
            problem = error
    raise LookupError(str(problem).strip().splitlines()[0])


def stated_sizes(path: Path) -> dict[int, tuple[int, ...]]:
    """Return what inputs hold that are the size of a transposed convolution, by position."""
    graph = load_model(path).subgraphs[0]
    return {
        graph.inputs.index(o.inputs[0]): graph.tensors[o.outputs[0]].shape
        for o in graph.operators
        if o.kind == "TRANSPOSE_CONV" and o.inputs[0] in graph.inputs
    }


def random_inputs(parameters, rng):
    """Return an array for each parameter: the whole range of bytes, or normal numbers."""
    made = []
    for parameter in parameters:
        shape, kind = parameter.tensor_type.shape, np.dtype(parameter.tensor_type.dtype)
        if kind == np.bool_:
            made.append(rng.integers(0, 2, shape).astype(kind))
        elif kind.kind in "iu":
            info = np.iinfo(kind if kind.itemsize <= 2 else np.int8)
            made.append(rng.integers(info.min, info.max, shape, endpoint=True).astype(kind))
        else:
            made.append(rng.standard_normal(shape).astype(kind))
    return made


def distance(found: np.ndarray, wanted: np.ndarray) -> float:
    """Return how far two outputs are apart: steps, or parts of the largest number."""
    if found.shape != wanted.shape or found.dtype != wanted.dtype:
        return float("inf")
    if not wanted.size:
        return 0.0
    if wanted.dtype.kind in "iub":
        return float(np.abs(found.astype(np.int64) - wanted.astype(np.int64)).max())
    apart = np.abs(found.astype(np.float64) - wanted)
    same = (found == wanted) | (np.isnan(found) & np.isnan(wanted))
    if np.isnan(apart[~same]).any():
        return float("inf")
    largest = np.abs(wanted[np.isfinite(wanted)]).max(initial=0.0)
    return float(apart[~same].max(initial=0.0) / max(largest, 1e-30))


def peers_answers(path: Path, runs: list) -> list:
    """Return LiteRT's outputs for a list of inputs, from a child: some files end it."""
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "result.pickle"
        child = os.fork()
        if child == 0:
            status = 1
            try:
                result.write_bytes(pickle.dumps(_peers_answers(path, runs)))
                status = 0
            finally:
                os._exit(status)
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status):
            name = signal.Signals(os.WTERMSIG(status)).name
            raise LookupError(f"LiteRT ends the process with {name}")
        answer = pickle.loads(result.read_bytes())  # this process's own child wrote it
    if isinstance(answer, str):
        raise LookupError(answer)
    return answer


def _peers_answers(path: Path, runs: list) -> list | str:
    try:
        peer = peer_of(path)
        details, found = peer.get_input_details(), []
        for inputs in runs:
            for detail, value in zip(details, inputs, strict=True):
                peer.set_tensor(detail["index"], value.reshape(detail["shape"]))
            peer.invoke()
            found.append([peer.get_tensor(d["index"]) for d in peer.get_output_details()])
    except (LookupError, RuntimeError, ValueError) as error:
        return str(error).strip().splitlines()[0][:300]
    return found


def judge(path: Path, target: str, runs: int) -> Judged:
    """Compile, run and compare one file."""
    try:
        ours = Ours(path, target)
    except SlipwayError as error:
        return Judged(path.name, target, "refused", 0.0, " ".join(str(error).split())[:300])
    rng = np.random.default_rng(7)
    needed = [p for p in ours.params if p.name not in ours.state]
    sizes, given = stated_sizes(path), []
    for _ in range(runs):
        inputs = random_inputs(needed, rng)
        for position, size in sizes.items():
            inputs[position] = np.array(size, inputs[position].dtype)
        given.append(inputs)
    found = [ours(inputs) for inputs in given]
    try:
        wanted = peers_answers(path, given)
    except LookupError as error:
        return Judged(path.name, target, "no peer", 0.0, str(error))
    pairs = [p for both in zip(found, wanted, strict=True) for p in zip(*both, strict=True)]
    worst = max(distance(got, want) for got, want in pairs)
    return Judged(path.name, target, verdict_of(worst, [want for _, want in pairs]), worst)


def verdict_of(worst: float, wanted: list) -> str:
    """Return the word for a distance."""
    integers = all(w.dtype.kind in "iub" for w in wanted)
    return "equal" if worst <= (0 if integers else TOLERANCE) else "differs"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--runs", type=int, default=3, help="on random inputs, state fed back")
    parser.add_argument("--targets", default="llvm", help="llvm, c, or both with a comma")
    parser.add_argument("--json", type=Path, help="write every file's line here")
    options = parser.parse_args()
    files = sorted(options.folder.rglob("*.tflite"))
    if not files:
        print(f"no .tflite file lies under {options.folder}")
        return 2
    found: list[Judged] = []
    for target in options.targets.split(","):
        work = [(path, target) for path in files]
        for (path, _), line in zip(work, answers(work, options.runs), strict=True):
            line.file = str(path.relative_to(options.folder))
            found.append(line)
            if line.verdict != "equal":
                print(f"{target} {line.file}: {line.verdict} {line.worst:.3g} {line.detail}")
        print(summary([f for f in found if f.target == target], target), flush=True)
    if options.json:
        options.json.write_text(json.dumps([asdict(f) for f in found], indent=1))
    return 0 if all(f.verdict in ("equal", "no peer") for f in found) else 1


def answers(work, runs):
    """Yield the line of each (path, target), tried in children."""

    def one(number: int) -> str:
        return json.dumps(asdict(judge(*work[number], runs)))

    for finding in campaign.isolated(one, range(len(work)), LIMIT_S):
        path, target = work[finding.seed]
        try:
            yield Judged(**json.loads(finding.problem))
        except ValueError:
            yield Judged(path.name, target, "failed", float("inf"), finding.problem)


def summary(lines: list[Judged], target: str) -> str:
    """Return one line of counts."""
    count = {}
    for line in lines:
        count[line.verdict] = count.get(line.verdict, 0) + 1
    listed = ", ".join(f"{n} {v}" for v, n in sorted(count.items()))
    return f"{target}: {len(lines)} files: {listed}"
