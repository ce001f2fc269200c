"""What a .pt2 file may hold: all of it is looked at before torch reads any of it.

torch.export.load runs what a file says.  It unpickles weights, constants and example inputs, loads
libraries of AOTInductor, gives the sizes to sympy's `eval`, takes any function that can be reached
from the module `torch` (`torch.os.system`) as an operator, and makes Python source with the file's
names in it.  A model file is data here, so a file of that kind is refused, with what it holds.
"""

from __future__ import annotations

import io
import json
import os
import re
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from slipway.errors import ModelError
from slipway.frontends.torch.sizes_text import check_size_text

# The operators of sizes; those of tensors are torch.ops.
_SIZE_OPERATORS = re.compile(
    r"_operator\.(add|sub|mul|truediv|floordiv|mod|pow|neg|pos|abs|eq|ne|lt|le|gt|ge|and_|or_|xor"
    r"|not_|invert|lshift|rshift|getitem|index)|math\.\w+|torch\.(sym_\w+|_sym_\w+)",
    re.ASCII,
)
_OPERATORS = re.compile(r"torch\.ops\.[\w.]+|#[\w.:]*|\w+::\w+(\.\w+)?", re.ASCII)
_TARGET = re.compile(r'"target": ?"(?:torch\.ops\.)?(\w+)(?:\.|::)(\w+)(?:\.\w+)?"', re.ASCII)
_READS_FILES = ("from_file", "debugprims", "load_tensor")
_NAME = re.compile(r"[A-Za-z_][\w.]*|", re.ASCII)
_TEXT = re.compile(r"[^\"'\\\r\n;()\x00]*")
# Free text, which becomes neither code nor a name.
_FREE = ("metadata", "as_string", "as_strings", "in_spec", "out_spec", "torch_version")
_DEEPEST = 300
_SWELLS = 20  # times the file, beyond which a packed archive is not unpacked
_PLAIN_MODULES = ("builtins", "collections", "torch")


@contextmanager
def as_data(torch: Any, path: Path) -> Iterator[Path]:
    """Give the path of a program that torch can load without running what is in it.

    Raises ModelError for a file that holds code, or could swell.  In the block torch unpickles
    tensors and plain containers only.
    """
    sizes = _check_archive(torch, path)
    before = os.environ.get("TORCH_FORCE_WEIGHTS_ONLY_LOAD")
    os.environ["TORCH_FORCE_WEIGHTS_ONLY_LOAD"] = "1"
    lean = None
    try:
        if _examples_of_other_classes(torch, path, sizes):
            lean = _without_examples(path)
            _check_archive(torch, lean)
        yield lean or path
    finally:
        if lean is not None:
            lean.unlink()
        if before is None:
            del os.environ["TORCH_FORCE_WEIGHTS_ONLY_LOAD"]
        else:
            os.environ["TORCH_FORCE_WEIGHTS_ONLY_LOAD"] = before


def _check_archive(torch: Any, path: Path) -> dict[str, int]:
    """Raise ModelError for code in an archive, or for one that swells; return its parts' sizes.

    torch reads it by a reader of its own, and files of torch 2.7 and before by Python's; the two
    may see different parts in a made-up archive, so what either sees is looked at.
    """
    try:
        archive = zipfile.ZipFile(path)
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, RecursionError) as error:
        raise ModelError(
            f"{str(path)!r} is not a program that torch.export.save wrote, or it is damaged: "
            f"{error}"
        ) from None
    with archive:
        entries = archive.infolist()
        whole = sum(entry.file_size for entry in entries)
        if whole > _SWELLS * (path.stat().st_size + 2**20):
            raise ModelError(
                f"{str(path)!r} says that it unpacks to {whole:,} bytes, more than {_SWELLS} times "
                "its size: it is not unpacked"
            )
        old = [e.filename for e in entries if e.filename.startswith("serialized_")]
        try:
            for name in old:
                if name.endswith(".json"):
                    _check_document(archive.read(name), f"{name} of {str(path)!r}")
        except (zipfile.BadZipFile, OSError, NotImplementedError, RuntimeError, EOFError) as error:
            if isinstance(error, ModelError):
                raise
            raise ModelError(f"{name} of {str(path)!r} cannot be read: {error}") from None
    return {} if old else _check_records(torch, path)


def _check_records(torch: Any, path: Path) -> dict[str, int]:
    """Look at the parts that torch's own reader sees; return their sizes."""
    try:
        reader = torch._C.PyTorchFileReader(str(path))
        names = list(reader.get_all_records())
        sizes = {name: reader.get_record_size(name) for name in names}
        documents = {
            name: reader.get_record(name)
            for name in names
            if name.startswith("models/") or name.endswith(".json")
        }
    except (RuntimeError, UnicodeDecodeError, MemoryError) as error:
        raise ModelError(
            f"{str(path)!r} is not a program that torch.export.save wrote, or it is damaged: "
            f"{(str(error).splitlines() or [''])[0][:200]}"
        ) from None
    for name in names:
        if "aotinductor" in name:
            raise ModelError(
                f"{str(path)!r} holds a compiled library ({name}), which is not loaded: pass what "
                "torch.export.save writes"
            )
    for name, document in documents.items():
        _check_document(document, f"{name} of {str(path)!r}")
    return sizes


