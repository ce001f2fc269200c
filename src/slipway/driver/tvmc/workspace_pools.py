"""``tvmc compile --workspace-pools sram,dram``: the memories of a program, from a command line."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence

from slipway.driver.tvmc.model import TVMCException
from slipway.ir.memory_pools import PoolInfoProperties, WorkspaceMemoryPools, WorkspacePoolInfo
from slipway.target import Target

# Option -> whether what it says is a number of the pool; the others name targets.
_NUMBERS = (
    "size-hint-bytes", "clock-frequency-hz", "read-bandwidth-bytes-per-cycle",
    "write-bandwidth-bytes-per-cycle", "read-latency-cycles", "write-latency-cycles",
)  # fmt: skip
_OPTIONS = ("targets", *_NUMBERS, "target-burst-bytes")


def generate_workspace_pools_args(parser: argparse.ArgumentParser) -> None:
    """Add the options: the pools' names, and what is known of each as NAME:VALUE."""
    parser.add_argument("--workspace-pools", metavar="NAME,NAME", help="the pools of a program")
    for option in _OPTIONS:
        what = "NAME:TARGET:VALUE" if option == "target-burst-bytes" else "NAME:VALUE"
        parser.add_argument(f"--workspace-pools-{option}", action="append", metavar=what)


def workspace_pools_recombobulate(
    parsed: argparse.Namespace,
    targets: Sequence[Target],
    extra_target: Sequence[Mapping[str, str]] = (),
) -> WorkspaceMemoryPools | None:
    """Return the pools that a command line describes, or None where it names none.

    `targets` are those of the line, `extra_target` further ones as {"raw": text}.  Raises
    TVMCException for a pool without a target, and for one of another target or without a name.
    """
    given = {option: getattr(parsed, _name(option), None) or [] for option in _OPTIONS}
    names = [n.strip() for n in (parsed.workspace_pools or "").split(",") if n.strip()]
    for option, texts in given.items():
        for text in texts:
            if text.partition(":")[0] not in names or ":" not in text:
                raise TVMCException(
                    f"--workspace-pools-{option} {text!r} is not NAME:VALUE of one of "
                    f"--workspace-pools, {', '.join(names) or 'which names none'}"
                )
    if not names:
        return None
    known = [*targets, *(Target(extra["raw"]) for extra in extra_target)]
    known += [target.host for target in targets if target.host is not None]
    return WorkspaceMemoryPools([_pool(name, given, known) for name in names])


def _pool(
    name: str, given: Mapping[str, Sequence[str]], known: Sequence[Target]
) -> WorkspacePoolInfo:
    values = {
        option: [t.partition(":")[2] for t in texts if t.partition(":")[0] == name]
        for option, texts in given.items()
    }
    if not values["targets"]:
        raise TVMCException(
            f'No target specified for Workspace Pool "{name}": add '
            f"--workspace-pools-targets={name}:{known[0].kind.name}"
        )
    wanted = [kind for text in values["targets"] for kind in text.split(",")]
    matched = [target for target in known if target.kind.name in wanted]
    if not matched:
        raise TVMCException(
            f'Workspace Pool "{name}" using undefined Target "{", ".join(wanted)}"; the targets '
            f"are {', '.join(target.kind.name for target in known)}"
        )
    numbers = {
        _word(option): _number(option, values[option][-1]) for option in _NUMBERS if values[option]
    }
    bursts = {}
    for text in values["target-burst-bytes"]:
        kind, _, size = text.rpartition(":")
        of = next((target for target in known if target.kind.name == kind), None)
        if of is None:
            raise TVMCException(
                "The workspace pool target specification needs to contain a subset of the same "
                f"TVM targets as when specifying targets to use: {text!r} is not "
                f"{known[0].kind.name}:BYTES"
            )
        bursts[of] = _number("target-burst-bytes", size)
    properties = PoolInfoProperties(**numbers, target_burst_bytes=bursts)
    return WorkspacePoolInfo(name, matched, properties)


def _number(option: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise TVMCException(f"--workspace-pools-{option}: {text!r} is not a number") from None


def _word(option: str) -> str:
    return option.replace("-", "_")


def _name(option: str) -> str:
    return f"workspace_pools_{_word(option)}"
