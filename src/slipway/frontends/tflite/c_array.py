"""A TFLite model as an array in C source, as projects of TensorFlow Lite Micro hold theirs.

``xxd -i`` and TFLM's own tools write ``const unsigned char g_model[] = {0x1c, 0x00, ...};``.
"""

from __future__ import annotations

import re
from pathlib import Path

from slipway.errors import ModelError

SUFFIXES = (".c", ".cc", ".cpp", ".cxx", ".h", ".hpp", ".ino")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_ARRAY = re.compile(r"(\w+)\s*\[[^\]]*\][^=;{}\[\]]*=\s*\{([^{}]*)\}")
_BYTE = re.compile(r"(?:0[xX][0-9a-fA-F]{1,2}|\d{1,3})")
_MARK = slice(4, 8)  # where a file has its identifier
_IDENTIFIER = b"TFL3"


def file_bytes(path: Path) -> bytes:
    """Return the bytes of the TFLite file at `path`, or in the array of the C source there.

    Raises OSError, and ModelError for a source without such an array, or with several.
    """
    if path.suffix.lower() not in SUFFIXES:
        return path.read_bytes()
    found = _arrays(path)
    if len(found) == 1:
        return next(iter(found.values()))
    names = f"several models ({', '.join(found)})" if found else "no TFLite model in an array"
    raise ModelError(f"{path} holds {names}; give the .tflite file, or a source with one array")


def holds_model(path: Path) -> bool:
    """Return whether the file at `path` is C source with a TFLite model, or models, in arrays."""
    return path.suffix.lower() in SUFFIXES and path.is_file() and bool(_arrays(path))


def _arrays(path: Path) -> dict[str, bytes]:
    """Return the arrays of a source that are TFLite files, by their names."""
    source = _COMMENT.sub(" ", path.read_text(encoding="utf-8", errors="replace"))
    found = {}
    for name, body in _ARRAY.findall(source):
        words = [word.strip() for word in body.split(",")]
        if words and not words[-1]:
            del words[-1]
        if len(words) < _MARK.stop or not all(map(_BYTE.fullmatch, words[: _MARK.stop])):
            continue
        if bytes(int(word, 0) & 0xFF for word in words[_MARK]) != _IDENTIFIER:
            continue
        found[name] = _values(path, name, words)
    return found


def _values(path: Path, name: str, words: list[str]) -> bytes:
    try:
        return bytes(int(word, 0) for word in words)
    except ValueError:
        bad = next((word for word in words if not _BYTE.fullmatch(word)), "a number above 255")
        raise ModelError(
            f"{path}: the array {name} begins as a TFLite model does, and holds {bad[:40]!r}, "
            "which is no byte"
        ) from None
