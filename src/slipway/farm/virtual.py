"""A tracker with its page, and devices of several kinds under QEMU."""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import shlex
import shutil
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from importlib.util import find_spec
from pathlib import Path

from slipway.errors import (
    ArgumentValueError,
    ExecutionError,
    FileError,
    RPCConnectionError,
    RPCTimeoutError,
    TargetError,
    ToolchainError,
    did_you_mean,
)
from slipway.farm.boards import BOARDS, build_firmware, checked_board, why_no_board
from slipway.farm.process import Running, start
from slipway.micro.board import find_board
from slipway.rpc.tracker_client import connect_tracker
from slipway.toolchain import emulators, native, runtime_library
from slipway.toolchain.link import write_file

KINDS = ("aarch64", "armv7", "riscv64", "x86_64")
START_S = 60.0
STATE = "farm.json"
COMMANDS = "commands.toml"
ANEW = "`slipway farm down` and then `slipway farm up` start it anew"


@dataclass
class VirtualFarm:
    """What `up` started: its folder holds state, tokens and logs."""

    folder: str
    port: int = 0
    page: int | None = None
    processes: list[Running] = field(default_factory=list)
    devices: dict[str, int] = field(default_factory=dict)

    @property
    def token_file(self) -> Path:
        """The file with the token of devices and clients."""
        return Path(self.folder) / "token.txt"

    @property
    def admin_file(self) -> Path:
        """The file with the administrator's token, for the page."""
        return Path(self.folder) / "admin.txt"

    def save(self) -> None:
        """Write down what runs, so that another process can end it."""
        write_file(Path(self.folder) / STATE, json.dumps(asdict(self), indent=1).encode())


def farm_folder() -> Path:
    """Return the folder of this user's farm."""
    return runtime_library.cache_dir() / "farm"


