"""Marks of tests for pytest: what a test needs, and which values it runs for (classic names).

A mark is put with or without brackets: ``@requires_llvm`` and ``@requires_llvm()``.
"""

from __future__ import annotations

import copy
import functools
import importlib.util
import inspect
import os
import pickle
import platform
import struct
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from slipway.runtime.cpu_features import host_features
from slipway.runtime.devices import device
from slipway.runtime.features import GPUS, enabled, tested_targets
from slipway.runtime.features import enabled_targets as enabled_targets

if TYPE_CHECKING:
    from slipway.target import Target


def _pytest() -> Any:
    import pytest

    return pytest


class Requirement:
    """A mark that skips a test where something is not there."""

    def __init__(self, name: str, is_there: Callable[[], bool]) -> None:
        self.name = name
        self.is_there = is_there

    def __call__(self, *functions: Any) -> Any:
        """Mark a test (or return the mark, when called without one)."""
        marked = _pytest().mark.skipif(not self.is_there(), reason=f"needs {self.name}")
        return marked(functions[0]) if functions else marked

    def marks(self) -> list[Any]:
        """Return the marks to put on a case of pytest's parametrize."""
        return [_pytest().mark.skipif(not self.is_there(), reason=f"needs {self.name}")]


def _of(name: str) -> Requirement:
    return Requirement(name, lambda: enabled(name))


requires_llvm, requires_rpc, requires_micro = _of("llvm"), _of("rpc"), _of("micro")
requires_cuda, requires_opencl, requires_vulkan = _of("cuda"), _of("opencl"), _of("vulkan")
requires_metal, requires_rocm, requires_hexagon = _of("metal"), _of("rocm"), _of("hexagon")
requires_gpu = Requirement("a GPU", lambda: any(map(enabled, GPUS)))
requires_tensorcore, requires_nvptx = _of("cuda"), _of("nvptx")
requires_cudnn, requires_cublas, requires_cutlass = _of("cudnn"), _of("cublas"), _of("cutlass")
requires_cudagraph, requires_ethosn, requires_cmsisnn = _of("cuda"), _of("ethosn"), _of("cmsisnn")
requires_vitis_ai, requires_corstone300 = _of("vitis_ai"), _of("corstone300")
requires_x86 = Requirement("an x86 processor", lambda: platform.machine() in ("x86_64", "AMD64"))
requires_arm_dot = Requirement(
    "an ARM processor", lambda: platform.machine() in ("aarch64", "arm64")
)


def _x86_with(name: str, *features: str) -> Requirement:
    return Requirement(f"an x86 processor with {name}", lambda: {*features} <= host_features())


requires_x86_vnni = _x86_with("VNNI", "avx512vnni")
requires_x86_avx512 = _x86_with("AVX-512", "avx512f", "avx512bw")
requires_x86_amx = _x86_with("AMX", "amx-tile", "amx-int8")
requires_ethosu, requires_openclml, requires_matrixcore = _of("ethosu"), _of("clml"), _of("rocm")
requires_libtorch = Requirement(
    "PyTorch", lambda: importlib.util.find_spec("torch") is not None
)  # fmt: skip


def uses_gpu(*functions: Any) -> Any:
    """Mark a test that also runs on a GPU; it runs without one too."""
    return functions[0] if functions else uses_gpu


def slow(function: Any) -> Any:
    """Mark a test that takes long; SKIP_SLOW_TESTS=1 in the environment leaves it out."""
    left_out = os.environ.get("SKIP_SLOW_TESTS", "").lower() in ("1", "true", "yes")
    return _pytest().mark.skipif(left_out, reason="SKIP_SLOW_TESTS is set")(function)


def skip_if_wheel_test(function: Any) -> Any:
    """Mark a test that needs more than the installed package; WHEEL_TEST=1 leaves it out."""
    left_out = os.environ.get("WHEEL_TEST", "").lower() in ("1", "true", "yes")
    return _pytest().mark.skipif(left_out, reason="WHEEL_TEST is set")(function)


def _needs_version(name: str, found: Callable[[], tuple[int, ...]]) -> Callable[..., Any]:
    def of_version(major: int, minor: int = 0, release: int = 0) -> Any:
        version = f"{major}.{minor}" + (f".{release}" if release else "")
        return Requirement(f"{name} {version}", lambda: found() >= (major, minor, release))

    return of_version


def _compute_version() -> tuple[int, ...]:
    """Return what the first CUDA device says of its version, (8, 0, 0) of "8.0", or (0,)."""
    said = device("cuda", 0).compute_version if enabled("cuda") else None
    return (*map(int, said.split(".")), 0) if said else (0,)


# NVIDIA's compiler is not used, whatever is installed.
requires_nvcc_version = _needs_version("nvcc", lambda: (0,))
requires_cuda_compute_version = _needs_version("a CUDA device of version", _compute_version)


