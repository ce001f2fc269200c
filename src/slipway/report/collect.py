"""From a compiled model to its report, without running it: graphs, strategies, memory, sizes."""

from __future__ import annotations

import platform
import tarfile
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from slipway.compiler.aot.factory import AotExecutorFactoryModule
from slipway.compiler.memory_plan import Plan
from slipway.compiler.model_factory import ModelFactory
from slipway.compiler.model_graph import GraphNode, ModelGraph
from slipway.compiler.open_sizes import open_sizes
from slipway.inspect.coverage import kernel_schedules
from slipway.inspect.profile import operators_text
from slipway.report.data import ArenaPlan, ArenaTensor, KernelRow, Report, Rewritten
from slipway.report.graphs import graph_after, graph_before, types_text, weights_of
from slipway.version import VERSION

PACKAGES = ("numpy", "llvmlite", "ziglang", "onnx", "onnxruntime", "torch", "ai-edge-litert")
MEMBERS = {
    "lib.so": "code",
    "lib.a": "code, to be linked for a board",
    "params.bin": "weights",
    "graph.bin": "graph",
    "graph.json": "graph, for people",
    "metadata.json": "description",
}


def collect(factory: ModelFactory, name: str, artifact: Path | None = None) -> Report:
    """Return what is known of a compiled model before it has run."""
    graph = factory.graph
    plan = plan_of(factory)
    report = Report(name, str(factory.target), "", now())
    described = factory.metadata
    report.inputs = [port_text(port) for port in described["inputs"]]
    report.outputs = [port_text(port) for port in described["outputs"]]
    if sizes := open_sizes(
        type_ for node in graph.nodes if not node.function for type_ in node.types
    ):
        ranges = ", ".join(f"{size.name} from {size.low} to {size.high}" for size in sizes)
        report.notes.append(
            f"Open sizes: {ranges}. Memory is that of the upper ends; so is what was measured, "
            "where no inputs were given."
        )
    report.before = graph_before(factory.ir_mod, graph.params)
    report.after = graph_after(graph)
    report.memory = memory_of(plan, graph)
    calls = [(i, n) for i, n in enumerate(graph.nodes) if n.calls_kernel]
    report.layers = [layer_of(factory, plan, number, node) for number, node in calls]
    for layer, schedule in zip(
        report.layers, kernel_schedules(graph, factory.targets), strict=True
    ):
        layer.strategy = schedule.schedule or "general"
        layer.knobs, layer.cycles = schedule.knobs, schedule.cycles
    if artifact is not None:
        report.sizes = sizes_of(artifact)
    report.versions = versions()
    return report


def plan_of(factory: ModelFactory) -> Plan:
    """Return the plan of the arena; that of a program counts its kernels' own temporaries too."""
    if isinstance(factory, AotExecutorFactoryModule):
        return factory.program.plan
    return factory.memory_plan


def memory_of(plan: Plan, graph: ModelGraph) -> ArenaPlan:
    """Return a plan as the page draws it; its steps are numbers of layers, from 0."""
    calls = [i for i, node in enumerate(graph.nodes) if node.calls_kernel]
    names = {node.name: name_of(node) for node in graph.nodes if node.function}
    tensors = []
    for i, block in enumerate(plan.blocks):
        first = bisect_left(calls, block.first)
        last = max(first, bisect_right(calls, block.last) - 1)
        owner, colon, position = block.name.partition(":")
        kind, of, kernel = owner.rpartition("temporaries of ")
        name = f"{kind}{of}{names.get(kernel, kernel)}{colon}{position}"
        pool = plan.pools[plan.pool_index(i)].name
        tensors.append(ArenaTensor(name, pool, plan.offsets[i], block.size_bytes, first, last))
    pools = tuple((pool.name, plan.pool_bytes(i)) for i, pool in enumerate(plan.pools))
    return ArenaPlan(tuple(tensors), pools, plan.size_bytes, plan.lower_bound_bytes, plan.algorithm)


def layer_of(factory: ModelFactory, plan: Plan, number: int, node: GraphNode) -> KernelRow:
    """Return one kernel call; `number` is its place in the graph, the step of the plan."""
    graph = factory.graph
    cost = factory.metadata.get("operators", {}).get(node.name, {})
    alive = bytes_in_use(plan, number)
    return KernelRow(
        name_of(node),
        operators_text(node.function),
        node.function,
        node.layers,
        types_text(node.types),
        sum(weights_of(graph, ref) for ref in node.inputs),
        alive,
        flops=cost.get("flops"),
        bytes=cost.get("bytes"),
    )


def bytes_in_use(plan: Plan, step: int) -> int:
    """Return the bytes of the arena that hold something in a step; what two tensors share, once."""
    ranges = sorted(
        (plan.pool_index(i), offset, offset + block.size_bytes)
        for i, (block, offset) in enumerate(zip(plan.blocks, plan.offsets, strict=True))
        if block.first <= step <= block.last
    )
    used, reached = 0, (-1, 0)
    for pool, start, end in ranges:
        begin = max(start, reached[1]) if pool == reached[0] else start
        used += max(0, end - begin)
        reached = (pool, max(end, begin))
    return used


def name_of(node: GraphNode) -> str:
    """Return what to call a kernel call: its main node of the model, else its operators."""
    return node.layer or operators_text(node.function)


def port_text(port: dict[str, Any]) -> str:
    """Return an input or output in words; of open sizes the upper ends too."""
    shape, largest = (port["shape"], port.get("largest", port["shape"]))
    most = "" if [*shape] == [*largest] else f", at most [{', '.join(map(str, largest))}]"
    return f"{port['name']}: {port['dtype']}[{', '.join(map(str, shape))}]{most}"


def rewritten_of(entries: Sequence[Any]) -> list[Rewritten]:
    """Return what ``slipway check`` says of each node of the model file."""
    return [Rewritten(e.name, e.kind, e.status, e.detail) for e in entries]


def sizes_of(artifact: Path) -> list[tuple[str, int]]:
    """Return the bytes of an exported file, and of its members."""
    found = [(f"artifact ({artifact.suffix.lstrip('.')})", artifact.stat().st_size)]
    if artifact.suffix == ".tar":
        with tarfile.open(artifact) as archive:
            for member in archive.getmembers():
                if member.name in MEMBERS:
                    found.append((MEMBERS[member.name], member.size))
    return found


def versions() -> dict[str, str]:
    """Return the versions of what has a part in the result."""
    found = {"slipway": VERSION, "python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def now() -> str:
    """Return this moment in words."""
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
