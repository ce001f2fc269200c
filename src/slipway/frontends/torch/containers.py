"""Classes of containers that a saved program names and that this process does not know.

Models of transformers and diffusers return objects of their own, and torch.export.save writes the
name of the class into the file.  torch.export.load refuses that file where the class is not
registered with torch, because the package is missing or nothing imported it.  The compiler wants
the tensors inside only, so a class that holds them in order stands in while the program is read.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


class Held:
    """What a container holds, and what its class would need to make it again."""

    def __init__(self, children: Any, context: Any) -> None:
        self.children = list(children)
        self.context = context


@contextmanager
def stand_ins(torch: Any, path: Path) -> Iterator[None]:
    """Register a class for each name in a file that torch does not know; take them back after."""
    pytree = torch.utils._pytree
    known = pytree.SERIALIZED_TYPE_TO_PYTHON_TYPE
    made = {name: _registered(pytree, name) for name in _named(path) if name not in known}
    try:
        yield
    finally:
        for name, kind in made.items():
            if known.get(name) is kind:  # not where the package was imported meanwhile
                pytree._deregister_pytree_node(kind)
        if made and hasattr(pytree.treespec_loads, "cache_clear"):
            pytree.treespec_loads.cache_clear()  # what it has read names the classes taken back


def _registered(pytree: Any, name: str) -> type[Held]:
    kind = type(name.rpartition(".")[2], (Held,), {})
    pytree._private_register_pytree_node(
        kind,
        lambda held: (held.children, held.context),
        kind,
        serialized_type_name=name,
        # The context is kept as it was written: only the class itself could read it.
        to_dumpable_context=lambda context: context,
        from_dumpable_context=lambda context: context,
        flatten_with_keys_fn=lambda held: (
            [(pytree.SequenceKey(i), child) for i, child in enumerate(held.children)],
            held.context,
        ),
    )
    return kind


def _named(path: Path) -> set[str]:
    """Return the classes of containers in a saved program; none where it cannot be read."""
    found: set[str] = set()
    try:
        with zipfile.ZipFile(path) as archive:
            for entry in archive.namelist():
                if entry.endswith("model.json") or entry.endswith("exported_program.json"):
                    calls = json.loads(archive.read(entry))["graph_module"]["module_call_graph"]
                    for signature in (call["signature"] for call in calls if call["signature"]):
                        for spec in (signature["in_spec"], signature["out_spec"]):
                            _collect(json.loads(spec)[1], found)
    except (
        zipfile.BadZipFile,
        OSError,
        ValueError,
        LookupError,
        TypeError,
        NotImplementedError,
        RecursionError,
        RuntimeError,
        EOFError,
    ):
        return set()  # torch's own reader says what is wrong with it
    return found


def _collect(spec: Any, found: set[str]) -> None:
    if spec["type"] is not None:
        found.add(spec["type"])
    for child in spec["children_spec"]:
        _collect(child, found)