def requires_package(*packages: str) -> Requirement:
    """Return a mark for tests that need Python packages."""
    return Requirement(
        ", ".join(packages),
        lambda: all(importlib.util.find_spec(package) is not None for package in packages),
    )


def skip_if_32bit(reason: str) -> Any:
    """Return a mark that skips where pointers have 32 bits."""
    return _pytest().mark.skipif(struct.calcsize("P") == 4, reason=reason)


def device_enabled(target: Target | str) -> bool:
    """Return whether tests are to run code for a target in this process.

    Its device is here, and $TVM_TEST_TARGETS, where it is set, names a target of its kind.
    """
    kind = (target if isinstance(target, str) else target.kind.name).split()[0]
    return kind in {one.split()[0] for one in tested_targets()} and enabled(kind)


def parametrize_targets(*targets: Any) -> Any:
    """Run a test once for each target that can run here, with arguments `target` and `dev`.

    A test that does not name `dev` gets the target alone; that of a class is a fixture's
    (slipway.testing.plugin).
    """

    def mark(function: Any, names: tuple[Any, ...] = ()) -> Any:
        chosen = names or tuple(name for name, _ in enabled_targets())
        both = not isinstance(function, type) and "dev" in inspect.signature(function).parameters
        cases = []
        for name in chosen:
            kind = str(name).split()[0]
            values = (name, device(kind, 0)) if both else (name,)
            here = Requirement(kind, functools.partial(device_enabled, name))
            cases.append(_pytest().param(*values, id=kind, marks=here.marks()))
        arguments = ("target", "dev") if both else ("target",)
        return _pytest().mark.parametrize(arguments, cases)(function)

    if len(targets) == 1 and callable(targets[0]):
        return mark(targets[0])
    return lambda function: mark(function, targets)


def exclude_targets(*targets: str) -> Any:
    """Return a mark that skips a test where it is to leave out every target that can run here."""
    here = [name for name, _ in enabled_targets()]
    return _pytest().mark.skipif(set(here) <= set(targets), reason=f"not for {', '.join(targets)}")


def known_failing_targets(*targets: str) -> Any:
    """Return a mark that lets a test fail which is known to, on a target that can run here."""
    here = {name for name, _ in enabled_targets()}
    return _pytest().mark.xfail(bool(here & set(targets)), reason="known to fail", strict=False)


def _value(*_instance: Any, request: Any) -> Any:
    return request.param  # in a class, pytest passes the instance first


def parameter(*values: Any, ids: Any = None, by_dict: dict[str, Any] | None = None) -> Any:
    """Return a fixture with each of the values; `by_dict` gives them names."""
    if by_dict is not None:
        ids, values = list(by_dict), tuple(by_dict.values())
    return _pytest().fixture(params=list(values), ids=ids)(_value)


class Correlated:
    """The fixture function of one place of value sets; slipway.testing.plugin gives it values."""

    def __init__(self, value_sets: list[Any], index: int, ids: Any) -> None:
        self.value_sets, self.index, self.ids = value_sets, index, ids


def parameters(*value_sets: Any, ids: Any = None) -> list[Any]:
    """Return fixtures that change together, one for each place of the sets.

    It takes slipway.testing.plugin to give them their values.
    """
    sets = list(value_sets)

    def fixture_of(index: int) -> Any:
        def value(*_instance: Any, request: Any) -> Any:
            return request.param

        value.correlated = Correlated(sets, index, ids)  # type: ignore[attr-defined]
        return _pytest().fixture(value)

    return [fixture_of(index) for index in range(len(sets[0]))]


def fixture(func: Any = None, *, cache_return_value: bool = False) -> Any:
    """Return a pytest fixture; with `cache_return_value`, one that is made once for its arguments.

    A test gets a copy of what was made, so that it may write into it.
    """
    if func is None:
        return lambda later: fixture(later, cache_return_value=cache_return_value)
    if not cache_return_value:
        return _pytest().fixture(func)
    made: dict[bytes, Any] = {}

    @functools.wraps(func)
    def once(*args: Any, **kwargs: Any) -> Any:
        try:
            key = pickle.dumps((args[1:] if _is_method(func) else args, sorted(kwargs.items())))
        except (TypeError, AttributeError, pickle.PicklingError):
            return func(*args, **kwargs)  # nothing to know such arguments again by
        if key not in made:
            made[key] = func(*args, **kwargs)
        return copy.deepcopy(made[key])

    return _pytest().fixture(once)


def _is_method(function: Any) -> bool:
    return next(iter(inspect.signature(function).parameters), "") == "self"


def main() -> None:
    """Run the tests of the file that calls this, and end the process."""
    caller = sys._getframe(1).f_globals["__file__"]
    sys.exit(_pytest().main([caller, *sys.argv[1:]]))
