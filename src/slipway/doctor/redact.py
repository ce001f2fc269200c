"""Text that may be shown to anybody: without tokens, passwords, keys, and whose machine it is."""

from __future__ import annotations

import getpass
import ipaddress
import platform
import re
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

_SECRET_NAME = re.compile(
    r"TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|AUTH|COOKIE|SIGNATURE|(^|_)(PW|PWD|PASS|KEY|KEYS)$"
    r"|API_?KEY|ACCESS_?KEY|PRIVATE_?KEY",
    re.I,
)
_NAMES_NO_SECRET = ("OLDPWD", "PWD")  # where a shell stands
# What has fewer characters is a switch or a number, which stands in any text.
_SHORTEST = 6
_LEAST_NAME = 3
_COMMON = {
    "root",
    "user",
    "admin",
    "ubuntu",
    "debian",
    "pi",
    "localhost",
    "runner",
    "build",
    "test",
}

_WORD = r"(?:token|secret|passw(?:or)?d|passphrase|api[_-]?key|access[_-]?key|private[_-]?key"
_WORD += r"|credentials?|cookie|authorization)"
_VALUE = r"(?:\"[^\"\n]*\"|'[^'\n]*'|[^\s,;}\]\"']+)"
# What is told of a removed text -> where such a text stands; a group that is kept stands before it.
_PATTERNS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("private key or certificate", re.compile(
        r"()-----BEGIN [^-\n]+-----.*?(?:-----END [^-\n]+-----|\Z)", re.S)),
    ("login in an address", re.compile(r"(\b[a-z][a-z0-9+.-]*://)[^\s/@]+(?=@)", re.I)),
    ("authorization", re.compile(r"(\b(?:bearer|basic)\s+)[\w.~+/=-]{6,}", re.I)),
    ("secret", re.compile(
        rf"([\"']?\b[\w-]*{_WORD}[\"']?\s*[=:]\s*)(?!\[removed|\.\.\.){_VALUE}", re.I)),
    ("secret", re.compile(rf"(--[\w-]*{_WORD}\s+)(?!\[removed)[^\s-]\S*", re.I)),
    ("token", re.compile(
        r"()\b(?:hf_\w{16,}|gh[pousr]_\w{16,}|github_pat_\w{16,}|glpat-[\w-]{16,}|sk-[\w-]{16,}"
        r"|xox[a-z]-[\w-]{10,}|(?:AKIA|ASIA)[0-9A-Z]{16}|AIza[\w-]{30,}|pypi-[\w-]{16,}"
        r"|eyJ[\w-]{6,}\.[\w-]{6,}\.[\w-]*)")),
    ("token of 32 digits", re.compile(r"()(?<![0-9a-fA-F])[0-9a-f]{32}(?![0-9a-fA-F])")),
    ("e-mail address", re.compile(r"()\b[\w.+-]+@[\w-]+(?:\.[\w-]+)*\.[A-Za-z]{2,}\b(?!:)")),
)  # fmt: skip
# An address is one only beside a port or a login: versions have four numbers as well.
_ADDRESS = re.compile(
    r"(?<![\w.])(?:(?<=@)|(?<=//)|(?=[\d.]+:\d))(\d{1,3}(?:\.\d{1,3}){3})(?![\w.])"
)


def is_secret(name: str) -> bool:
    """Return whether a variable or option of that name holds something secret."""
    return name not in _NAMES_NO_SECRET and _SECRET_NAME.search(name) is not None


class Redactor:
    """Replaces in texts what is secret or personal; `removed` counts what was, by kind.

    `environment` is that of the process: whatever a variable with the name of a secret holds is
    removed wherever it stands, as are the names of the user and of the machine.
    """

    def __init__(
        self,
        environment: Mapping[str, str],
        *,
        home: str | None = None,
        user: str | None = None,
        host: str | None = None,
    ) -> None:
        self.removed: Counter[str] = Counter()
        values = {
            value: name
            for name, value in sorted(environment.items())
            if is_secret(name) and len(value) >= _SHORTEST
        }
        # The longest first: one may be a part of another.
        self._values = sorted(values.items(), key=lambda item: -len(item[0]))
        self._home = (home if home is not None else _home()).rstrip("/\\")
        self._user = user if user is not None else _user()
        self._host = host if host is not None else platform.node()

    def text(self, text: str) -> str:
        """Return the text with a word in brackets for each thing that was removed."""
        for value, name in self._values:
            self._count(f"value of {name}", text.count(value))
            text = text.replace(value, f"[removed: {name}]")
        for kind, pattern in _PATTERNS:
            text = pattern.sub(self._mark(kind), text)
        text = _ADDRESS.sub(self._address, text)
        if len(self._home) > 1:
            text, count = re.subn(rf"(?<!\w){re.escape(self._home)}(?![\w-])", "~", text)
            self._count("home folder", count)
        text = re.sub(r"(?<=/home/)[^/\s:\"']+|(?<=/Users/)[^/\s:\"']+", self._person, text)
        for name, shown in ((self._user, "[user]"), (self._host, "[host]")):
            if len(name) >= _LEAST_NAME and name.lower() not in _COMMON:
                word = rf"(?<![\w-]){re.escape(name)}(?![\w-])"
                text, count = re.subn(word, shown, text)
                self._count(f"name of the {shown[1:-1]}", count)
        return text

    def variables(self, environment: Mapping[str, str]) -> dict[str, str]:
        """Return variables, of which secret ones say only that they are set."""
        shown = {}
        for name, value in sorted(environment.items()):
            if is_secret(name):
                self._count(f"value of {name}", 1)
                shown[name] = f"[removed: {len(value)} characters]" if value else ""
            else:
                shown[name] = self.text(value)
        return shown

    def _mark(self, kind: str) -> Callable[[re.Match[str]], str]:
        def marked(match: re.Match[str]) -> str:
            self._count(kind, 1)
            return f"{match[1]}[removed: {kind}]"

        return marked

    def _person(self, _match: re.Match[str]) -> str:
        self._count("name of the user", 1)
        return "[user]"

    def _address(self, match: re.Match[str]) -> str:
        try:
            is_public = ipaddress.ip_address(match[1]).is_global
        except ValueError:
            return match[0]
        if not is_public:
            return match[0]
        self._count("public address", 1)
        return "[address]"

    def _count(self, kind: str, count: int) -> None:
        if count:
            self.removed[kind] += count


def _home() -> str:
    try:
        return str(Path.home())
    except RuntimeError:
        return ""


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""
