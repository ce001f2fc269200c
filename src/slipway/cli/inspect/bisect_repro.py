"""What ``slipway bisect`` writes of a culprit, so that the difference can be seen alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway.cli.run import number_text
from slipway.toolchain.link import write_file

if TYPE_CHECKING:
    from slipway.inspect.bisect import Culprit
    from slipway.target import Target

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
    print(f"output {i}: largest difference {np.max(apart):g} of {np.max(np.abs(wanted)):g}")
'''


def write_repro(
    culprit: Culprit,
    folder: Path,
    target: Target | None = None,
    model: Path | None = None,
    inputs: Any = None,
) -> list[str]:
    """Write a culprit into `folder`; return the names of the files.

    ``arrays.npz`` holds inputs and both results; a kernel also has its graph, a script that
    compiles it again and compares, and the source that was generated for `target`.  Of an ONNX
    `model`, run on `inputs`, the nodes that the culprit came from are written as one of onnx's test
    cases: a small model with its inputs, and the outputs as they should be.
    """
    folder.mkdir(parents=True, exist_ok=True)
    arrays = {
        f"{kind}_{i}": array
        for kind, values in (
            ("input", culprit.inputs), ("got", culprit.got), ("wanted", culprit.wanted),
        )
        for i, array in enumerate(values)
    }  # fmt: skip
    np.savez(folder / "arrays.npz", **arrays)  # type: ignore[arg-type]
    found = culprit.difference
    content = {
        "kind": culprit.kind, "name": culprit.name, "nodes": list(culprit.nodes),
        "error": number_text(found.error), "index": list(map(int, found.index)),
        "got": number_text(found.got), "wanted": number_text(found.wanted),
    }  # fmt: skip
    write_file(folder / "culprit.json", json.dumps(content, indent=1).encode())
    files = ["arrays.npz", "culprit.json"]
    if culprit.function is not None:
        from slipway.ir.function import IRModule
        from slipway.relay.expr import Function

        plain = Function(culprit.function.params, culprit.function.body)
        text = str(IRModule((("main", plain),)))
        write_file(folder / "kernel.relay", text.encode())
        write_file(folder / "repro.py", SCRIPT.encode())
        files += ["kernel.relay", "repro.py"]
        if target is not None:
            files += write_source(IRModule((("main", plain),)), target, folder)
    if model is not None and culprit.nodes:
        files += write_case(culprit, model, inputs, folder)
    return files


def write_source(kernel: Any, target: Target | None, folder: Path) -> list[str]:
    """Write what the compiler generates for a kernel: C, or LLVM's form and assembly."""
    from slipway import relay

    library = relay.build(kernel, target=target)
    spellings = {"c": "c", "ll": "ll", "asm": "s"}
    endings = {f: spellings[f] for f in library.compiled.sources if f in spellings}
    for form, ending in endings.items():
        write_file(folder / f"kernel.{ending}", library.get_source(form).encode())
    return [f"kernel.{ending}" for ending in endings.values()]


def write_case(culprit: Culprit, model: Path, inputs: Any, folder: Path) -> list[str]:
    """Write the culprit's nodes of an ONNX model as a model of their own, with data."""
    from slipway.cli import console
    from slipway.frontends.onnx.extract import extract, save_case

    try:
        small, given, wanted = extract(model, culprit.nodes, inputs)
    except Exception as error:  # the framework's own, of many unrelated classes
        reason = (str(error).strip().splitlines() or [""])[0]
        console.err.print(
            f"The culprit's nodes are not written as a model of their own: {console.plain(reason)}"
        )
        return []
    return [f"onnx/{name}" for name in save_case(folder / "onnx", small, given, wanted)]
