"""The text of a ``.cfg`` file: sections ``[name]`` of lines ``key=value``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from slipway.errors import ModelError

Value = TypeVar("Value")
COMMENTS = ("#", ";")


class Section:
    """One section: its name, the line that it begins at, and its options as text."""

    def __init__(self, file: str, name: str, line: int) -> None:
        self.file = file
        self.name = name
        self.line = line
        self.options: dict[str, str] = {}

    def __contains__(self, key: str) -> bool:
        return key in self.options

    @property
    def location(self) -> str:
        """Where the section is, for errors."""
        return f"{self.file}, line {self.line}, [{self.name}]"

    def error(self, problem: str) -> ModelError:
        """Return the error for something that is wrong in this section."""
        return ModelError(f"{self.location}: {problem}")

    def whole(self, key: str, default: int | None = None) -> int:
        """Return an option that is an integer; `default` where it is not given."""
        return self._read(key, default, int, "an integer")

    def real(self, key: str, default: float | None = None) -> float:
        """Return an option that is a number."""
        return self._read(key, default, float, "a number")

    def text(self, key: str, default: str) -> str:
        """Return an option as it stands."""
        return self.options.get(key, default)

    def reals(self, key: str) -> list[float]:
        """Return an option that is a list of numbers; empty where it is not given."""
        return self._read(key, [], _list_of(float), "numbers with commas between them")

    def wholes(self, key: str) -> list[int]:
        """Return an option that is a list of integers; empty where it is not given."""
        return self._read(key, [], _list_of(int), "integers with commas between them")

    def _read(
        self, key: str, default: Value | None, parse: Callable[[str], Value], what: str
    ) -> Value:
        given = self.options.get(key)
        if given is None:
            if default is None:
                raise self.error(f"{key}= is missing")
            return default
        try:
            return parse(given)
        except ValueError:
            raise self.error(f"{key}={given}: this is not {what}") from None


def _list_of(parse: Callable[[str], Value]) -> Callable[[str], list[Value]]:
    return lambda text: [parse(item) for item in text.split(",") if item]


def read_sections(path: Path) -> list[Section]:
    """Read the sections of a ``.cfg`` file; the first is the one of the whole network."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror or error}") from None
    sections: list[Section] = []
    for number, line in _contents(lines):
        if line.startswith("["):
            if not line.endswith("]"):
                raise ModelError(f"{path.name}, line {number}: {line!r} has no closing bracket")
            sections.append(Section(path.name, line[1:-1], number))
            continue
        key, equals, value = line.partition("=")
        if not equals or not sections:
            raise ModelError(
                f"{path.name}, line {number}: {line!r} is neither a [section] nor a key=value "
                "below one: this is no .cfg file of Darknet"
            )
        sections[-1].options[key] = value
    if not sections or sections[0].name not in ("net", "network"):
        raise ModelError(f"{path.name} does not begin with [net]: this is no .cfg file of Darknet")
    return sections


def _contents(lines: list[str]) -> Iterator[tuple[int, str]]:
    """Yield the lines that say something, with their numbers; blanks never count."""
    for number, line in enumerate(lines, 1):
        text = "".join(line.split())
        if text and not text.startswith(COMMENTS):
            yield number, text
