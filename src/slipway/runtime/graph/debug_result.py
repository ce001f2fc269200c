"""What a run of a debug executor measured, node by node (classic `debug_datum`)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_HEADER = ("Node Name", "Ops", "Time(us)", "Time(%)", "Shape", "Inputs", "Outputs",
           "Measurements(us)")  # fmt: skip


class DebugResult:
    """The nodes of a graph, and the seconds of each in every repeat of the last run."""

    def __init__(self, graph_json: str, dump_path: Path) -> None:
        graph = json.loads(graph_json)
        self._dump_path = dump_path
        self._outputs = [int(n.get("attrs", {}).get("num_outputs", 1)) for n in graph["nodes"]]
        starts = [sum(self._outputs[:i]) for i in range(len(self._outputs))]
        self._shapes = [str(tuple(graph["attrs"]["shape"][1][start])) for start in starts]
        names = [node["name"] for node in graph["nodes"]]
        self._nodes = [
            {
                "op": "param" if n["op"] == "null" else n["attrs"]["func_name"],
                "name": n["name"],
                "attrs": {**n.get("attrs", {}), "T": "type: "},
                "inputs": [names[item[0]] for item in n["inputs"]],
            }
            for n in graph["nodes"]
        ]
        self._times: list[list[float]] = [[] for _ in names]

    def get_graph_nodes(self) -> list[dict[str, Any]]:
        """Return the nodes: "op" (a function, or "param"), "name", "inputs" by name, "attrs"."""
        return self._nodes

    def get_graph_node_shapes(self) -> list[str]:
        """Return the shape of each node's first output."""
        return self._shapes

    def take(self, times: Sequence[Sequence[float]]) -> None:
        """Keep the seconds of each node, and write them as a trace that browsers show."""
        self._times = [list(map(float, row)) for row in times]
        events: list[dict[str, Any]] = []
        now = 0
        for node, row in zip(self._nodes, self._times, strict=True):
            spent = int(1e6 * sum(row) / len(row))
            for phase, at in (("B", now), ("E", now + spent)):
                events.append({"name": node["name"], "ph": phase, "ts": at, "pid": 1, "tid": 1})
            now += spent
        trace = {"displayTimeUnit": "ns", "traceEvents": events}
        (self._dump_path / "_tvmdbg_execution_trace.json").write_text(json.dumps(trace))

    def get_debug_result(self, sort_by_time: bool = True) -> str:
        """Return the table of the nodes that compute, a line each, and the sum at the end."""
        means = [1e6 * sum(row) / len(row) if row else 0.0 for row in self._times]
        order = [i for i, node in enumerate(self._nodes) if node["op"] != "param"]
        total = sum(means[i] for i in order)
        if sort_by_time:
            order.sort(key=lambda i: -means[i])
        rows = [
            (
                self._nodes[i]["name"], self._nodes[i]["op"], f"{means[i]:.3f}",
                f"{100 * means[i] / total if total else 0:.3f}", self._shapes[i],
                str(len(self._nodes[i]["inputs"])), str(self._outputs[i]),
                str([round(1e6 * t, 3) for t in self._times[i]]),
            )
            for i in order
        ]  # fmt: skip
        last = ("Total_time", "-", f"{total:.3f}", "-", "-", "-", "-", "-")
        widths = [max(map(len, column)) for column in zip(_HEADER, *rows, last, strict=True)]
        rule = tuple("-" * len(word) for word in _HEADER)
        lines = [_HEADER, rule, *rows, last]
        return "\n".join(
            "".join(f"{word:<{width}}  " for word, width in zip(line, widths, strict=True))
            for line in lines
        )

    def display_debug_result(self, sort_by_time: bool = True) -> None:
        """Print that table."""
        print(self.get_debug_result(sort_by_time))