def load(folder: Path | None = None) -> VirtualFarm | None:
    """Return the farm that `up` started; None when there is none."""
    state = (folder or farm_folder()) / STATE
    try:
        found = json.loads(state.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValueError:
        raise FileError(
            f"{state} is damaged; end what it started by hand and remove the folder"
        ) from None
    found["processes"] = [Running(**one) for one in found["processes"]]
    return VirtualFarm(**found)


def checked_kinds(kinds: Sequence[str]) -> list[str]:
    """Return the kinds; TargetError, ToolchainError for what cannot be a virtual device here."""
    for kind in kinds:
        if kind in BOARDS:
            checked_board(kind)
            continue
        if problem := why_no_board(kind):
            raise TargetError(problem)
        if kind not in KINDS:
            every = (*KINDS, *BOARDS)
            raise TargetError(
                f"{kind!r} is no kind of virtual device; there are {', '.join(every)}."
                f"{did_you_mean(kind, every)}"
            )
        if emulators.find(kind) is None:
            raise ToolchainError(emulators.install_hint(kind))
    if not kinds:
        raise ArgumentValueError(f"name kinds of devices: {','.join(KINDS[:2])}")
    return list(dict.fromkeys(kinds))


def up(
    kinds: Sequence[str], each: int, port: int = 9190, page: int | None = 8190,
    folder: Path | None = None,
) -> VirtualFarm:  # fmt: skip
    """Start a tracker, its page, and `each` devices of every kind; return when all are free.

    Everything listens on loopback only.  Raises ExecutionError when a farm runs already, and ends
    what it started when something fails.
    """
    wanted = checked_kinds(kinds)
    root = folder or farm_folder()
    old = load(root)
    if old is not None:
        if any(process.is_alive for process in old.processes):
            state = f"runs already, at port {old.port}" if old.port else "is being started already"
            raise ExecutionError(f"a farm {state}; `slipway farm down` ends it")
        down(root)
    servers = {kind: _built_server(kind) for kind in wanted if kind in KINDS}
    root.mkdir(parents=True, exist_ok=True)
    root.chmod(0o700)
    farm = VirtualFarm(str(root))
    for path in (farm.token_file, farm.admin_file):
        path.touch(mode=0o600)
        path.write_text(secrets.token_hex(16) + "\n", encoding="ascii")
    try:
        for kind in set(wanted) & set(BOARDS):
            servers[kind] = _built_firmware(kind, root)
        _write_commands(root, wanted)
        _start_tracker(farm, port, page)
        for kind in wanted:
            for number in range(each):
                _start_device(farm, kind, number, servers[kind])
        _wait_for_devices(farm, {kind: each for kind in wanted})
    except BaseException:
        farm.save()
        down(root)
        raise
    farm.devices = {kind: each for kind in wanted}
    farm.save()
    return farm


def add(kind: str, folder: Path | None = None) -> VirtualFarm:
    """Start one more device of a kind in the farm that runs; return when it is registered.

    Raises ExecutionError where no farm runs.
    """
    (wanted,) = checked_kinds([kind])
    root = folder or farm_folder()
    if load(root) is None:
        raise ExecutionError("there is no farm; `slipway farm up` starts one")
    program = _built_server(kind) if kind in KINDS else _built_firmware(kind, root)
    with (root / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two may be added at the same time
        farm = load(root)
        if farm is None or not any(process.is_alive for process in farm.processes):
            raise ExecutionError("the farm is down; `slipway farm up` starts it")
        if not farm.processes[0].is_alive:
            raise ExecutionError(f"the farm's tracker has ended; {ANEW}")
        count = farm.devices.get(wanted, 0)
        _start_device(farm, wanted, count, program)
        farm.devices[wanted] = count + 1
        farm.save()
    _wait_for_devices(farm, {wanted: count + 1}, may_be_busy=True)
    return farm


def _built_server(kind: str) -> Path:
    return native.build_device_server(f"{kind}-linux")


def _built_firmware(kind: str, root: Path) -> Path:
    folder = root / f"firmware-{kind}"
    image = folder / "build" / "firmware.elf"
    return image if image.is_file() else build_firmware(find_board(BOARDS[kind]), folder)


def _write_commands(root: Path, kinds: Sequence[str]) -> None:
    """Write the page's commands: one more device of each kind."""
    every = list(dict.fromkeys([*kinds, "aarch64"]))
    lines = []
    for kind in every:
        command = [sys.executable, "-m", "slipway", "farm", "add", kind]
        run = json.dumps(shlex.join(command))
        lines += ["[[command]]", f'name = "Start one more {kind}"', f"run = {run}", "farm = true"]
        lines.append("timeout_s = 300")
    (root / COMMANDS).write_text("\n".join([*lines, ""]), encoding="utf-8")


def down(folder: Path | None = None) -> int:
    """End all processes of the farm and remove its folder; return how many still ran."""
    farm = load(folder)
    if farm is None:
        return 0
    running = [process for process in farm.processes if process.is_alive]
    for process in reversed(running):
        process.end()
    shutil.rmtree(farm.folder, ignore_errors=True)
    return len(running)


def _environment() -> dict[str, str]:
    # The tokens are those of the farm, not of whoever starts it.
    return {k: v for k, v in os.environ.items() if not k.startswith("SLIPWAY_RPC_")}


def _start_tracker(farm: VirtualFarm, port: int, page: int | None) -> None:
    command = [sys.executable, "-m", "slipway.exec.rpc_tracker", "--log-format", "json"]
    command += ["--port", str(port), "--port-end", str(port + 100 if port else 1)]
    command += ["--token-file", str(farm.token_file), "--admin-token-file", str(farm.admin_file)]
    command += ["--state", str(Path(farm.folder) / "farm.sqlite")]
    command += ["--commands", str(Path(farm.folder) / COMMANDS)]
    with_page = page is not None and find_spec("starlette") is not None
    if with_page:
        command += ["--web", str(page), "--web-end", str(page + 100 if page else 1)]
    tracker = start("tracker", command, Path(farm.folder), _environment())
    farm.processes.append(tracker)
    farm.save()
    ports = _listening(Path(farm.folder) / "tracker.log", tracker, 2 if with_page else 1)
    farm.port = ports[0]
    farm.page = ports[1] if with_page else None


def _listening(log: Path, process: Running, count: int) -> list[int]:
    """Return the ports that a program says it listens at, once it has said `count`."""
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
        events = [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]
        told = [event for event in events if event.get("event") == "listening"]
        found = [event["address"] for event in told if "address" in event]
        if len(found) >= count:
            return [int(address.rstrip("/").rpartition(":")[2]) for address in found]
        if not process.is_alive:
            break
        time.sleep(0.05)
    said = log.read_text(encoding="utf-8", errors="replace").strip() or "nothing"
    kind = RPCConnectionError if "cannot listen" in said else ExecutionError
    raise kind(f"the {process.name} did not start; it said: {said[-800:]}")


def _start_device(farm: VirtualFarm, kind: str, number: int, program: Path) -> None:
    """Start a device; `program` is its server, or the firmware of a board."""
    name = f"{kind}-{number}"
    if kind in BOARDS:
        command = [sys.executable, "-m", "slipway.exec.board_server"]
        command += ["--board", BOARDS[kind], "--image", str(program)]
    else:
        emulator = emulators.find(kind)
        assert emulator is not None  # `checked_kinds` has looked
        command = [*emulator, str(program)]
    command += ["--host", "127.0.0.1", "--port", "0", "--key", kind]
    command += ["--tracker", f"127.0.0.1:{farm.port}", "--token-file", str(farm.token_file)]
    farm.processes.append(start(name, command, Path(farm.folder), _environment()))
    farm.save()


def _wait_for_devices(farm: VirtualFarm, wanted: dict[str, int], may_be_busy: bool = False) -> None:
    which = "total" if may_be_busy else "free"
    token = farm.token_file.read_text(encoding="ascii").strip()
    deadline = time.monotonic() + START_S
    with connect_tracker("127.0.0.1", farm.port, token=token) as tracker:
        while time.monotonic() < deadline:
            queues = tracker.summary()["queue_info"]
            if all(queues.get(kind, {}).get(which, 0) >= n for kind, n in wanted.items()):
                return
            for process in farm.processes[-1:] if may_be_busy else farm.processes:
                if not process.is_alive:
                    log = Path(farm.folder) / f"{process.name}.log"
                    said = log.read_text(encoding="utf-8", errors="replace").strip() or "nothing"
                    raise ExecutionError(f"{process.name} ended; it said: {said[-800:]}")
            time.sleep(0.05)
    raise RPCTimeoutError(f"not all devices came within {START_S:g} s")
