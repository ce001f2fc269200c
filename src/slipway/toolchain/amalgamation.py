"""The C runtime as two files, ``slipway.h`` and ``slipway.c``, for projects without a build system.

All sources of a host's runtime but RPC, one after the other.  Names that two files have for things
of their own are told apart by a prefix, the file's; everything else is as it is written.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from slipway.toolchain.link import write_file
from slipway.toolchain.native import crt_sources, include_path
from slipway.toolchain.runtime_library import CRT
from slipway.version import VERSION

HEADER, SOURCE = "slipway.h", "slipway.c"
_LEFT_OUT = (  # RPC, and what only firmware or Python has
    *("src/rpc_", "src/serial_link", "src/device_code", "src/device_session", "src/image_module"),
    *("src/aot_module", "posix/rpc/", "posix/packed", "posix/foreign_"),
)
_PUBLIC_LEFT_OUT = ("rpc_", "serial_", "device_session", "image", "aot_")
_INCLUDE = re.compile(r'^#include (?:"([^"]+)"|<([^>]+)>).*\n', re.MULTILINE)
_TOKEN = re.compile(
    r'(?P<skip>/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\')'
    r"|(?P<access>(?:\.|->)\s*[A-Za-z_]\w*)|(?P<name>[A-Za-z_]\w*)|(?P<brace>[{}])",
    re.DOTALL,
)
_OWN_NAMES = (  # what a file defines for itself, by the house's layout
    re.compile(r"^static [^;={(]*?\**(\w+)(?:\[[^\]]*\])*(?: = |;|\()", re.MULTILINE),
    re.compile(r"^\} (?:\w+ )*(\w+)(?:\[[^\]]*\])*;", re.MULTILINE),
    re.compile(r"^typedef struct (\w+) ", re.MULTILINE),
    re.compile(r"^typedef [^{;]*?(\w+);", re.MULTILINE),
)
_ENUMERATED = re.compile(r"^  ([A-Z]\w+) = ", re.MULTILINE)
_DEFINED = re.compile(r"^ *# *define (\w+)", re.MULTILINE)


def write_amalgamation(folder: str | Path) -> list[Path]:
    """Write the two files into `folder`, which is made if it is not there, and return them."""
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    sources = [
        path
        for path in crt_sources("src", "posix", "classic")
        if not path.relative_to(CRT).as_posix().startswith(_LEFT_OUT)
    ]
    made = {HEADER: _header(), SOURCE: _source(sources)}
    for name, text in made.items():
        write_file(target / name, text.encode())
    return [target / name for name in made]


def _banner(what: str) -> str:
    return f"/* SPDX-License-Identifier: Apache-2.0 */\n/* Slipway {VERSION}: {what} */\n"


def _header() -> str:
    """Return the public headers in an order in which each finds what it needs."""
    done: list[Path] = []
    text = ""
    public = sorted((include_path() / "slipway").glob("*.h"))
    classic = [include_path() / "tvm" / "runtime" / f"c_{n}_api.h" for n in ("runtime", "backend")]
    for path in [*public, *classic]:
        if not path.name.startswith(_PUBLIC_LEFT_OUT):
            text += _expanded(path, done, [include_path()], set())
    guard = "#ifndef SLIPWAY_H_\n#define SLIPWAY_H_\n\n"
    return f"{_banner('models on a device, in C')}{guard}{text}#endif /* SLIPWAY_H_ */\n"


def _expanded(path: Path, done: list[Path], folders: list[Path], system: set[str]) -> str:
    """Return a file with our own headers in place of their includes; each comes once."""
    if path in done:
        return ""
    done.append(path)

    def replace(match: re.Match[str]) -> str:
        own, other = match.groups()
        if other == "dlpack/dlpack.h":
            return ""
        if own is None:
            system.add(other)
            return match.group(0)
        found = next(f / own for f in (path.parent, *folders) if (f / own).is_file())
        return _expanded(found, done, folders, system)

    return _INCLUDE.sub(replace, path.read_text(encoding="utf-8")) + "\n"


def _source(sources: list[Path]) -> str:
    texts = {path: path.read_text(encoding="utf-8") for path in sources}
    names = {path: _own_names(text) for path, text in texts.items()}
    shared = {
        name for name, n in Counter(x for own in names.values() for x in own).items() if n > 1
    }
    private: list[Path] = []
    parts = [
        _banner("the runtime. Compile it with -pthread, link it with -ldl"),
        '#ifndef _GNU_SOURCE\n#define _GNU_SOURCE 1\n#endif\n#include "slipway.h"\n',
    ]
    for path, text in texts.items():
        if '.c"' in text and (again := _compiled_again(path, text)):
            parts.append(f"\n/* {path.relative_to(CRT).as_posix()} */\n{again}")
            continue
        heads = "".join(_private_headers(path, text, private))
        body = _INCLUDE.sub(lambda m: m.group(0) if m.group(2) else "", text)
        body = body.replace("#define _GNU_SOURCE\n", "")  # which the first line does for all
        prefix = f"{path.parent.name}_{path.stem}_own_"
        body = _renamed(body, {name: prefix + name for name in names[path] & shared})
        parts.append(f"\n/* {path.relative_to(CRT).as_posix()} */\n{heads}{body}{_undone(body)}")
    return "".join(parts)


def _compiled_again(path: Path, text: str) -> str:
    """Return a file that includes sources to compile them under other names, with these in place.

    Their headers come along a second time, where what the file defines says something else in them.
    """
    codes = [path.parent / own for own, _ in _INCLUDE.findall(text) if own.endswith(".c")]
    if not codes:
        return ""
    switches = set(_DEFINED.findall(text))
    headers: list[Path] = []
    for code in codes:
        for own, _ in _INCLUDE.findall(code.read_text(encoding="utf-8")):
            header = path.parent / own
            if own and header.is_file() and header not in headers:
                headers.append(header)
    private = [h.read_text(encoding="utf-8") for h in headers]
    private = [t for t in private if any(switch in t for switch in switches)]
    texts = [text, *private, *(code.read_text(encoding="utf-8") for code in codes)]
    body = "".join(_INCLUDE.sub(lambda m: m[0] if m[2] else "", t) for t in texts)
    own_names = _own_names(body) | {name for t in private for name in _ENUMERATED.findall(t)}
    prefix = f"{path.parent.name}_{path.stem}_own_"
    return (
        "".join(map(_undone, private))
        + _renamed(body, {name: prefix + name for name in own_names})
        + _undone(body)
    )


def _undone(text: str) -> str:
    return "".join(f"#undef {name}\n" for name in sorted(set(_DEFINED.findall(text))))


def _own_names(text: str) -> set[str]:
    return {name for pattern in _OWN_NAMES for name in pattern.findall(text)}


def _private_headers(path: Path, text: str, done: list[Path]) -> list[str]:
    """Return the headers that are not public and that no file before has brought."""
    found = []
    for own, _ in _INCLUDE.findall(text):
        header = path.parent / own
        if own and header.is_file() and header not in done:
            done.append(header)
            inner = header.read_text(encoding="utf-8")
            found += _private_headers(header, inner, done)
            found.append(_INCLUDE.sub(lambda m: m.group(0) if m.group(2) else "", inner))
    return found


def _renamed(text: str, names: dict[str, str]) -> str:
    """Return C with some identifiers replaced, but for members, comments and texts.

    What stands between the braces of a struct are types, which are renamed, and members, which are
    not: a member is followed by ``;``, ``,``, ``[``, ``:`` or ``)(``.
    """
    if not names:
        return text
    depths: list[bool] = []  # of each open brace: whether it is a struct's
    out, at = [], 0
    for match in _TOKEN.finditer(text):
        if match["brace"] == "{":
            before = text[: match.start()].rstrip()
            depths.append(bool(re.search(r"\b(?:struct|union)(?:\s+\w+)?$", before)))
        elif match["brace"] and depths:
            depths.pop()
        elif match["name"] in names:
            is_member = bool(depths and depths[-1]) and re.match(
                r"\s*[;,\[:]|\)\(", text[match.end() :]
            )
            if not is_member:
                out += [text[at : match.start()], names[match["name"]]]
                at = match.end()
    return "".join([*out, text[at:]])
