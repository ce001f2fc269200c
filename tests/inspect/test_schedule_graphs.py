"""Graphs of schedules: what stands in them."""

import pytest

from slipway import te
from slipway.contrib import tedd
from slipway.errors import ToolchainError


def schedule():
    a = te.placeholder((16, 8), name="A")
    b = te.compute((16, 8), lambda i, j: a[i, j] * 2.0, name="B")
    k = te.reduce_axis((0, 8), name="k")
    c = te.compute((16,), lambda i: te.sum(b[i, k], axis=k), name="C")
    s = te.create_schedule(c.op)
    outer, inner = s[c].split(c.op.axis[0], factor=4)
    s[c].vectorize(inner)
    s[c].parallel(outer)
    s[b].compute_at(s[c], outer)
    s[b].fuse(*b.op.axis)
    return s.normalize()


def test_stages_and_tensors(tmp_path):
    text = tedd.viz_dataflow_graph(schedule(), output_dot_string=True)
    edges = {line.strip() for line in text.splitlines() if "->" in line}
    assert edges == {
        "stage0 -> stage0_out0", "stage0_out0 -> stage1", "stage1 -> stage1_out0",
        "stage1_out0 -> stage2", "stage2 -> stage2_out0",
    }  # fmt: skip
    assert 'label="B:0 [16, 8]"' in text
    assert tedd.viz_dataflow_graph(schedule(), dot_file_path=str(tmp_path / "g.dot")) is None
    assert (tmp_path / "g.dot").read_text() == text


def test_tree_of_stages():
    text = tedd.viz_schedule_tree(schedule(), output_dot_string=True)
    assert "stage1:stage -> stage2:axis0" in text  # B is computed at the outer loop of C
    assert "stage2:stage -> root" in text
    assert '<TD PORT="axis0" BGCOLOR="#F5B041">i.outer (parallel)</TD>' in text
    assert "k [0, 8) (reduce)" in text


def test_where_the_loops_came_from():
    text = tedd.viz_itervar_relationship_graph(schedule(), output_dot_string=True)
    assert 'label="Split factor=4"' in text
    assert 'label="Fuse"' in text
    inside = text.split("subgraph cluster_stage2")[1]
    edges = [line.strip() for line in inside.splitlines() if "->" in line]
    assert len(edges) == 3  # one into the split, two out of it
    assert [edge for edge in edges if edge.endswith("stage2_by0")] == ["stage2_axis0 -> stage2_by0"]


def test_drawing_needs_graphviz(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolchainError, match="output_dot_string=True"):
        tedd.viz_schedule_tree(schedule(), show_svg=True)
    program = tmp_path / "dot"
    program.write_text('#!/bin/sh\nread first\nprintf "<svg>%s</svg>" "$1"\n')
    program.chmod(0o755)
    assert tedd.viz_schedule_tree(schedule(), show_svg=True)._repr_svg_() == "<svg>-Tsvg</svg>"
    program.write_text("#!/bin/sh\nread first\necho no >&2\nexit 1\n")
    with pytest.raises(ToolchainError, match="cannot draw the graph: no"):
        tedd.viz_schedule_tree(schedule(), show_svg=True)
