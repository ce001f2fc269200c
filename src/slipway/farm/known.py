"""The devices that this user added: where they are, how to log in there, and their tokens."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path

from slipway.errors import FileError
from slipway.toolchain import runtime_library
from slipway.toolchain.link import write_file


def folder() -> Path:
    """Return the folder with one file for each device; only its user may read it."""
    path = runtime_library.cache_dir() / "devices"
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path


@dataclass(frozen=True)
class Known:
    """A machine that `slipway device add` made a device."""

    address: str
    key: str
    architecture: str
    port: int
    tracker: str | None
    ssh_port: int | None
    identity: str | None
    network_name: str
    custom_address: str | None

    @property
    def path(self) -> Path:
        """The file that says so."""
        return _file(self.address, self.ssh_port)

    @property
    def token_file(self) -> Path:
        """The file with the token that was made for it, where one was made."""
        return self.path.with_suffix(".token")

    def own_token(self) -> str | None:
        """Return the token that was made for it when it was added before."""
        try:
            return self.token_file.read_text(encoding="ascii").strip() or None
        except FileNotFoundError:
            return None

    def save(self, own_token: str | None) -> None:
        """Write it down, with the token that was made for it."""
        for path, text in ((self.token_file, own_token), (self.path, json.dumps(asdict(self)))):
            if text is None:
                path.unlink(missing_ok=True)
                continue
            write_file(path, f"{text}\n".encode(), mode=0o600)

    def forget(self) -> None:
        """Remove what is known of it."""
        self.path.unlink(missing_ok=True)
        self.token_file.unlink(missing_ok=True)


def find(address: str, ssh_port: int | None = None) -> Known | None:
    """Return a device by the address that it was added with, or None."""
    if ssh_port is not None:
        return _read(_file(address, ssh_port))
    return next((one for one in every() if one.address == address), None)


def every() -> list[Known]:
    """Return all devices that were added, by address."""
    found = [_read(path) for path in sorted(folder().glob("*.json"))]
    return sorted((one for one in found if one is not None), key=lambda one: one.address)


def _file(address: str, ssh_port: int | None) -> Path:
    name = sha256(f"{address} {ssh_port or 22}".encode()).hexdigest()[:16]
    return folder() / f"{name}.json"


def _read(path: Path) -> Known | None:
    try:
        return Known(**json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    except (ValueError, TypeError):
        raise FileError(f"{path} is damaged; remove it, and add the device again") from None
