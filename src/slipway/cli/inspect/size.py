"""``slipway size``: what the bytes of a built project, or of an artifact, are for."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from slipway.cli import console
from slipway.cli.options import AsJson
from slipway.deploy.model_file import MODEL_SUFFIXES
from slipway.errors import ArtifactError, ExecutionError

ARTIFACTS = (".tar", ".so")
METADATA = "metadata.json"


def size(
    project: Annotated[
        Path,
        typer.Argument(metavar="DIR", help="A built project, or an artifact: .tar or .so."),
    ],
    diff: Annotated[
        Path | None,
        typer.Option("--diff", help="Another one of the same kind, the one before."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Attribute every byte of a project's flash and RAM to a layer; or compare two builds.

    Of an artifact: what its bytes are for, and what a run takes beside them.

    For example:

        slipway size firmware

        slipway size firmware --diff before

        slipway size model.tar --diff old.tar
    """
    if project.suffix in ARTIFACTS and project.is_file():
        size_of_artifacts(project, diff, as_json)
        return
    from slipway.micro.image_size import size_difference, size_table

    after = pieces(project)
    if as_json:
        builds = {"after": after} if diff is None else {"before": pieces(diff), "after": after}
        found = {name: [asdict(piece) for piece in build] for name, build in builds.items()}
        print(json.dumps(found, indent=1))
        return
    print(size_table(after) if diff is None else size_difference(pieces(diff), after))


def pieces(folder: Path) -> Any:
    """Return the pieces of a project's image; ExecutionError where there is no project."""
    from slipway.micro.image_size import read_map
    from slipway.micro.model_library import only_model

    if not folder.is_dir():
        if folder.suffix.lower() in MODEL_SUFFIXES and folder.exists():
            raise ExecutionError(
                f"{folder} is a model file: `slipway check` tells what it needs, and size what was "
                f"made of it: slipway compile {folder} -o {folder.stem}.tar && slipway size "
                f"{folder.stem}.tar"
            )
        reason = "it is a file" if folder.exists() else "there is no such folder"
        raise ExecutionError(f"{folder} is no project, {reason}: `slipway micro create` makes one")
    description = folder / "model" / "metadata.json"
    model = only_model(json.loads(description.read_text())) if description.exists() else None
    return read_map(folder / "build" / "firmware.map", model)


def size_of_artifacts(artifact: Path, before: Path | None, as_json: bool) -> None:
    """Print what the bytes of an artifact are for, beside those of another one."""
    after, old = parts_of(artifact), None if before is None else parts_of(before)
    if as_json:
        print(json.dumps({"after": after} if old is None else {"before": old, "after": after}))
        return
    names: Sequence[str] = list(dict.fromkeys((*after, *(old or ()))))
    if old is None:
        shown = [(name, f"{after[name]:,}") for name in names]
        console.table(("", "bytes"), shown, title=console.plain(artifact))
        return
    rows = [
        (name, *(f"{one.get(name, 0):,}" for one in (old, after)),
         f"{after.get(name, 0) - old.get(name, 0):+,}")
        for name in names
    ]  # fmt: skip
    console.table(("", "before", "after", "more"), rows, title=console.plain(artifact))


def parts_of(path: Path) -> dict[str, int]:
    """Return the bytes of an artifact by what they are for, and what a run takes beside it.

    Raises ArtifactError for a file that is none.
    """
    from slipway.runtime.artifact import OBJECTS_MEMBER, SUMS_MEMBER, read_artifact, read_tar

    data = path.read_bytes()
    is_archive = path.suffix == ".tar"
    if is_archive and SUMS_MEMBER not in read_tar(data, path.name, (SUMS_MEMBER, METADATA)):
        raise ArtifactError(
            f"{path} is a Model Library Format archive, whose size on a board depends on the "
            f"board: slipway fit {shlex.quote(str(path))} --board NAME"
        )
    found = read_artifact(data, path.name, here=False)
    known = {
        "weights": len(found.params or b""),
        "graph": len(found.graph or b""),
    }
    if found.members:
        known["code"] = len(found.library)
        known["code, to be linked for a board"] = len(found.members.get(OBJECTS_MEMBER, b""))
        names = ("graph.json", METADATA, SUMS_MEMBER)
        known["description"] = sum(len(found.members.get(name, b"")) for name in names)
        known["archive's headers"] = len(data) - sum(known.values())
    else:
        known["code and description"] = len(data) - sum(known.values())
    sizes = {name: count for name, count in known.items() if count}
    sizes["the file"] = len(data)
    memory = found.metadata.get("memory", {})
    if "workspace_bytes" in memory:
        sizes["tensors of a run"] = int(memory["workspace_bytes"])
    return sizes
