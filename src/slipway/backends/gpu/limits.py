"""What a kernel may take on a target, checked before anything is compiled."""

from __future__ import annotations

from math import prod

from slipway.codegen.gpu.dynamic_shared import SCOPE
from slipway.codegen.gpu.kernel import DeviceKernel
from slipway.codegen.gpu.nvptx import version_of
from slipway.errors import CodegenError
from slipway.ir import ops
from slipway.target import Target
from slipway.target.gpu_costs import ANY_GPU

# Bytes that every device of a kind has for a block, where the target does not say.
SHARED_BYTES = {
    "opencl": 32768,
    "cuda": 49152,
    "nvptx": 49152,
    "metal": 32768,
    "vulkan": 16384,
    "webgpu": 16384,
    "rocm": 65536,
}
# Bytes that NVIDIA's assembler takes of memory of a known size, whatever the device has.
_STATIC = {"cuda": 49152, "nvptx": 49152}
# KB of shared memory of all sizes together that a launch gives a block, by the number of sm_.
_OPT_IN = {70: 96, 72: 96, 75: 64, 80: 163, 86: 99, 87: 163, 88: 163, 89: 99, 90: 227, 100: 227,
           101: 227, 103: 227, 110: 227, 120: 99, 121: 99}  # fmt: skip
_GIVEN = frozenset(("opencl", "cuda", "nvptx", "metal", "rocm"))
_PARAMETERS = 128  # of a kernel, in every language here
_POINTERS = {"webgpu": 8, "metal": 31}  # of a kernel, where a language counts them by themselves
_USUAL_POINTERS = {"vulkan": 32}  # lavapipe's; others have more, and say so at each launch
_PUSHED_BYTES = {"vulkan": 128}  # of numbers that a kernel is given
_THREADS = {"rocm": 1024}  # of a block, which every device of a kind runs; of others 256
_BLOCKS = {"vulkan": 65535, "webgpu": 65535}  # along an axis


def most_threads(target: Target) -> int:
    """Return how many threads a block may have."""
    attrs = target.attrs
    return int(attrs.get("max_threads_per_block") or attrs.get("max_num_threads") or 256)


def shared_bytes(target: Target) -> int:
    """Return how many bytes the threads of a block may share."""
    kind = target.kind.name
    given = target.attrs.get("max_shared_memory_per_block")
    found = int(given) if given else SHARED_BYTES.get(kind, 16384)
    return min(found, _STATIC.get(kind, found))


def gives_memory(target: Target) -> bool:
    """Return whether a launch gives its kernel shared memory (scope "shared.dyn")."""
    return target.kind.name in _GIVEN


def shared_bytes_of_launches(target: Target) -> int:
    """Return how many bytes the threads of a block may share where a launch gives some of them.

    A description that says what every device of the kind has without, says nothing of launches.
    """
    static = shared_bytes(target)
    if target.kind.name not in _STATIC or not gives_memory(target):
        return static
    given = int(target.attrs.get("max_shared_memory_per_block") or 0)
    most = max(static, _OPT_IN.get(version_of(target), 0) * 1024)
    if given < _STATIC[target.kind.name]:
        return static if given else most
    return given if given > _STATIC[target.kind.name] else most


def panel_bytes(target: Target, stages: int) -> int:
    """Return how many bytes the panels of `stages` steps may take together."""
    return shared_bytes(target) if stages == 1 else shared_bytes_of_launches(target)


def panel_scope(target: Target, size: int) -> str:
    """Return the scope of panels of `size` bytes: a launch gives what the code cannot say."""
    return "shared" if size <= shared_bytes(target) else SCOPE


def most_blocks(target: Target) -> int | None:
    """Return how many blocks there may be along an axis; None: as many as are wanted."""
    return _BLOCKS.get(target.kind.name)


def most_steps(target: Target) -> int | None:
    """Return how many steps a thread's sum may have; None: as many as are wanted.

    A driver that is not known may be lavapipe.
    """
    return ANY_GPU.thread_steps if target.kind.name == "vulkan" else None


