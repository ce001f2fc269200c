"""`Target`: what code is generated for, written as a string, a dict or a tag.

::

    Target("llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72 -mattr=+neon")
    Target({"kind": "cuda", "arch": "sm_80", "host": "llvm"})
    Target("raspberry-pi/4b-aarch64")
    Target("opencl, llvm -mtriple=aarch64-linux-gnu")  # a device, and the processor that drives it

Every spelling of the classic system is taken, and every word is checked: an unknown kind,
option, CPU, feature or triple raises TargetError and names the nearest known ones.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar, TypeAlias

from slipway.entered import Entered
from slipway.errors import TargetError
from slipway.lazy import MissingName
from slipway.target import cpus
from slipway.target.coherence import ARM_PROFILES, FPU_FEATURES, check_options
from slipway.target.cores import Core, core_of
from slipway.target.forms import TargetForms
from slipway.target.host import host_cpu
from slipway.target.kinds import (
    OLDER_OPTIONS,
    TargetKind,
    TargetOptions,
    convert_option,
    find_kind,
    list_kinds,
)
from slipway.target.pairs import device_and_host
from slipway.target.tags import find_tag
from slipway.target.triple import Triple, host_triple, parse_triple

# Old names of options.
_RENAMED = {"target": "mtriple", "triple": "mtriple", "march-cpu": "mcpu", "max-num-threads":
            "max_num_threads", "thread-warp-size": "thread_warp_size", "target-host": "host",
            "max-threads-per-block": "max_threads_per_block"}  # fmt: skip
# Of the machines that a target without -num-cores may mean.
USUAL_CORE_COUNTS = (1, 2, 4, 8)
_SCOPE: Entered[Target] = Entered("targets")


class Features(frozenset[str]):
    """Names of features; ``has_dsp`` asks for "dsp", ``has_matmul_i8`` for what LLVM calls i8mm."""

    _OTHER: ClassVar[dict[str, str]] = {"asimd": "neon", "matmul_i8": "i8mm"}

    def __getattr__(self, name: str) -> bool:
        if not name.startswith("has_"):
            raise AttributeError(f"there is no {name!r}: ask for has_<feature>, as has_dsp")
        feature = name.removeprefix("has_")
        return self._OTHER.get(feature, feature) in self


# What a user may give for a target: `Target(...)` says which texts and dicts there are.
TargetLike: TypeAlias = "Target | str | Mapping[Any, Any] | Sequence[Any] | None"


class Target(TargetForms):
    """An immutable description of what code is generated for.  Equal text means equal target.

    `text` is a target string, a tag, a dict ("kind" and options), JSON text, or another Target.
    `host` (any of the same) is the target of the code that drives a GPU.
    Raises TargetError for anything unknown.
    """

    def __init__(
        self, text: Any = None, host: TargetLike = None, *, target: TargetLike = None
    ) -> None:
        if (text is None) == (target is None):
            raise TargetError(
                'Target takes one description of a target, for example Target("llvm")'
            )
        text = target if text is None else text  # `target=` is its name in classic scripts
        if isinstance(text, Target):
            options: dict[str, Any] = text.export()
        elif isinstance(text, Mapping):
            options = dict(text)
        else:
            options = _options_of_text(str(text))
        tag = options.pop("tag", None)
        if tag and "kind" not in options:
            options = {**find_tag(str(tag)), **options}
        inner_host = options.pop("host", None)
        self._setup(options, str(tag) if tag else None)
        chosen = host if host is not None else inner_host
        self.host: Target | None = Target(chosen) if _is_given(chosen) else None
        if self.kind.is_cpu:
            self._check_cpu()

    def _setup(self, options: dict[str, Any], tag: str | None) -> None:
        if "kind" not in options:
            raise TargetError(
                f'a target needs a "kind": one of {", ".join(list_kinds())} (got {options})'
            )
        self.kind: TargetKind = find_kind(str(options.pop("kind")))
        self.tag = tag
        attrs = TargetOptions(self.kind.defaults)
        for name, value in options.items():
            name = _RENAMED.get(name, OLDER_OPTIONS.get(name, name))
            if name == "num_cores" or name.replace("_", "-") in self.kind.options:
                name = name.replace("_", "-")
            attrs[name] = convert_option(self.kind, name, value)
        if self.kind.name == "composite":  # targets of a program for several devices
            attrs["devices"] = tuple(Target(d) for d in attrs.get("devices", ()))
        given = attrs.pop("keys", ())
        device = attrs.get("device", "")
        if device and device not in given:
            given = (*given, device)
        self.keys: tuple[str, ...] = tuple(
            dict.fromkeys((*given, *(k for k in self.kind.keys if k not in given)))
        )
        self.attrs: dict[str, Any] = attrs

    def _check_cpu(self) -> None:
        if self.kind.name == "hexagon":
            cpu = self.attrs["mcpu"]
            self.attrs["mcpu"] = cpu if cpu.startswith("hexagon") else "hexagon" + cpu
            self._add_hvx()
        table = self.parsed_triple.table
        if self.mcpu and self.mcpu != "native":
            cpus.check_cpu(table, self.mcpu)
        cpus.check_features(table, self.mattr)
        check_options(self.parsed_triple, self.mcpu, self.mattr, self.attrs)
        if table in ("arm", "aarch64") and "arm_cpu" not in self.keys and not self._is_host():
            self.keys = (*(k for k in self.keys if k != "cpu"), "arm_cpu", "cpu")

    def _add_hvx(self) -> None:
        """Give a Hexagon its vectors of 128 bytes unless `-mattr` says something of them.

        LLVM's processors have none, since a program must ask for them; every Hexagon from v60 on
        has the unit, but for the small cores (v67t).
        """
        version = self.mcpu.removeprefix("hexagon")
        if any("hvx" in word for word in self.mattr) or not version[1:].isdigit():
            return
        if int(version[1:]) >= 60:
            added = f"+hvx{version}", "+hvx-length128b"
            self.attrs["mattr"] = (*self.mattr, *added)

    # -- what was written ----------------------------------------------------------------------

    @property
    def mcpu(self) -> str:
        """The CPU that was asked for; "" for the default one."""
        return str(self.attrs.get("mcpu", ""))

    @property
    def tuned_for(self) -> str:
        """The CPU for which code is made fast: `-mtune`, else the one it is for."""
        return str(self.attrs.get("mtune") or self.cpu)

    @property
    def mattr(self) -> tuple[str, ...]:
        """The "+feature" and "-feature" words that were asked for."""
        return tuple(self.attrs.get("mattr", ()))

    @property
    def mtriple(self) -> str:
        """The triple that was asked for; "" for the default one."""
        return str(self.attrs.get("mtriple", ""))

    @property
    def model(self) -> str:
        """The device model, "unknown" when none was given."""
        return str(self.attrs.get("model", "unknown"))

    @property
    def device_name(self) -> str:
        """The -device= name, as "arm_cpu" or "mali"; "" when none was given."""
        return str(self.attrs.get("device", ""))

    @property
    def target_name(self) -> str:
        """The kind's name (the classic attribute)."""
        return self.kind.name

    @property
    def options(self) -> list[str]:
        """The options as words, ``-name=value``, with the device's name in front (of TVM 0.6)."""
        names = sorted(self.attrs, key=lambda name: (name != "device", name != "model"))
        texts = {n: ",".join(map(str, v)) if isinstance(v := self.attrs[n], tuple) else v
                 for n in names}  # fmt: skip
        return [f"-{n}={texts[n]}" for n in names if self.kind.defaults.get(n) != self.attrs[n]]

    def get_kind_attr(self, attr_name: str) -> None:
        """Return what the kind says of its way through TVM's compiler: nothing, for any of them."""

    @property
    def libs(self) -> tuple[str, ...]:
        """Names of external libraries that may be called."""
        return tuple(self.attrs.get("libs", ()))

    # -- what it means -------------------------------------------------------------------------

    @cached_property
    def triple(self) -> str:
        """The resolved target triple: given, implied by the CPU, or this machine's."""
        return self.parsed_triple.text

    @cached_property
    def parsed_triple(self) -> Triple:
        """The resolved triple taken apart."""
        if self.mtriple:
            given = parse_triple(self._arm_triple(self.mtriple))
            is_open = given.table == "arm" and given.system == "unknown"
            if is_open and "mclass" in cpus.resolve_features("arm", self.mcpu, ()):
                return replace(given, system="none")
            return given
        if not self.kind.is_cpu:
            return parse_triple(self.host.triple if self.host is not None else host_triple())
        host = parse_triple(host_triple())
        march = str(self.attrs.get("march", ""))
        table = cpus.table_of_cpu(self.mcpu, host.table) if self.mcpu else host.table
        if march in ARM_PROFILES:
            table = "arm"
        if table is None or table == host.table or self.mcpu == "native":
            return host
        return parse_triple(self._triple_of_table(table, march))

    def _arm_triple(self, text: str) -> str:
        """Return a triple with what -march and -mfloat-abi say of it on 32-bit ARM."""
        if parse_triple(text).table != "arm":
            return text
        arch, dash, others = text.partition("-")
        text = ARM_PROFILES.get(str(self.attrs.get("march", "")), arch) + dash + others
        abi = self.attrs.get("mfloat-abi")
        return re.sub(r"eabi(hf)?$", "eabihf" if abi == "hard" else "eabi", text) if abi else text

    def _triple_of_table(self, table: str, march: str) -> str:
        if table != "arm":
            return {"aarch64": "aarch64-unknown-linux-gnu", "riscv": "riscv64-unknown-linux-gnu",
                    "hexagon": "hexagon-unknown-linux-musl", "wasm": "wasm32-unknown-unknown",
                    "x86": "x86_64-unknown-linux-gnu",
                    "nvptx": "nvptx64-nvidia-cuda",
                    "amdgcn": "amdgcn-amd-amdhsa"}[table]  # fmt: skip
        features = cpus.resolve_features("arm", self.mcpu, ())
        base = ARM_PROFILES.get(march) or next(
            (ARM_PROFILES[f] for f in reversed(list(ARM_PROFILES)) if f in features), "armv7a"
        )
        soft = self.attrs.get("mfloat-abi") in ("soft", "softfp")
        has_fpu = any(f.startswith(("vfp", "fp-armv8")) for f in features)
        hard = self.attrs.get("mfloat-abi") == "hard" or (has_fpu and not soft)
        abi = "eabihf" if hard else "eabi"
        return f"{base}-none-{abi}" if "m" in base[5:] else f"{base}-unknown-linux-gnu{abi}"

    def _is_host(self) -> bool:
        """Whether the code runs on this very machine's CPU by default."""
        return not self.mtriple and self.parsed_triple.text == host_triple()

    @cached_property
    def cpu(self) -> str:
        """The CPU to name to LLVM: the one asked for, this machine's, or a generic one."""
        if self.mcpu == "native" or (self.kind.name == "llvm" and not self.mcpu and
                                     self._is_host()):  # fmt: skip
            return host_cpu()[0] or _GENERIC.get(self.parsed_triple.arch, "generic")
        if self.mcpu:
            return self.mcpu
        return _GENERIC.get(self.parsed_triple.arch, "generic")

    @cached_property
    def llvm_features(self) -> tuple[str, ...]:
        """The "+f" / "-f" words to give to LLVM beside `cpu`."""
        words: tuple[str, ...] = ()
        if self.mcpu == "native" or (self.kind.name == "llvm" and not self.mcpu and
                                     self._is_host()):  # fmt: skip
            words = host_cpu()[1]
        words += FPU_FEATURES.get(str(self.attrs.get("mfpu", "")), ())
        if self.cpu.startswith("generic-rv"):  # Linux on RISC-V means at least rv64gc
            words = ("+m", "+a", "+f", "+d", "+c", *words)
        if self.parsed_triple.table == "wasm":  # every browser since 2023 has it
            words = ("+simd128", *words)
        if self.parsed_triple.table == "arm" and self.parsed_triple.system != "none":
            # LLVM avoids vmla where a chain of them waits for each sum.  A kernel has a tile of
            # sums, and multiplying apart from adding takes registers that the tile needs.
            words += ("-slowfpvmlx", "-vmlx-hazards")
            if self.parsed_triple.text.endswith("hf") and not self.mcpu:
                words = ("+vfp2", *words)  # what passes floats in its registers has an FPU
        return words + self.mattr

    @cached_property
    def features(self) -> Features:
        """All features code may use, in LLVM's names, implied ones included."""
        table = self.parsed_triple.table
        base: tuple[str, ...] = ()
        if table == "arm":
            arch = self.parsed_triple.llvm.split("-")[0]
            base = tuple(f"+{f}" for f in _ARM_TRIPLE_FEATURES.get(arch, ()) if not self.mcpu)
        if self.parsed_triple.arch == "x86_64":
            base = ("+sse2", "+64bit")
        known = set(cpus.features_of(table))
        words = tuple(w for w in (*base, *self.llvm_features) if w[1:] in known)
        return Features(cpus.resolve_features(table, self.cpu, words))

    def has_feature(self, *names: str) -> bool:
        """Return whether all the named LLVM features are there."""
        return all(name in self.features for name in names)

    @property
    def arch(self) -> str:
        """The GPU architecture that was given ("sm_80"), or the CPU's ("x86_64", "aarch64"...)."""
        given = self.attrs.get("arch")
        return str(given) if given else self.parsed_triple.arch

    @property
    def pointer_bits(self) -> int:
        """Bits of an address."""
        return self.parsed_triple.pointer_bits

    @cached_property
    def vector_bits(self) -> int:
        """Bits of the widest vector register; 0 on a CPU without vector unit."""
        if "vector-width" in self.attrs:
            return int(self.attrs["vector-width"])
        has = self.features.__contains__
        table = self.parsed_triple.table
        if table == "x86":
            return 512 if has("avx512f") else 256 if has("avx") else 128
        if table == "aarch64":
            sve = _SVE_BITS.get(self.mcpu, 128) if has("sve") else 0
            return max(sve, 128 if has("neon") else 0)
        if table == "arm":
            return 128 if has("neon") or has("mve") else 0
        if table == "riscv":
            lengths = [int(f[3:-1]) for f in self.features if f.startswith("zvl") and f[3:-1]
                       .isdigit()]  # fmt: skip
            return max([128, *lengths]) if has("v") or has("zve32f") or has("zve32x") else 0
        if table == "wasm":
            return 128 if has("simd128") else 0
        if table == "hexagon":
            return 1024 if has("hvx-length128b") else 512 if has("hvx-length64b") else 0
        return 0

    @property
    def upload_suffix(self) -> str:
        """The ending of a library that a device of this target loads."""
        return ".wasm" if self.parsed_triple.is_page else ".tar"

    @property
    def abi(self) -> str:
        """LLVM's name of the calling convention: -mabi, or what RISC-V's registers allow."""
        usual = ("lp64d" if self.has_feature("d") else "lp64") if self.arch == "riscv64" else ""
        return str(self.attrs.get("mabi", usual))

    @property
    def shares_memory(self) -> bool:
        """Whether threads of WebAssembly share its memory: `-mattr=+atomics`."""
        return self.parsed_triple.is_page and self.has_feature("atomics")

    @cached_property
    def core(self) -> Core:
        """What a core can do in a cycle and what its caches hold: see target/cores.py."""
        return core_of(self.tuned_for, self.vector_bits, self.attrs)

    @property
    def is_by_llvm(self) -> bool:
        """Whether LLVM compiles its code, so that vectors are written here and not by C."""
        return self.kind.name in ("llvm", "hexagon")

    @property
    def has_lane_fma(self) -> bool:
        """Whether one instruction multiplies a vector by a lane of another, and adds: NEON."""
        table = self.parsed_triple.table
        if table == "aarch64" and self.sve_bits:
            return False  # SVE takes a lane of each part of 128 bits
        return table in ("aarch64", "arm") and "neon" in self.features

    @property
    def sve_bits(self) -> int:
        """The length of SVE's registers that code is compiled for; 0 where it uses NEON's."""
        is_sve = self.parsed_triple.table == "aarch64" and self.has_feature("sve")
        return self.vector_bits if is_sve and self.vector_bits > 128 else 0

    @property
    def needed(self) -> list[str]:
        """What a processor must have to run the code: features, and the length of its vectors."""
        return sorted([*self.features, *([f"sve-bits-{self.sve_bits}"] if self.sve_bits else [])])

    @property
    def is_strict(self) -> bool:
        """Whether `-strict` asks for the model's own arithmetic: see docs/numerics.md."""
        return bool(self.attrs.get("strict"))

    @property
    def num_cores(self) -> int:
        """The most CPU cores that work is cut for: -num-cores, or that of `core_counts`."""
        return self.core_counts[-1]

    @property
    def core_counts(self) -> tuple[int, ...]:
        """The numbers of CPU cores between which a cut of the work has to be good.

        One number where `-num-cores` gives it.  Else those of usual machines: never that of the
        one that compiles, whose code would then differ from another one's.  How many tasks each
        thread gets is decided when the code runs.
        """
        if "num-cores" in self.attrs:
            return (int(self.attrs["num-cores"]),)
        triple = self.parsed_triple
        if triple.is_page:  # without shared memory there is one thread
            return USUAL_CORE_COUNTS if self.shares_memory else (1,)
        return (1,) if not self.kind.is_cpu or triple.is_bare else USUAL_CORE_COUNTS

    @property
    def max_num_threads(self) -> int:
        """Most GPU threads in one block."""
        return int(self.attrs.get("max_num_threads", 1))

    @property
    def max_function_args(self) -> int:
        """Most arguments of a kernel, its results among them; -1: as many as there are."""
        return int(self.attrs.get("max_function_args", -1))

    @property
    def thread_warp_size(self) -> int:
        """GPU threads that run in lock step."""
        return int(self.attrs.get("thread_warp_size", 1))

    def get_target_device_type(self) -> int:
        """Return DLPack's number of the devices this target's code runs on."""
        return int(self.attrs.get("target_device_type", self.kind.device_type))

    # -- text ----------------------------------------------------------------------------------

    def export(self) -> dict[str, Any]:
        """Return the dict form; ``Target(target.export())`` equals the target."""
        out: dict[str, Any] = {"kind": self.kind.name}
        if self.tag:
            out["tag"] = self.tag
        out["keys"] = list(self.keys)
        out.update({k: _plain(v) for k, v in self.attrs.items()})
        if self.host is not None:
            out["host"] = self.host.export()
        return out

    def __str__(self) -> str:
        words = [self.kind.name, f"-keys={','.join(self.keys)}"]
        for name, value in sorted(self.attrs.items()):
            text = ",".join(map(str, value)) if isinstance(value, tuple) else value
            text = int(text) if isinstance(text, bool) else text
            words.append(f"-{name}={shlex.quote(str(text))}")
        if self.host is not None:
            words.append(f"-host={shlex.quote(str(self.host))}")
        return " ".join(words)

    def __repr__(self) -> str:
        return f"Target({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Target) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    # -- scope ---------------------------------------------------------------------------------

    def __enter__(self) -> Target:
        _SCOPE.enter(self)
        return self

    def __exit__(self, *exc: object) -> None:
        _SCOPE.leave(self)

    @staticmethod
    def current(allow_none: bool = True) -> Target | None:
        """Return the target of the innermost ``with target:``, or None.

        With ``allow_none=False``, raises TargetError outside of any.
        """
        found = _SCOPE.innermost()
        if found is not None or allow_none:
            return found
        raise TargetError("no target is set here: wrap the call in `with Target(...):`")


