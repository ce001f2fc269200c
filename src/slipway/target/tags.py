"""Tags: devices people have, by name ("raspberry-pi/4b-aarch64"), as complete targets."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from slipway.errors import TargetError, did_you_mean
from slipway.target.cpus import resolve_features, table_of_cpu


def _arm(triple: str, cpu: str, cores: int, model: str, **more: Any) -> dict[str, Any]:
    return {"kind": "llvm", "device": "arm_cpu", "model": model, "mtriple": triple, "mcpu": cpu,
            "num-cores": cores, **more}  # fmt: skip


def _micro(cpu: str, march: str, fpu: str = "") -> dict[str, Any]:
    out = {"kind": "c", "keys": "arm_cpu,cpu", "device": "arm_cpu", "mcpu": cpu, "march": march}
    return {**out, "mfpu": fpu, "mfloat-abi": "hard"} if fpu else out


def _board(model: str, cpu: str, march: str, fpu: str = "") -> dict[str, Any]:
    return {**_micro(cpu, march, fpu), "model": model}


def _cuda(arch: str, host: dict[str, Any] | None = None) -> dict[str, Any]:
    registers = 32768 if arch in ("sm_20", "sm_21", "sm_53", "sm_62") else 65536
    out: dict[str, Any] = {"kind": "cuda", "arch": arch, "max_threads_per_block": 1024,
                           "max_shared_memory_per_block": 49152, "thread_warp_size": 32,
                           "registers_per_block": registers}  # fmt: skip
    return {**out, "host": host} if host else out


def _gpu(kind: str, threads: int, shared: int, warp: int, **more: Any) -> dict[str, Any]:
    """Return a GPU by the threads of a block, the bytes they share, and those that run in step.

    Where makers' drivers say different limits, the lowest of them.
    """
    return {"kind": kind, "max_threads_per_block": threads, "max_shared_memory_per_block": shared,
            "thread_warp_size": warp, **more}  # fmt: skip


_A64, _A32 = "aarch64-linux-gnu", "armv7l-linux-gnueabihf"
_V7 = {"mattr": "+neon,+vfp4"}
_JETSON = {"kind": "llvm", "device": "arm_cpu", "mtriple": _A64}

_TAGS: dict[str, dict[str, Any]] = {
    "raspberry-pi/zero-2w-aarch64": _arm(_A64, "cortex-a53", 4, "rp3a0"),
    "raspberry-pi/2b": _arm(_A32, "cortex-a7", 4, "bcm2836", **_V7),
    "raspberry-pi/3b-aarch64": _arm(_A64, "cortex-a53", 4, "bcm2837"),
    "raspberry-pi/3b-armv7l": _arm(_A32, "cortex-a53", 4, "bcm2837"),
    "raspberry-pi/4b-aarch64": _arm(_A64, "cortex-a72", 4, "bcm2711"),
    "raspberry-pi/4b-armv7l": _arm(_A32, "cortex-a72", 4, "bcm2711"),
    "raspberry-pi/5-aarch64": _arm(_A64, "cortex-a76", 4, "bcm2712"),
    **{
        f"aws/cpu/c5.{size}": {"kind": "llvm", "mcpu": cpu, "num-cores": cores}
        for size, cores, cpu in (
            ("large", 1, "skylake-avx512"), ("xlarge", 2, "skylake-avx512"),
            ("2xlarge", 4, "skylake-avx512"), ("4xlarge", 8, "skylake-avx512"),
            ("9xlarge", 18, "skylake-avx512"), ("12xlarge", 24, "cascadelake"),
            ("18xlarge", 36, "skylake-avx512"), ("24xlarge", 48, "cascadelake"),
        )
    },
    "nvidia/jetson-nano": _cuda("sm_53", {**_JETSON, "mcpu": "cortex-a57", "num-cores": 4}),
    "nvidia/jetson-tx2": _cuda("sm_62", {**_JETSON, "mcpu": "cortex-a57", "num-cores": 4}),
    "nvidia/jetson-agx-xavier": _cuda("sm_72", {**_JETSON, "mcpu": "carmel", "num-cores": 8}),
    "nvidia/jetson-orin-nano": _cuda("sm_87", {**_JETSON, "mcpu": "cortex-a78ae", "num-cores": 6}),
    "nvidia/jetson-agx-orin": _cuda("sm_87", {**_JETSON, "mcpu": "cortex-a78ae", "num-cores": 12}),
    "nvidia/nvidia-v100": _cuda("sm_70"),
    "nvidia/nvidia-t4": _cuda("sm_75"),
    "nvidia/nvidia-a100": _cuda("sm_80"),
    "nvidia/nvidia-p100": _cuda("sm_60"),
    "nvidia/nvidia-a10g": _cuda("sm_86"),
    "nvidia/nvidia-a40": _cuda("sm_86"),
    "nvidia/tesla-k80": _cuda("sm_37"),
    "nvidia/tesla-p4": _cuda("sm_61"),
    "nvidia/tesla-p40": _cuda("sm_61"),
    **{f"nvidia/geforce-gtx-{name}": _cuda("sm_61") for name in (
        "1050", "1060", "1070", "1080", "1080-ti")},
    **{f"nvidia/geforce-gtx-{name}": _cuda("sm_75") for name in ("1650", "1650-ti", "1660-ti")},
    **{f"nvidia/geforce-rtx-{name}": _cuda("sm_75") for name in (
        "2060", "2070", "2070-super", "2080", "2080-super", "2080-ti")},
    **{f"nvidia/geforce-rtx-{name}": _cuda("sm_86") for name in (
        "3060", "3060-ti", "3070", "3080", "3080-ti", "3090", "3090-ti")},
    **{f"nvidia/geforce-rtx-{name}": _cuda("sm_89") for name in (
        "4060", "4060-ti", "4070", "4070-ti", "4080", "4090")},
    **{f"nvidia/geforce-rtx-{name}": _cuda("sm_120") for name in (
        "5060", "5070", "5080", "5090")},
    "nvidia/jetson-orin-nx": _cuda("sm_87", {**_JETSON, "mcpu": "cortex-a78ae", "num-cores": 8}),
    "nvidia/jetson-xavier-nx": _cuda("sm_72", {**_JETSON, "mcpu": "carmel", "num-cores": 6}),
    "nvidia/nvidia-a2": _cuda("sm_86"),
    "nvidia/nvidia-l4": _cuda("sm_89"),
    "nvidia/nvidia-l40": _cuda("sm_89"),
    "nvidia/nvidia-b200": _cuda("sm_100"),
    # Mali has no memory of its own for a block, so its threads do not count as running in step.
    "arm/mali-bifrost": _gpu("opencl", 256, 32768, 1, device="mali"),
    "arm/mali-valhall": _gpu("opencl", 256, 32768, 1, device="mali"),
    "qualcomm/adreno-6xx": _gpu("opencl", 256, 32768, 64, device="adreno"),
    "qualcomm/adreno-7xx": _gpu("opencl", 256, 32768, 64, device="adreno"),
    "intel/uhd-630": _gpu("opencl", 256, 65536, 8, device="intel_graphics"),
    "intel/iris-xe": _gpu("opencl", 512, 65536, 8, device="intel_graphics"),
    "intel/arc-a770": _gpu("opencl", 1024, 65536, 8, device="intel_graphics"),
    # Drivers that compute on the processor, where a machine or a browser has no GPU.
    "pocl/cpu": _gpu("opencl", 4096, 524288, 1, device_type="cpu"),
    "mesa/lavapipe": _gpu("vulkan", 1024, 32768, 1, device_type="cpu"),
    "google/swiftshader": _gpu("vulkan", 256, 16384, 1, device_type="cpu"),
    "google/swiftshader-webgpu": _gpu("webgpu", 256, 16384, 1, device_type="cpu"),
    **{f"amd/radeon-rx-{name}": _gpu("vulkan", 1024, 32768, 32) for name in (
        "6600", "6800", "6900-xt", "7600", "7800-xt", "7900-xtx")},
    **{f"apple/{chip}-gpu": _gpu("metal", 1024, 32768, 32, simdgroup_matrix=True) for chip in (
        "m1", "m2", "m3", "m4", "a14", "a15", "a16", "a17-pro")},
    "nvidia/nvidia-h100": _cuda("sm_90a"),
    "nvidia/nvidia-h200": _cuda("sm_90a"),
    "arm/cortex-m0": _micro("cortex-m0", "armv6-m"),
    "arm/cortex-m0plus": _micro("cortex-m0plus", "armv6-m"),
    "arm/cortex-m3": _micro("cortex-m3", "armv7-m"),
    "arm/cortex-m4": _micro("cortex-m4", "armv7e-m", "fpv4-sp-d16"),
    "arm/cortex-m7": _micro("cortex-m7", "armv7e-m", "fpv5-d16"),
    "arm/cortex-m33": _micro("cortex-m33", "armv8-m.main", "fpv5-sp-d16"),
    "arm/cortex-m55": _micro("cortex-m55", "armv8.1-m.main"),
    "arm/cortex-m85": _micro("cortex-m85", "armv8.1-m.main"),
    "st/nucleo-l4r5zi": _board("stm32l4r5zi", "cortex-m4", "armv7e-m", "fpv4-sp-d16"),
    "st/nucleo-u575zi": _board("stm32u575zi", "cortex-m33", "armv8-m.main", "fpv5-sp-d16"),
    "st/stm32f746-discovery": _board("stm32f746", "cortex-m7", "armv7e-m", "fpv5-sp-d16"),
    "nordic/nrf52840": _board("nrf52840", "cortex-m4", "armv7e-m", "fpv4-sp-d16"),
    "nordic/nrf5340": _board("nrf5340", "cortex-m33", "armv8-m.main", "fpv5-sp-d16"),
    "raspberry-pi/pico": _board("rp2040", "cortex-m0plus", "armv6-m"),
    "pjrc/teensy41": _board("imxrt1062", "cortex-m7", "armv7e-m", "fpv5-d16"),
    "raspberry-pi/pico2": _board("rp2350", "cortex-m33", "armv8-m.main", "fpv5-sp-d16"),
    "arduino/nano-33-ble": _board("nrf52840", "cortex-m4", "armv7e-m", "fpv4-sp-d16"),
    "rockchip/rk3399": _arm(_A64, "cortex-a72", 6, "rk3399"),
    "rockchip/rk3588": _arm(_A64, "cortex-a76", 8, "rk3588"),
    **{f"qualcomm/hexagon-{version}": {"kind": "hexagon", "mcpu": f"hexagon{version}"}
       for version in ("v66", "v68", "v69", "v73", "v75")},
    "apple/m1": {"kind": "llvm", "mtriple": "arm64-apple-macos", "mcpu": "apple-m1",
                 "num-cores": 8},
    "apple/m2": {"kind": "llvm", "mtriple": "arm64-apple-macos", "mcpu": "apple-m2",
                 "num-cores": 8},
    "sifive/u74": {"kind": "llvm", "mtriple": "riscv64-unknown-linux-gnu", "mcpu": "sifive-u74",
                   "num-cores": 4},
    "android/arm64": {"kind": "llvm", "device": "arm_cpu", "mtriple": "aarch64-linux-android"},
    "android/armv7": {"kind": "llvm", "device": "arm_cpu", "mtriple": "armv7a-linux-androideabi",
                      "mattr": "+neon"},
    "web/wasm": {"kind": "llvm", "mtriple": "wasm32-unknown-unknown"},
    "web/wasm-simd": {"kind": "llvm", "mtriple": "wasm32-unknown-unknown", "mattr": "+simd128"},
}  # fmt: skip


def list_tags() -> list[str]:
    """Return all tags."""
    return sorted(_TAGS)


def find_tag(tag: str) -> dict[str, Any]:
    """Return the dict form that `tag` stands for; raises TargetError for an unknown tag."""
    if tag not in _TAGS:
        raise TargetError(
            f"unknown target tag {tag!r}.{_nearest(tag)} "
            "`slipway targets` (Target.list_tags()) lists the known devices."
        )
    return dict(_TAGS[tag])


def _nearest(tag: str) -> str:
    """Return a question for the tags that begin so, else for those of a similar spelling."""
    begun = sorted(name for name in _TAGS if name.startswith(tag))
    if not begun and tag.partition("/")[2]:
        device = tag.partition("/")[2]  # of another vendor, or of none
        begun = sorted(name for name in _TAGS if name.partition("/")[2].startswith(device))
    if not begun:
        return did_you_mean(tag, _TAGS)
    return " Did you mean " + " or ".join(repr(name) for name in begun[:4]) + "?"


_BOARDS = Path(__file__).parent.parent / "boards" / "devices"


# What people call a device, at the beginning of a word, and as it stands in tags.
_NICKNAMES = re.compile(r"^(?:rpi|pi)(?=\d|zero|pico|$)")
_ARCHITECTURES = {
    "x86": "x86_64-linux-gnu", "x8664": "x86_64-linux-gnu", "amd64": "x86_64-linux-gnu",
    "x64": "x86_64-linux-gnu", "aarch64": "aarch64-linux-gnu", "arm64": "aarch64-linux-gnu",
    "arm": "armv7l-linux-gnueabihf", "armv7": "armv7l-linux-gnueabihf",
    "armhf": "armv7l-linux-gnueabihf", "riscv": "riscv64-linux-gnu",
    "riscv64": "riscv64-linux-gnu",
}  # fmt: skip
_SHORTEST = 3  # letters and digits that a device is looked for by
_HERE = ("native", "host", "local", "localhost", "this", "here", "self")


def meant_by(name: str) -> str:
    """Return what a word that is no kind of target may mean, or "".

    It may be a vendor, a device, a board, also a part of their names; a processor, or what kind.
    """
    if name.lower() in _HERE:
        return "This machine is 'llvm'."
    if triple := _ARCHITECTURES.get(_plain(name)):
        return f"It is what processors speak: write 'llvm -mtriple={triple}'."
    boards = [path.stem for path in sorted(_BOARDS.glob("*.toml"))]
    tags = [
        tag for tag in list_tags() if name.lower() in (tag.partition("/")[0], tag.partition("/")[2])
    ]
    if not tags and name.replace("_", "-") in boards:
        boards = [name]
    elif not tags:
        if triple := _triple_of_cpu(name.lower()):
            return f"It is a processor: write 'llvm -mtriple={triple} -mcpu={name.lower()}'."
        word = _NICKNAMES.sub("raspberrypi", _plain(name))
        is_long = len(word) >= _SHORTEST
        tags = [tag for tag in list_tags() if is_long and word in _plain(tag)]
        boards = [board for board in boards if is_long and word in _plain(board)]
    if tags:
        more = f" and {len(tags) - 8} more, as `slipway targets {name}` lists them"
        return f"Devices go by vendor and name: {', '.join(tags[:8])}{more * (len(tags) > 8)}."
    if len(boards) > 1:
        return (
            f"Boards go by name: {', '.join(boards)}: `slipway micro create MODEL DIR --board "
            "NAME` makes firmware."
        )
    if not boards:
        return ""
    path = _BOARDS / f"{boards[0].replace('_', '-')}.toml"
    target = tomllib.loads(path.read_text(encoding="utf-8"))["target"]
    return (
        f"It is a board: `slipway micro create MODEL DIR --board {boards[0]}` makes firmware for "
        f"it, `slipway fit MODEL --board {boards[0]}` says whether it has the room; its core as a "
        f"target is {target!r}."
    )


def _triple_of_cpu(cpu: str) -> str:
    """Return the triple of Linux on a processor, "" for one that does not run it."""
    table = table_of_cpu(cpu, "aarch64") or ""
    if table not in _ARCHITECTURES:
        return ""
    features = resolve_features(table, cpu, ())
    runs = {"aarch64": True, "arm": not features & {"mclass", "rclass"}}
    return _ARCHITECTURES[table] if runs.get(table, "64bit" in features) else ""


def _plain(name: str) -> str:
    """Return the letters and digits of a name, which people write with all sorts of dashes."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def register_tag(tag: str, config: dict[str, Any], override: bool = False) -> None:
    """Make `tag` ("vendor/device") a name for the target `config` (the dict form).

    Raises TargetError when the tag exists and `override` is false.
    """
    if "/" not in tag:
        raise TargetError(f"a target tag reads vendor/device, got {tag!r}")
    if tag in _TAGS and not override:
        raise TargetError(f"target tag {tag!r} exists; pass override=True to replace it")
    _TAGS[tag] = dict(config)
