"""What the operators of the model formats become, as the importers themselves report it.

Every importer is asked about the examples of its tests: the onnx package's conformance cases, one
TFLite file per operator and form, and the ATen operators of the PyTorch tests.
"""

import sys
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
# Name in the format -> relay operators, in order, and whether each is all of it in some example.
Origins = dict[str, dict[str, bool]]


def onnx_origins() -> Origins:
    """Return what the ONNX operators become."""
    sys.path.insert(0, str(ROOT))
    from benchmarks.conformance import as_array, collect, is_served, shape_of

    from slipway.errors import SlipwayError
    from slipway.frontends.onnx.importer import check_onnx

    found: Origins = {}
    for case in collect():
        known = {t.name for t in case.model.graph.initializer}
        names = [i.name for i in case.model.graph.input if i.name not in known]
        if len(names) != len(case.data_sets[0][0]):
            continue
        try:
            values = [as_array(v) for v in case.data_sets[0][0]]
            shapes = {n: shape_of(v) for n, v in zip(names, values, strict=True) if is_served(v)}
            _gather(found, check_onnx(case.model, shapes))
        except SlipwayError:
            continue
    return found


def tflite_origins() -> Origins:
    """Return what the TFLite operators become."""
    sys.path.insert(0, str(ROOT / "tests" / "frontends" / "tflite"))
    from corpus import files

    from slipway.errors import SlipwayError
    from slipway.frontends.tflite.importer import check_tflite

    found: Origins = {}
    for _, data in files():
        try:
            _gather(found, check_tflite(data))
        except SlipwayError:
            continue
    return found


def torch_origins() -> Origins:
    """Return what the ATen operators become."""
    sys.path.insert(0, str(ROOT / "tests" / "frontends" / "torch"))
    sys.modules.pop("test_operators", None)  # the TFLite tests have one of that name too
    from compare import infos_of
    from test_operators import FAMILIES, Several

    from slipway.frontends.torch.importer import check_pytorch

    found: Origins = {}
    for functions, inputs in FAMILIES.values():
        _gather(found, check_pytorch(Several(functions).eval(), infos_of(inputs)))
    return found


def _gather(found: Origins, entries: Iterable[Any]) -> None:
    for entry in entries:
        if entry.status in ("native", "rewritten", "folded"):
            used = entry.detail.split(", ") if entry.status != "folded" else []
            known = found.setdefault(entry.kind, {})
            for name in used:
                known[name] = known.get(name, False) or entry.status == "native"


def origins() -> dict[str, Origins]:
    """Return what each format's operators become, by the format's name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {"ONNX": onnx_origins(), "TFLite": tflite_origins(), "PyTorch": torch_origins()}


def table(found: Origins) -> Iterator[str]:
    """Yield the lines of a table of one format."""
    yield "| operator | becomes |"
    yield "| --- | --- |"
    for name, used in sorted(found.items()):
        shown = ", ".join(f"`{u}`" for u in used) or "nothing at run time, or a constant"
        yield f"| {name} | {shown} |"
