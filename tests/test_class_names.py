"""A class name means one thing: where two classes have one, both mean it, or the field says so."""

import re
from collections import defaultdict
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "src" / "slipway"
# Read as text: to parse the whole package takes seconds.
CLASS = re.compile(r"^class ([A-Za-z]\w*)", re.MULTILINE)

# A name -> why several classes have it.
SHARED = {
    # The same thing in the two languages, as the field calls it in both.
    **dict.fromkeys(("Call", "Let", "Var"), "of relay and of loops"),
    "Schedule": "tensor expressions (te) and blocks (tir): classic names of both",
    "Block": "classic tir.Block; and what is placed in memory",
    "Report": "classic runtime.profiling.Report; and a page about a model",
    "Constant": "relay's, and MXNet's initialiser of that name",
    "Instruction": "classic tir.schedule.Instruction, a step of a trace; and of SPIR-V",
    "Value": "classic relay.backend.interpreter.Value; and a value of a kernel in SSA form",
    # The classic tuners, whose scripts import these from each of them.
    **dict.fromkeys(
        (
            "ApplyHistoryBest", "LocalBuilder", "LocalRunner", "LoggedTask",
            "MeasureInput", "MeasureResult", "RPCRunner", "CostModel", "RandomModel", "XGBModel",
            "TaskScheduler", "BuildResult", "MeasureCallback",
        ),
        "of classic tuners",
    ),
    **dict.fromkeys(
        ("Builder", "Database", "Runner"), "classic meta_schedule's for scripts; the engine's"
    ),
    "TensorInfo": "classic meta_schedule.arg_info's; and a tensor of a GGUF file",
    "Mutator": "classic tir.stmt_functor.StmtMutator's base; and classic meta_schedule.mutator's",
    # One role in several places.
    "NodeView": "what a converter sees, of each model format",
    "GraphNode": "a step of a graph, while it is compiled and when it is loaded",
    "Plan": "what was planned: memory, or scales of quantised tensors",
    "RemoteDevice": "what the runtime asks of a remote device, and the device of a session",
    "Transport": "a byte stream to a device, and what a board's project offers",
    "Memory": "of a board, and of a kernel",
    "Writer": "writes code: LLVM's text, or a library of GPU kernels",
    "Role": "of a stage in a schedule, and of a peer in a session",
}  # fmt: skip


def test_no_two_classes_of_one_name_mean_different_things():
    homes = defaultdict(list)
    for path in PACKAGE.rglob("*.py"):
        module = path.relative_to(PACKAGE)
        if module.parts[0] != "boards":  # programs of their own
            for name in CLASS.findall(path.read_text(encoding="utf-8")):
                homes[name].append(module.as_posix())
    twice = {name: files for name, files in homes.items() if len(files) > 1}
    new = {name: files for name, files in twice.items() if name not in SHARED}
    assert not new, f"rename one of each, or say in SHARED why they share a name: {new}"
    unused = set(SHARED) - set(twice)
    assert not unused, f"take these out of SHARED: {unused}"
