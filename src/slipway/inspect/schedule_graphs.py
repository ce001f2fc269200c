"""Three graphs of a schedule for Graphviz: classic ``contrib.tedd``.

The graph of stages and tensors, the tree of stages with their loops, and how the loops of each
stage came from its axes.  Each function writes the text, returns it, or draws it.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from slipway.errors import ToolchainError
from slipway.ir.expr import IterVar
from slipway.te.primitives.relations import Fuse, Singleton, Split
from slipway.te.primitives.state import INLINE, SCOPE
from slipway.te.schedule import Schedule
from slipway.te.stage import Stage

_COLOURS = {
    "data": "#FFFFFF", "reduce": "#AD6453", "ordered": "#D9CB84", "thread": "#2980B9",
    "opaque": "#E0E0E0", "unrolled": "#D2B4DE", "vectorized": "#AED6F1", "parallel": "#F5B041",
    "tensorized": "#A9DFBF",
}  # fmt: skip


@dataclass(frozen=True)
class Drawing:
    """A drawn graph, which a notebook shows."""

    svg: str

    def _repr_svg_(self) -> str:
        return self.svg


def viz_dataflow_graph(
    sch: Schedule, show_svg: bool = False, dot_file_path: str = "", output_dot_string: bool = False
) -> str | Drawing | None:
    """Which stage makes which tensor, and who reads it.

    The text goes to the file `dot_file_path`, or is returned with `output_dot_string`; with
    `show_svg` the program `dot` draws it.
    """
    lines = []
    for stage in sch.stages:
        lines.append(_node(_stage_id(stage), f"{stage.number}: {stage.op.name}", shape="box"))
        count = getattr(stage.op, "num_outputs", 1)
        for index in range(count):
            tensor = f"{_stage_id(stage)}_out{index}"
            shape = list(stage.op.output(index).shape)
            lines.append(_node(tensor, f"{stage.op.name}:{index} {shape}", shape="ellipse"))
            lines.append(f"  {_stage_id(stage)} -> {tensor}")
        for read in getattr(stage.op, "input_tensors", ()):
            maker = next((s for s in sch.stages if read.op in (s.op, s.origin_op)), None)
            if maker is not None:
                source = f"{_stage_id(maker)}_out{read.value_index}"
                lines.append(f"  {source} -> {_stage_id(stage)}")
    return _given("Dataflow", lines, show_svg, dot_file_path, output_dot_string)


def viz_schedule_tree(
    sch: Schedule, show_svg: bool = False, dot_file_path: str = "", output_dot_string: bool = False
) -> str | Drawing | None:
    """Every stage with its loops, below the loop that it is computed at.

    Parameters are those of `viz_dataflow_graph`.
    """
    lines = [_node("root", "ROOT", shape="box")]
    for stage in sch.stages:
        rows = [_row("stage", f"{stage.number}: {stage.op.name}{_of_scope(stage)}", "#D5F5E3")]
        for index, axis in enumerate(stage.leaf_iter_vars):
            kind, words = _loop(stage, axis)
            rows.append(
                _row(f"axis{index}", f"{axis.var.name} {words}", _COLOURS.get(kind, "white"))
            )
        label = '<<TABLE BORDER="0" CELLBORDER="1" CELLSPACING="0">' + "".join(rows) + "</TABLE>>"
        lines.append(f"  {_stage_id(stage)} [label={label}, shape=none, margin=0]")
        target = "root"
        if stage.attach_type == SCOPE and stage.attach_stage is not None:
            parent = stage.attach_stage
            at = [a is stage.attach_ivar for a in parent.leaf_iter_vars]
            target = _stage_id(parent) + (f":axis{at.index(True)}" if True in at else "")
        style = " [style=dashed, label=inline]" if stage.attach_type == INLINE else ""
        lines.append(f"  {_stage_id(stage)}:stage -> {target}{style}")
    return _given("Schedule Tree", lines, show_svg, dot_file_path, output_dot_string)


def viz_itervar_relationship_graph(
    sch: Schedule, show_svg: bool = False, dot_file_path: str = "", output_dot_string: bool = False
) -> str | Drawing | None:
    """How the loops of each stage were split and fused from its axes.

    Parameters are those of `viz_dataflow_graph`.
    """
    lines = []
    for stage in sch.stages:
        own = _stage_id(stage)
        lines.append(f"  subgraph cluster_{own} {{")
        lines.append(f"    label={_quoted(f'{stage.number}: {stage.op.name}')}")
        names: dict[int, str] = {}
        for index, axis in enumerate(_axes(stage)):
            names[id(axis)] = f"{own}_axis{index}"
            kind, words = _loop(stage, axis)
            colour = _COLOURS.get(kind, "white")
            label = f"{axis.var.name} {words}"
            lines.append(
                "  " + _node(names[id(axis)], label, shape="box", style="filled", fillcolor=colour)
            )
        for index, relation in enumerate(stage.relations):
            kind, before, after = _relation(relation)
            lines.append("  " + _node(f"{own}_by{index}", kind, shape="ellipse"))
            pairs = [(names[id(a)], f"{own}_by{index}") for a in before if id(a) in names]
            pairs += [(f"{own}_by{index}", names[id(a)]) for a in after if id(a) in names]
            lines += [f"    {a} -> {b}" for a, b in pairs]
        lines.append("  }")
    return _given("IterVar Relationship Graph", lines, show_svg, dot_file_path, output_dot_string)


def _axes(stage: Stage) -> Iterator[IterVar]:
    """Every axis of the stage, leaves or not, once."""
    seen: set[int] = set()
    related = [a for r in stage.relations for part in _relation(r)[1:] for a in part]
    for axis in (*stage.all_iter_vars, *related):
        if id(axis) not in seen:
            seen.add(id(axis))
            yield axis


def _relation(relation: object) -> tuple[str, tuple[IterVar, ...], tuple[IterVar, ...]]:
    """What was done, from which axes, to which."""
    match relation:
        case Split():
            size = relation.factor if relation.factor is not None else relation.nparts
            parameter = "factor" if relation.factor is not None else "nparts"
            return f"Split {parameter}={size}", (relation.parent,), (relation.outer, relation.inner)
        case Fuse():
            return "Fuse", (relation.outer, relation.inner), (relation.fused,)
        case Singleton():
            return "Singleton", (), (relation.iter,)
        case _:
            return type(relation).__name__, (), ()


def _loop(stage: Stage, axis: IterVar) -> tuple[str, str]:
    """Return the kind of a loop, and its range and what it is bound to."""
    attr = stage.iter_var_attrs.get(axis)
    kind = str(getattr(attr, "kind", "") or axis.kind)
    words = [f"[{axis.dom.min}, {axis.dom.extent})"] if axis.dom is not None else []
    thread = getattr(attr, "bind_thread", None)
    if thread is not None:
        kind, words = "thread", [*words, str(thread.thread_tag)]
    return kind, " ".join([*words, f"({kind})"])


def _of_scope(stage: Stage) -> str:
    return f" in {stage.scope}" if stage.scope else ""


def _stage_id(stage: Stage) -> str:
    return f"stage{stage.number}"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _row(port: str, text: str, colour: str) -> str:
    safe = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return f'<TR><TD PORT="{port}" BGCOLOR="{colour}">{safe}</TD></TR>'


def _node(name: str, label: str, **attributes: str) -> str:
    listed = ", ".join(f"{k}={_quoted(v)}" for k, v in {"label": label, **attributes}.items())
    return f"  {name} [{listed}]"


def _given(
    title: str, lines: list[str], show_svg: bool, path: str, output: bool
) -> str | Drawing | None:
    text = "\n".join([f"digraph {_quoted(title)} {{", "  rankdir=BT", *lines, "}"]) + "\n"
    if path:
        Path(path).write_text(text, encoding="utf-8")
    if output:
        return text
    if not show_svg:
        return None
    program = shutil.which("dot")
    if program is None:
        raise ToolchainError(
            "there is no program `dot` to draw the graph with: install Graphviz, or take the text "
            "with output_dot_string=True."
        )
    done = subprocess.run(
        [program, "-Tsvg"],
        input=text,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode:
        raise ToolchainError(f"dot cannot draw the graph: {done.stderr.strip()}")
    return Drawing(done.stdout)
