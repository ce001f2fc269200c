"""The kinds of target ("llvm", "c", "cuda", ...), each with its typed options.

An option is written ``-name=value`` or ``--name=value`` in a target string, or is a key of its
dict form.  `Option.type` is str, int, bool, or list (comma-separated words).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from slipway.errors import TargetError, did_you_mean
from slipway.target.tags import meant_by


@dataclass(frozen=True)
class TargetKind:
    """One kind of target.

    `device_type` is DLPack's number of the devices it runs on, `keys` the default keys under
    which schedules are found, `options` maps an option's name to its type, `defaults` holds the
    values of options that are always present in `Target.attrs`.
    """

    name: str
    device_type: int
    keys: tuple[str, ...]
    options: dict[str, type] = field(hash=False)
    defaults: dict[str, Any] = field(default_factory=dict, hash=False)
    takes_parts: bool = False  # of models, which are compiled for its host besides

    @property
    def is_cpu(self) -> bool:
        """Whether code for it runs on a CPU, so that triples, CPUs and features apply."""
        return "cpu" in self.keys

    def __str__(self) -> str:
        return self.name


_COMMON: dict[str, type] = {
    "keys": list,
    "device": str,
    "libs": list,
    "model": str,
    "tag": str,
    "host": str,
    "from_device": int,
    "target_device_type": int,
}
# Options of the days when a target string carried the executor and runtime too.
_LEGACY: dict[str, type] = {
    "runtime": str,
    "system-lib": bool,
    "executor": str,
    "interface-api": str,
    "unpacked-api": bool,
    "link-params": bool,
    "workspace-byte-alignment": int,
    "constants-byte-alignment": int,
}
_CPU: dict[str, type] = {
    "mtriple": str,
    "mcpu": str,
    "mattr": list,
    "march": str,
    "mabi": str,
    "mfpu": str,
    "mfloat-abi": str,
    "mtune": str,
    "num-cores": int,
    "opt-level": int,
    "vector-width": int,
    "fast-math": bool,
    "strict": bool,
    "jit": str,
    "fma-units": int,
    "fma-latency": int,
    "l1-cache-bytes": int,
    "l1-cache-ways": int,
    "l2-cache-bytes": int,
    "cache-line-bytes": int,
}
# Options that scripts for the classic system pass, which change no code here, and why.
WITHOUT_EFFECT = {
    "fast-math": "no flag lets LLVM change results by itself",
    "jit": "code for this process is compiled and linked in one way",
    "libs": "all kernels are generated; none is taken from a library",
    "runtime": "the artifact's kind decides what loads it",
    "link-params": "an artifact always carries its parameters",
    "unpacked-api": "the kernels of a program are always called with plain pointers",
    "hvx-bytes": "the features name the length of the vectors",
    "vtcm-capacity": "kernels do not use this memory",
    "from_device": "it describes a target read from a device",
}
_GPU: dict[str, type] = {
    "arch": str,
    "max_num_threads": int,
    "max_threads_per_block": int,
    "max_shared_memory_per_block": int,
    "max_function_args": int,
    "thread_warp_size": int,
    "registers_per_block": int,
    "l2_cache_size_bytes": int,
    "texture_spatial_limit": int,
    "texture_depth_limit": int,
    "image_base_address_alignment": int,
    "libs": list,
    "supports_float16": bool,
    "supports_int8": bool,
    "supports_int16": bool,
    "supports_int64": bool,
    "supports_float64": bool,
    "supports_8bit_buffer": bool,
    "supports_16bit_buffer": bool,
    "supports_storage_buffer_storage_class": bool,
    "supported_subgroup_operations": int,
    "vulkan_api_version": int,
    "max_spirv_version": int,
    "max_per_stage_descriptor_storage_buffer": int,
    "max_storage_buffer_range": int,
    "max_push_constants_size": int,
    "driver_name": str,
    "driver_version": int,
    "device_name": str,
    "device_type": str,
    "mcpu": str,
    "mtriple": str,
    "mattr": list,
    "strict": bool,
    "simdgroup_matrix": bool,
    "cooperative_matrix": list,
}


def _gpu(name: str, device: int, keys: tuple[str, ...], **defaults: Any) -> TargetKind:
    return TargetKind(name, device, keys, {**_COMMON, **_LEGACY, **_GPU}, defaults)


_KINDS = (
    TargetKind("llvm", 1, ("cpu",), {**_COMMON, **_LEGACY, **_CPU}),
    TargetKind("c", 1, ("cpu",), {**_COMMON, **_LEGACY, **_CPU}),
    TargetKind(
        "hexagon",
        1,
        ("hexagon", "cpu"),
        {**_COMMON, **_LEGACY, **_CPU, "hvx-bytes": int, "vtcm-capacity": int},
        {"mcpu": "hexagonv68", "mtriple": "hexagon-unknown-linux-musl"},
    ),
    _gpu("cuda", 2, ("cuda", "gpu"), arch="sm_50", max_num_threads=1024, thread_warp_size=32),
    _gpu("nvptx", 2, ("cuda", "gpu"), mcpu="sm_50", max_num_threads=1024, thread_warp_size=32),
    _gpu("opencl", 4, ("opencl", "gpu"), max_num_threads=256, thread_warp_size=1),
    _gpu("vulkan", 7, ("vulkan", "gpu"), max_num_threads=256, thread_warp_size=1),
    _gpu("metal", 8, ("metal", "gpu"), max_num_threads=256, thread_warp_size=16),
    _gpu("rocm", 10, ("rocm", "gpu"), mcpu="gfx900", max_num_threads=256, thread_warp_size=64),
    _gpu("webgpu", 15, ("webgpu", "gpu"), max_num_threads=256, thread_warp_size=1),
    TargetKind("ext_dev", 12, ("ext_dev",), dict(_COMMON)),
    TargetKind("hybrid", 1, ("hybrid",), dict(_COMMON)),
    TargetKind("composite", 1, (), {**_COMMON, "devices": list}),
)
KINDS = {kind.name: kind for kind in _KINDS}
# Names of the same kind in other times.
ALIASES = {"stackvm": "llvm", "ccompiler": "c", "cl": "opencl", "gpu": "cuda", "cpu": "llvm"}


def register_kind(kind: TargetKind) -> TargetKind:
    """Add a kind of target; its backend comes with `backends.backend.register_backend`."""
    KINDS[kind.name] = kind
    return kind


def register_accelerator(name: str, defaults: dict[str, str | int | bool]) -> TargetKind:
    """Add a kind of target that takes parts of models; its options have the types of `defaults`."""
    if name in KINDS and not KINDS[name].takes_parts:
        raise TargetError(
            f"{name!r} is a kind of target already: give the accelerator another name"
        )
    options = {option: type(value) for option, value in defaults.items()}
    return register_kind(
        TargetKind(name, 12, (name,), {**_COMMON, **options}, dict(defaults), takes_parts=True)
    )


def cpu_options() -> dict[str, type]:
    """Return the options that every kind of CPU target has."""
    return {**_COMMON, **_LEGACY, **_CPU}


def list_kinds() -> list[str]:
    """Return the names of all kinds of target."""
    return sorted(KINDS)


def find_kind(name: str) -> TargetKind:
    """Return the kind called `name`; raise TargetError for an unknown one."""
    kind = KINDS.get(ALIASES.get(name, name))
    if kind is None:
        if meant := meant_by(name):
            raise TargetError(f"{name!r} is no kind of target. {meant}")
        raise TargetError(
            f"unknown target kind {name!r}.{did_you_mean(name, KINDS)} "
            f"The kinds are: {', '.join(list_kinds())}."
        )
    return kind


# Names that options had in older releases of classic TVM.
OLDER_OPTIONS = {"shared_memory_per_block": "max_shared_memory_per_block"}


class TargetOptions(dict[str, Any]):
    """The options of a target by name; an older name finds what its option is called today."""

    def __missing__(self, name: str) -> Any:
        if name in OLDER_OPTIONS:
            return self[OLDER_OPTIONS[name]]
        raise KeyError(name)


def convert_option(kind: TargetKind, name: str, value: Any) -> Any:
    """Return `value` as the type that option `name` of `kind` has.

    Raises TargetError for an unknown option, or a value that does not convert.
    """
    if name not in kind.options:
        raise TargetError(
            f"target kind {kind.name!r} has no option '-{name}'."
            f"{did_you_mean(name, kind.options)} Its options are: "
            f"{', '.join(sorted(kind.options))}."
        )
    wanted = kind.options[name]
    try:
        if wanted is list:
            if isinstance(value, dict):
                raise ValueError("a dict is no list")
            if isinstance(value, (list, tuple)):
                return tuple(str(v).strip() for v in value)
            return tuple(word.strip() for word in str(value).split(",") if word.strip())
        if wanted is bool:
            if isinstance(value, (bool, int)):
                return bool(value)
            return {"1": True, "true": True, "0": False, "false": False}[str(value).lower()]
        if wanted is int:
            return int(value)
        return str(value)
    except (KeyError, ValueError):
        raise TargetError(
            f"option '-{name}={value}' of target kind {kind.name!r}: "
            f"the value must be of type {wanted.__name__}"
        ) from None