# Cores whose SVE registers are longer than NEON's.  Of others the length is not known: it takes
# the option -vector-width to use them.
_SVE_BITS = {"a64fx": 512, "neoverse-v1": 256, "neoverse-512tvb": 256}
_GENERIC = {"x86_64": "x86-64", "x86": "i686", "riscv64": "generic-rv64", "riscv32": "generic-rv32",
            "nvptx64": "sm_50", "amdgcn": "gfx900", "hexagon": "hexagonv68"}  # fmt: skip
_ARM_TRIPLE_FEATURES = {
    **dict.fromkeys(
        ("armv7", "armv7l", "armv7a", "thumbv7", "thumbv7a", "armv7hl"), ("armv7-a", "neon")),
    **dict.fromkeys(("armv8", "armv8a", "armv8l"), ("armv8-a", "neon")),
    "thumbv6m": ("armv6-m",), "thumbv7m": ("armv7-m",), "thumbv7em": ("armv7e-m",),
    "thumbv8m.base": ("armv8-m.base",), "thumbv8m.main": ("armv8-m.main",),
    "thumbv8.1m.main": ("armv8.1-m.main",), "armv6": ("armv6",), "armv6l": ("armv6",),
}  # fmt: skip


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [v.export() if isinstance(v, Target) else v for v in value]
    return value