def _check_document(raw: bytes, where: str) -> None:
    """Raise ModelError for a JSON document that names code."""
    try:
        given = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{where} is damaged: {type(error).__name__}: {error}") from None
    stack: list[tuple[str, Any, int]] = [("", given, 0)]
    while stack:
        key, value, depth = stack.pop()
        if depth > _DEEPEST:
            raise ModelError(f"{where} is damaged: its parts are nested more than {_DEEPEST} deep")
        if isinstance(value, Mapping):
            _check_keys(value, key, where)
            stack.extend((k, v, depth + 1) for k, v in value.items() if k not in _FREE)
            for spec in ("in_spec", "out_spec"):
                if isinstance(value.get(spec), str):
                    _check_containers(value[spec], spec, where)
        elif isinstance(value, list):
            stack.extend((key, v, depth + 1) for v in value)
        elif isinstance(value, str):
            _check_text(key, value, where)


def _check_keys(value: Mapping[str, Any], key: str, where: str) -> None:
    for name in value:
        fits = _NAME.fullmatch(name) if key.endswith("_values") else _TEXT.fullmatch(name)
        if not fits:
            _refuse(where, f"the name {name[:80]!r}")
    path = value.get("path_name")
    if isinstance(path, str) and not re.fullmatch(r"(weight|tensor)_\w+", path):
        _refuse(where, f"an object that is no tensor ({path[:80]!r})")


def _check_text(key: str, value: str, where: str) -> None:
    if key == "expr_str":
        check_size_text(value, where)
    elif key in ("target", "as_operator"):
        known = _OPERATORS.fullmatch(value) or _SIZE_OPERATORS.fullmatch(value)
        if not known or any(part in _READS_FILES for part in value.split(".")):
            _refuse(where, f"{value[:80]!r} as an operator")
    elif key in ("name", "as_name", "forward_arg_names"):
        if not _NAME.fullmatch(value):
            _refuse(where, f"the name {value[:80]!r}")
    elif not _TEXT.fullmatch(value):
        _refuse(where, f"{value[:80]!r} as {key!r}")


def _check_containers(text: str, spec: str, where: str) -> None:
    """Look at the containers of inputs or outputs: torch makes code of the names of keywords."""
    try:
        tree = json.loads(text)[1]
        stack = [tree]
        while stack:
            node = stack.pop()
            stack.extend(node["children_spec"])
            context = json.dumps(node["context"])
            for module in re.findall(r"default_factory_module\W+([\w.]+)", context):
                if module.split(".")[0] not in _PLAIN_MODULES:
                    _refuse(where, f"a container that imports {module!r}")
            if "__enum__" in context:
                _refuse(where, "a container that imports the class of its keys")
        if spec == "in_spec" and len(tree["children_spec"]) == 2:
            keywords = tree["children_spec"][1]["context"]
            names = json.loads(keywords) if isinstance(keywords, str) else keywords
            for name in names or ():
                if isinstance(name, str) and not _NAME.fullmatch(name):
                    _refuse(where, f"the keyword {name[:80]!r}")
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        if isinstance(error, ModelError):
            raise
        raise ModelError(f"{where} is damaged: {spec} is no tree of containers") from None


def _refuse(where: str, what: str) -> NoReturn:
    raise ModelError(
        f"{where} has {what}. torch would run it while it reads the file, so it is not read: "
        "export the model again with torch.export.save, or pass the ExportedProgram"
    )


def _examples_of_other_classes(torch: Any, path: Path, sizes: Mapping[str, int]) -> bool:
    """Return whether the example inputs hold more than tensors; the compiler needs none of them."""
    for name in sizes:
        if name.startswith("data/sample_inputs/"):
            record = torch._C.PyTorchFileReader(str(path)).get_record(name)
            try:
                with zipfile.ZipFile(io.BytesIO(record)) as inner:
                    if sum(e.file_size for e in inner.infolist()) > len(record) + 2**20:
                        return True
                torch.load(io.BytesIO(record), weights_only=True, map_location="cpu")
            except Exception:  # torch's own classes differ from version to version
                return True
    return False


def _without_examples(path: Path) -> Path:
    """Return a copy of an archive, in a temporary file, whose example inputs are empty."""
    handle, name = tempfile.mkstemp(suffix=".pt2")
    os.close(handle)
    try:
        with zipfile.ZipFile(path) as old, zipfile.ZipFile(name, "w") as new:
            for entry in old.infolist():
                empty = "/data/sample_inputs/" in entry.filename
                new.writestr(entry.filename, b"" if empty else old.read(entry.filename))
    except BaseException:
        Path(name).unlink()
        raise
    return Path(name)


def unknown_operators(torch: Any, path: Path) -> list[str]:
    """Return the operators of a program in an archive that nobody has registered with torch."""
    named: set[tuple[str, str]] = set()
    try:
        with zipfile.ZipFile(path) as archive:
            for entry in archive.infolist():
                if entry.filename.endswith(".json"):
                    named |= set(_TARGET.findall(archive.read(entry).decode(errors="replace")))
    except Exception:  # the file is damaged, which is told by who asks
        return []
    named -= {(space, name) for space, name in named if space in ("_operator", "math", "torch")}
    return [
        f"{space}::{name}"
        for space, name in sorted(named)
        if not hasattr(getattr(torch.ops, space), name)
    ]