def most_tensors(target: Target) -> int:
    """Return how many tensors a kernel of a model may read and write."""
    kind, attrs = target.kind.name, target.attrs
    pointers = attrs.get("max_per_stage_descriptor_storage_buffer")
    usual = _POINTERS.get(kind, _USUAL_POINTERS.get(kind, _PARAMETERS))
    return min(int(pointers or usual), int(attrs.get("max_function_args") or _PARAMETERS))


def check_limits(kernel: DeviceKernel, target: Target) -> None:
    """Raise CodegenError for a kernel that takes more than the target has."""
    name, kind = kernel.name, target.kind.name
    device = _device(kind)
    axes = [f"threadIdx.{axis}" for axis in "xyz" if f"threadIdx.{axis}" in kernel.extents]
    extents = [ops.as_int(kernel.extents[axis]) for axis in axes]
    known = [extent for extent in extents if extent is not None]
    threads, allowed = prod(known), most_threads(target)
    if not target.attrs.get("max_threads_per_block"):
        allowed = max(allowed, _THREADS.get(kind, 0))
    if threads > allowed:
        product = " x ".join(f"{n} ({axis})" for n, axis in zip(extents, axes, strict=True))
        raise CodegenError(
            f"kernel {name} has {threads} threads in a block, {product}; {device} of this "
            f"target runs {allowed}. Split the axes that are bound to threadIdx by less, or say "
            f'what the device has: Target("{kind} -max_threads_per_block={threads}")'
        )
    _check_shared(kernel, target)
    most = int(target.attrs.get("max_function_args") or _PARAMETERS)
    if len(kernel.params) > most:
        raise CodegenError(
            f"kernel {name} takes {len(kernel.params)} arguments; {device} of this target "
            f"takes {most}. Compute fewer tensors in one kernel"
        )
    pointers = kernel.signature.count("p")
    most = int(
        target.attrs.get("max_per_stage_descriptor_storage_buffer")
        or _POINTERS.get(kind, _PARAMETERS)
    )
    if pointers > most:
        raise CodegenError(
            f"kernel {name} takes {pointers} tensors; {device} of this target takes {most}. "
            "Compute fewer tensors in one kernel, or say what the device has: "
            f'Target("{kind} -max_per_stage_descriptor_storage_buffer={pointers}")'
        )
    pushed = sum(8 if char in "8d" else 4 for char in kernel.signature if char != "p")
    room = int(target.attrs.get("max_push_constants_size") or _PUSHED_BYTES.get(kind, pushed))
    if pushed > room:
        raise CodegenError(
            f"kernel {name} is given {pushed} bytes of numbers, sizes perhaps; {device} of "
            f"this target takes {room}. Compile for sizes that are known, or say what the device "
            f'has: Target("{kind} -max_push_constants_size={pushed}")'
        )


def _check_shared(kernel: DeviceKernel, target: Target) -> None:
    name, kind = kernel.name, target.kind.name
    device, given = _device(kind), shared_bytes_of_launches(target)
    static, taken = shared_bytes(target), kernel.known_shared_bytes
    if kernel.shared_bytes <= static and taken <= given:
        return
    scope, has, uses = '"shared"', static, kernel.shared_bytes
    if kernel.shared_bytes <= static:
        scope, has, uses = '"shared" and "shared.dyn"', given, taken
    advice = f', or say what the device has: Target("{kind} -max_shared_memory_per_block={uses}")'
    if scope == '"shared"' and kernel.shared_bytes > _STATIC.get(kind, kernel.shared_bytes):
        advice = f', or set_scope("shared.dyn"): of what a launch gives, it has {_kib(given)}'
    raise CodegenError(
        f"kernel {name} uses {_kib(uses)} of shared memory; {device} of this target has "
        f"{_kib(has)} for a block. Make the tiles in scope {scope} smaller{advice}"
    )


def _device(kind: str) -> str:
    return f"{'an' if kind[0] in 'aeio' else 'a'} {kind} device"


def _kib(size: int) -> str:
    return f"{size / 1024:g} KB"
