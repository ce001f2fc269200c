"""What ``slipway bisect`` writes of a culprit, so that the difference can be seen alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

SCRIPT = '''"""Shows how one kernel differs from its NumPy reference: python repro.py [TARGET]."""

import sys

import numpy as np

import slipway as tvm
from slipway import relay

kernel = relay.fromtext(open("kernel.relay").read())
arrays = np.load("arrays.npz")
names = [p.name_hint for p in kernel["main"].params]
inputs = {name: arrays[f"input_{i}"] for i, name in enumerate(names)}
target = sys.argv[1] if len(sys.argv) > 1 else "llvm"
run = relay.create_executor("graph", mod=kernel, device=tvm.cpu(0), target=target).evaluate()
found = run(**inputs)
for i, got in enumerate(found if isinstance(found, list) else [found]):
    wanted = arrays[f"wanted_{i}"]
    apart = np.abs(got.numpy().astype(float) - wanted.astype(float))
    print(f"output {i}: greatest difference {np.max(apart):g} of {np.max(np.abs(wanted)):g}")
'''


def write_repro(culprit: Any, folder: Path) -> list[str]:
    """Write a culprit into `folder`; return the names of the files.

    ``arrays.npz`` holds inputs and both results; a kernel also has its graph, and a script that
    compiles it again and compares.
    """
    folder.mkdir(parents=True, exist_ok=True)
    arrays = {
        f"{kind}_{i}": array
        for kind, values in (
            ("input", culprit.inputs), ("got", culprit.got), ("wanted", culprit.wanted),
        )
        for i, array in enumerate(values)
    }  # fmt: skip
    np.savez(folder / "arrays.npz", **arrays)
    found = culprit.difference
    content = {
        "kind": culprit.kind, "name": culprit.name, "nodes": list(culprit.nodes),
        "error": found.error, "index": list(found.index), "got": found.got,
        "wanted": found.wanted,
    }  # fmt: skip
    (folder / "culprit.json").write_text(json.dumps(content, indent=1), encoding="utf-8")
    files = ["arrays.npz", "culprit.json"]
    if culprit.function is not None:
        from slipway.ir.function import IRModule
        from slipway.relay.expr import Function

        plain = Function(culprit.function.params, culprit.function.body)
        text = str(IRModule((("main", plain),)))
        (folder / "kernel.relay").write_text(text, encoding="utf-8")
        (folder / "repro.py").write_text(SCRIPT, encoding="utf-8")
        files += ["kernel.relay", "repro.py"]
    return files
