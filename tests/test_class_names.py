"""A class name means one thing: where two classes have one, both mean it, or the field says so."""

import ast
from collections import defaultdict

from tests.test_layering import MODULES, tree_of

# A name -> why several classes have it.
SHARED = {
    # The same thing in the two languages, as the field calls it in both.
    **dict.fromkeys(("Call", "Let", "Var"), "of relay and of loops"),
    "Schedule": "tensor expressions (te) and blocks (tir): classic names of both",
    "Node": "relay's and the loops' nodes have one base",
    "Layout": "classic tvm.tir.Layout",
    "Block": "classic tir.Block; and what is placed in memory",
    "Constant": "relay's, and MXNet's initialiser of that name",
    "Value": "classic relay.backend.interpreter.Value; and a value of a kernel in SSA form",
    # The classic tuners, whose scripts import these from each of them.
    **dict.fromkeys(
        (
            "ApplyHistoryBest", "LocalBuilder", "LocalRunner", "LoggedTask", "MeasureErrorNo",
            "MeasureInput", "MeasureResult", "RPCRunner", "State", "Task",
        ),
        "of classic tuners",
    ),
    # One role in several places.
    "NodeView": "what a converter sees, of each model format",
    "GraphNode": "a step of a graph, while it is compiled and when it is loaded",
    "Plan": "what was planned: memory, or scales of quantised tensors",
    "RemoteDevice": "what the runtime asks of a remote device, and the device of a session",
    "Transport": "a byte stream to a device, and what a board's project offers",
    "Trial": "a candidate that was tried",
    "Memory": "of a board, and of a kernel",
    "Writer": "writes code: LLVM's text, or a library of GPU kernels",
    "Role": "of a stage in a schedule, and of a peer in a session",
}  # fmt: skip


def test_no_two_classes_of_one_name_mean_different_things():
    homes = defaultdict(list)
    for module, path in MODULES.items():
        for node in tree_of(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(module)
    twice = {name: places for name, places in homes.items() if len(places) > 1}
    new = {name: places for name, places in twice.items() if name not in SHARED}
    assert not new, f"rename one of each, or say in SHARED why they share a name: {new}"
    unused = set(SHARED) - set(twice)
    assert not unused, f"take these out of SHARED: {unused}"
