"""Static archives (.a): written and read here, because the format is forty lines.

System V form with GNU long names and a symbol index, as ld, lld and gold read it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from slipway.errors import ArtifactError
from slipway.toolchain.elf import ElfFile, is_elf

_MAGIC = b"!<arch>\n"
_HEADER_BYTES = 60
_LONGEST_NAME = 4096  # of a member that is read


def write_archive(members: Mapping[str, bytes]) -> bytes:
    """Return the archive of `members` (name -> content); equal input gives equal bytes."""
    names = b"".join(f"{name}/\n".encode() for name in members if len(name) > 15)
    symbols = [
        (symbol, index)
        for index, (name, content) in enumerate(members.items())
        for symbol in (ElfFile(content, name).exported if is_elf(content) else ())
    ]
    text = b"".join(symbol.encode() + b"\0" for symbol, _ in symbols)
    index_bytes = 4 + 4 * len(symbols) + len(text)
    offset = len(_MAGIC) + _padded(_HEADER_BYTES + index_bytes)
    if names:
        offset += _padded(_HEADER_BYTES + len(names))
    starts: list[int] = []
    for content in members.values():
        starts.append(offset)
        offset += _padded(_HEADER_BYTES + len(content))
    index = len(symbols).to_bytes(4, "big")
    index += b"".join(starts[which].to_bytes(4, "big") for _, which in symbols) + text
    parts = [_MAGIC, _member("/", index)]
    if names:
        parts.append(_member("//", names))
    long_offset = 0
    for name, content in members.items():
        if len(name) > 15:
            parts.append(_member(f"/{long_offset}", content))
            long_offset += len(name.encode()) + 2
        else:
            parts.append(_member(f"{name}/", content))
    return b"".join(parts)


def read_archive(data: bytes, name: str = "archive") -> dict[str, bytes]:
    """Return the members of an archive, its index left out; ArtifactError if it is damaged."""
    if not data.startswith(_MAGIC):
        raise ArtifactError(f"{name} is not a static archive (.a); export it again.")
    members: dict[str, bytes] = {}
    long_names = b""
    for title, content in _members(data, name):
        if title == "//":
            long_names = content
        elif title not in ("/", "/SYM64/"):
            members[_full_name(title, long_names)] = content
    return members


def _full_name(title: str, long_names: bytes) -> str:
    start = _number(title[1:]) if title.startswith("/") else None
    if start is not None:
        end = long_names.find(b"/\n", start, start + _LONGEST_NAME)
        return long_names[start : max(end, start)].decode("utf-8", "replace")
    return title.rstrip("/")


def _members(data: bytes, name: str) -> Iterator[tuple[str, bytes]]:
    at = len(_MAGIC)
    while at < len(data):
        header = data[at : at + _HEADER_BYTES]
        size = _number(header[48:58].decode("latin-1").strip())
        if len(header) < _HEADER_BYTES or header[58:60] != b"`\n" or size is None:
            raise ArtifactError(f"{name} is a damaged static archive; export or copy it again.")
        start = at + _HEADER_BYTES
        if start + size > len(data):
            raise ArtifactError(f"{name} is a truncated static archive; export or copy it again.")
        yield header[:16].decode("latin-1").strip(), data[start : start + size]
        at = _padded(start + size)


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() else None


def _padded(size: int) -> int:
    return size + size % 2


def _member(title: str, content: bytes) -> bytes:
    header = f"{title:<16}{0:<12}{0:<6}{0:<6}{'644':<8}{len(content):<10}`\n".encode()
    return header + content + b"\n" * (len(content) % 2)
