"""`Backend`: all that depends on a kind of target, and how the one for a target is found.

A backend is a package with a module `backend` that holds its object under the name ``BACKEND``.
Those in this folder are found by themselves, and loaded one by one until a target has its own;
`register_backend` adds one that lives elsewhere.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from slipway.codegen.compiled import CompiledModule
from slipway.codegen.source import FunctionSource
from slipway.errors import TargetError
from slipway.ir.function import PrimFunc
from slipway.target import Target
from slipway.target.choose import one_target
from slipway.transform.loop.pipeline import PIPELINE
from slipway.transform.manager import Pass

if TYPE_CHECKING:
    from slipway.relay.expr import Call, Function
    from slipway.target.target import TargetLike


Language = Literal["llvm", "c"]  # that programs are written in


class Backend:
    """What the compiler asks about one kind of target; the answers here are the plain ones.

    `name` is the backend's own, `strategies` the packages whose strategies its operators may use,
    the module of `register_strategy` being in one of them; a user's own serve every backend.
    """

    name = ""
    strategies: tuple[str, ...] = ()

    def serves(self, target: Target) -> bool:
        """Return whether this is the backend of `target`; no two say so of one target."""
        raise NotImplementedError

    def graph_passes(self, target: Target) -> Sequence[Pass]:
        """Return the passes that make kernels of a model, in order."""
        from slipway.transform.graph.pipeline import GENERAL

        return GENERAL

    def loop_passes(self, target: Target) -> Sequence[Pass]:
        """Return the passes between a lowered schedule and the code generator, in order."""
        return PIPELINE

    def fast_types(self, target: Target) -> Mapping[str, float]:
        """Return the types whose products beat those of float32, and how many times, best first."""
        return {}

    def gains_in_parts(self, call: Call, products: int, target: Target) -> bool:
        """Return whether a float32 product takes less time as `products` of its fastest type."""
        return False

    def lowered_kernel(self, func: PrimFunc) -> PrimFunc:
        """Return a model's kernel as the loop passes get it."""
        return func

    def tensor_alignment(self, target: Target) -> int:
        """Return the multiple of bytes at which each tensor of a model begins."""
        return 64

    def layout_lanes(self, target: Target, aot: bool = False) -> int:
        """Return how many channels lie in a block between kernels; 0: layouts stay as they are."""
        return 0

    def language(self, target: Target) -> Language:
        """Return what programs are written in."""
        return "c"

    def emit(
        self, functions: Mapping[str, PrimFunc], target: Target, entry: str, compiler: str
    ) -> CompiledModule:
        """Return the compiled functions.  Raises CodegenError for what cannot be expressed."""
        raise NotImplementedError

    def emit_kernels(
        self,
        sources: Sequence[FunctionSource],
        target: Target,
        entry: str,
        compiler: str,
        later: bool = False,
    ) -> CompiledModule:
        """Return a model's kernels compiled; a backend with a cache need not lower them all."""
        functions = {source.name: source.lower() for source in sources}
        return self.emit(functions, target, entry, compiler)

    def hand_written(self, name: str, function: Function, target: Target) -> Sequence[Any]:
        """Return kernels written by hand that compute a fused function, the best first."""
        return ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"


_REGISTERED: list[Backend] = []
_PACKAGES: set[str] = set()  # of strategies, those of backends that were taken away too


def register_backend(backend: Backend) -> Backend:
    """Add a backend that is not in this folder; it is asked before those that are.

    Raises TargetError where it lacks what none can do without.
    """
    lacking = [f"a method {name}" for name in ("serves", "emit") if _is_plain(backend, name)]
    lacking += [] if backend.name else ["a name"]
    if lacking:
        raise TargetError(
            f"register_backend: {type(backend).__name__} lacks {' and '.join(lacking)}; "
            "a class derived from slipway.backends.backend.Backend says which targets it serves, "
            "and how it emits code"
        )
    _REGISTERED.append(backend)
    _PACKAGES.update(backend.strategies)
    return backend


def _is_plain(backend: Backend, method: str) -> bool:
    """Return whether `backend` has not defined a method that `Backend` only declares."""
    return getattr(type(backend), method, None) is getattr(Backend, method)


def unregister_backend(backend: Backend) -> None:
    """Take a registered backend away again."""
    _REGISTERED.remove(backend)


def backends() -> Iterator[Backend]:
    """Yield the registered backends, then those of this folder, each loaded when asked for."""
    yield from list(_REGISTERED)
    yield from map(_ours, _folders())


def strategy_packages() -> frozenset[str]:
    """Return the packages whose strategies are some backend's, and nobody else's."""
    return frozenset({"slipway.backends", *_PACKAGES})


@lru_cache(maxsize=1)
def _folders() -> list[str]:
    return [i.name for i in pkgutil.iter_modules([str(Path(__file__).parent)]) if i.ispkg]


@lru_cache(maxsize=64)
def _ours(folder: str) -> Backend:
    backend: Backend = importlib.import_module(f"slipway.backends.{folder}.backend").BACKEND
    return backend


def find_backend(target: Target) -> Backend | None:
    """Return the backend of a target, or None."""
    return next((b for b in backends() if b.serves(target)), None)


def backend_of(target: Target, what: str = "models") -> Backend:
    """Return the backend of a target.  Raises TargetError where there is none."""
    backend = find_backend(target)
    if backend is None:
        raise TargetError(
            f"Slipway has no code generator for {what} on {target.kind.name} yet; targets of kind "
            "llvm and c compile for every CPU, those of kind opencl, cuda and metal for GPUs"
        )
    return backend


def compile_target(target: TargetLike, host: TargetLike = None, what: str = "models") -> Target:
    """Return what a user gave as `target` as a Target that there is a backend for.

    Raises TargetError for several targets, for an unknown one, and where nothing compiles for it.
    """
    chosen = one_target(target, host, what)
    backend_of(chosen, what)
    return chosen