def create(target: TargetLike, host: TargetLike = None) -> Target:
    """Return ``Target(target, host)`` (the classic function)."""
    return Target(target, host)


def _options_of_text(text: str) -> dict[str, Any]:
    """Take a target string, JSON text or a tag apart into the dict form."""
    stripped = text.strip()
    if not stripped:
        raise TargetError('an empty target: write for example "llvm"')
    if stripped.startswith("{"):
        try:
            parsed = json.loads(stripped)
        except (ValueError, RecursionError) as error:
            raise TargetError(f"target {text[:200]!r} is not valid JSON: {error}") from None
        return dict(parsed)
    if pair := device_and_host(stripped):
        options = _options_of_text(pair[0])
        if "host" in options:
            raise TargetError(f"target {text!r} names a host twice: leave -host out")
        return {**options, "host": pair[1]}
    words = shlex.split(stripped)
    first = words.pop(0)
    if "/" in first:
        options = dict(find_tag(first))
        options["tag"] = first
    elif first.startswith("-"):
        raise TargetError(f"target {text!r} must start with a kind, such as llvm or c")
    else:
        options = {"kind": first}
    while words:
        word = words.pop(0)
        if not word.startswith("-"):
            raise TargetError(f"unexpected {word!r} in target {text!r}: options start with '-'")
        name, equals, value = word.lstrip("-").partition("=")
        if not equals:  # `-mcpu foo`, or a flag
            kind = find_kind(str(options["kind"]))
            spelled = _RENAMED.get(name, name)
            is_flag = kind.options.get(spelled) is bool
            value = words.pop(0) if words and not words[0].startswith("-") and not is_flag else "1"
            if value == "1" and kind.options.get(spelled, bool) not in (bool, int):
                raise TargetError(f"option '-{name}' in target {text!r} needs a value: -{name}=...")
        options[name] = value
    return options


def __getattr__(name: str) -> Any:
    """Find the functions of `slipway.target.models` here too, where classic TVM has them."""
    if name not in MODELS:
        raise MissingName(__name__, name, list(MODELS))
    return MODELS[name]


# `slipway.target.models`, which makes targets, enters its functions when it is loaded.
MODELS: dict[str, Callable[..., Target]] = {}


def _is_given(target: object) -> bool:
    return target is not None and not (isinstance(target, str) and target == "")
