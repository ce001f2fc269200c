"""The kernels of a model: lowered and compiled, or found in the kernel cache without either.

What a kernel's object is made from is known before it is lowered: the fused function, the target,
the options of the PassContext, and the compiler's own source.  `kernel_key` puts them into one
name.  The kernel's own name is no part of it: the kernel is compiled under the names of its
operators, and gets its model's name for it afterwards, so that all models share it.  Where
something else has a say (an operator, schedule or pass of the user's, an instrument that wants to
watch), there is no key, and the kernel is lowered.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext
from functools import lru_cache, partial
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any

from slipway import te
from slipway.backends import strategy as registry
from slipway.backends.backend import backend_of
from slipway.backends.choices import RECORDS, records_digest, records_path, using_records
from slipway.backends.primitive import ScheduledKernel, schedule_primitive
from slipway.backends.size_versions import in_versions
from slipway.codegen import cache
from slipway.codegen.compiled import CompiledModule
from slipway.codegen.source import FunctionSource
from slipway.compiler.accelerators.external import external_kernel, is_external
from slipway.compiler.emit import COMPILER, build_module
from slipway.compiler.graph import content_name
from slipway.compiler.memory_plan.images import image_scopes
from slipway.compiler.model_graph import ModelGraph
from slipway.errors import SlipwayError
from slipway.ir import custom, ops
from slipway.ir import expr as E
from slipway.ir import stmt as S
from slipway.ir.buffer import decl_buffer
from slipway.ir.function import PrimFunc
from slipway.ir.stmt import NOP as NOP_STMT
from slipway.ir.structural import structural_digest
from slipway.ir.visit import walk
from slipway.relay import op_registry
from slipway.relay.analysis.told_sizes import ranges_in
from slipway.relay.dims import line_of
from slipway.relay.expr import Call, Function, Op
from slipway.relay.narrowed import divided_sizes, with_own_sizes
from slipway.relay.op_registry import is_primitive
from slipway.relay.ops.control import bodies_of
from slipway.relay.visit import post_order
from slipway.target import Target
from slipway.transform.context import PassContext
from slipway.transform.loop.pipeline import run_pipeline

# The rooms and files whose source decides what a kernel becomes, and what is kept under its key.
_ROOMS = (
    "relay", "backends", "te", "topi", "transform", "codegen", "ir", "arith", "target", "dtypes.py",
    "compiler/kernels.py", "compiler/optimize.py", "compiler/aot/overlap.py",
)  # fmt: skip
_PLAIN = (bool, int, float, str, type(None))
_OF_GRAPHS = ("relay.", "tir.usmp.")  # options that come before or after the kernels


def lower_kernel(name: str, function: Function, target: Target) -> PrimFunc:
    """Return the loops of one fused function, ready for a code generator.

    Raises what lowering raises, with the kernel's name in front.
    """
    try:
        if is_external(function):
            return _ready(external_kernel(name, function), target)
        own = with_own_sizes(function)
        lowered = partial(_lowered, name, target=target)
        if divided_sizes(own):
            return lowered(own, schedule_primitive(own, target))
        return in_versions(own, target, lowered)
    except SlipwayError as error:
        raise type(error)(f"in the kernel {name}: {error}") from error


def _lowered(name: str, function: Function, kernel: ScheduledKernel, *, target: Target) -> PrimFunc:
    scopes = image_scopes(function, len(kernel.args))
    binds = {
        tensor: decl_buffer(tensor.shape, tensor.dtype, tensor.name, scope=scope)
        for tensor, scope in zip(kernel.args, scopes, strict=True)
        if scope
    }
    loops = te.lower(kernel.schedule, list(kernel.args), name=name, binds=binds)
    return _ready(told_sizes(loops), target)


def _ready(loops: PrimFunc, target: Target) -> PrimFunc:
    backend = backend_of(target)
    return run_pipeline(backend.lowered_kernel(loops), target, passes=backend.loop_passes(target))


def told_sizes(loops: PrimFunc) -> PrimFunc:
    """Return a kernel whose sizes are axes of its tensors, or follow from them at its beginning.

    An axis of 32 * h + 1 elements becomes one of its own, and h follows from it, where no other is
    h; axes of other formulas of h do too, because nobody outside knows h.
    """
    own = {e for _, buffer in loops.buffer_map for e in buffer.shape if isinstance(e, E.Var)}
    told: dict[E.Var, E.PrimExpr] = {}

    def axis(extent: E.PrimExpr) -> E.PrimExpr:
        """Return the extent, or a size of its own where it is some of what is told inside."""
        variables = [e for e in walk(extent) if isinstance(e, E.Var)]
        if own.issuperset(variables):
            return extent
        size = E.SizeVar("_".join(v.name for v in variables), extent.dtype)
        line = line_of(extent)
        if line is not None:
            less = ops.sub(size, ops.const(line.more, size.dtype))
            told.setdefault(line.variable, ops.floordiv(less, ops.const(line.times, size.dtype)))
        return size

    buffers = [
        (param, buffer.replace(shape=shape) if shape != buffer.shape else buffer)
        for param, buffer in loops.buffer_map
        for shape in (tuple(map(axis, buffer.shape)),)
    ]
    body = loops.body
    for variable, value in told.items():
        body = S.LetStmt(variable, value, body)
    return loops.replace(body=body, buffer_map=tuple(buffers)) if told else loops


class LoweredKernels(Mapping[str, PrimFunc]):
    """A model's kernels as loops, ready for a code generator: lowered when first asked for.

    `made_from` has what stands for each (`kernel_key`); "" where nothing does.
    """

    def __init__(self, graph: ModelGraph, target: Target) -> None:
        self.functions, self.target = graph.kernels, target
        self.made_from = {name: kernel_key(f, target) for name, f in graph.kernels.items()}
        self._context = PassContext.current()
        self._records = records_path()
        self._lowered: dict[str, PrimFunc] = {}

    def __getitem__(self, name: str) -> PrimFunc:
        if name not in self._lowered:
            self._lowered[name] = self.lower(name)
        return self._lowered[name]

    def __contains__(self, name: object) -> bool:
        return name in self.functions  # without lowering it

    def __iter__(self) -> Iterator[str]:
        return iter(self.functions)

    def __len__(self) -> int:
        return len(self.functions)

    def lower(self, name: str) -> PrimFunc:
        """Lower one kernel under the PassContext of the build, and keep nothing of it."""
        entered = PassContext.current() is self._context
        with nullcontext() if entered else self._context, using_records(self._records):
            return lower_kernel(name, self.functions[name], self.target)

    def key_of(self, names: Iterable[str], *what: str) -> str:
        """Return what stands for the kernels `names`, so named; "" if that is not all known."""
        pairs = [(name, self.made_from[name]) for name in names]
        if not all(key for _, key in pairs):
            return ""
        return cache.key_of(*what, *(word for pair in pairs for word in pair))


def compile_kernels(
    graph: ModelGraph,
    target: Target,
    lowered: LoweredKernels | None = None,
    later: bool = False,
) -> CompiledModule:
    """Compile all kernels of a model into one module.

    `lowered` keeps the loops for others who want them.  With `later`, LLVM compiles when the
    objects are first asked for.  A model without any kernel, one that only reshapes say, gets a
    function that does nothing, because a library must export something.
    """
    if not graph.kernels:
        nothing = PrimFunc((), NOP_STMT, (), (("global_symbol", "tvmgen_nothing"),))
        return build_module({"tvmgen_nothing": nothing}, target)
    kernels = lowered if lowered is not None else LoweredKernels(graph, target)
    lower = kernels.lower if lowered is None else kernels.__getitem__
    sources = [
        FunctionSource(n, partial(lower, n), kernels.made_from[n], content_name(f))
        for n, f in graph.kernels.items()
    ]
    first = sources[0].name
    return backend_of(target).emit_kernels(sources, target, first, COMPILER, later)


def kernel_key(function: Function, target: Target) -> str:
    """Return what stands for everything that a kernel is compiled from; "" if it is not all known.

    Equal keys mean equal objects, on every machine and whatever a model calls its kernel.
    """
    if is_external(function):
        return ""  # what the user's code generator returns is not known before
    context = PassContext.current()
    options = context.config.items()
    config = sorted((name, value) for name, value in options if not name.startswith(_OF_GRAPHS))
    if path := records_path():
        config.append((RECORDS, records_digest(path)))
    known = all(_is_plain(value) for _, value in config)
    rules = custom.changes_own_code(target.kind.name)
    if not known or context.instruments or rules or not _all_ours(function, target):
        return ""
    return cache.key_of(
        source_digest(),
        structural_digest(function),
        ",".join(str(param.checked_type) for param in function.params),
        # What is known of the sizes decides what is proved of the kernel.
        *ranges_in(function),
        *_description_of(target),
        repr((context.opt_level, sorted(context.required_pass), sorted(context.disabled_pass))),
        repr(config),
    )


def _description_of(target: Target) -> Iterable[str]:
    """What the compiler may ask of a target, with what its text leaves to this machine."""
    features = sorted(target.features), target.llvm_features
    return (str(target), target.triple, target.cpu, repr(features))


def _is_plain(value: Any) -> bool:
    """Return whether the text of an option's value says everything about it."""
    if isinstance(value, dict):
        return all(_is_plain(part) for part in (*value, *value.values()))
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    return isinstance(value, _PLAIN)


def _all_ours(function: Function, target: Target) -> bool:
    """Return whether Slipway's own code alone computes and schedules the function's operators.

    What a user has registered for an operator counts where it applies.
    """
    for expr in post_order(function.body, into_functions=False):
        if not isinstance(expr, Call) or not isinstance(expr.op, Op):
            continue
        if not _is_ours(op_registry.get(expr.op.name).compute_function):
            return False
        theirs = [e for e in registry.strategies(expr.op.name, target) if not _implements_ours(e)]
        in_types = [arg.checked_type for arg in expr.args] if theirs else []
        if any(entry.applies(expr.attrs, in_types, target) for entry in theirs):
            return False
        for body in bodies_of(expr).values():
            kernels = (k for k in post_order(body) if isinstance(k, Function) and is_primitive(k))
            if not all(_all_ours(kernel, target) for kernel in kernels):
                return False
    return True


def _implements_ours(entry: registry.Strategy) -> bool:
    functions = (entry.schedule, entry.applies, entry.compute, entry.default)
    return all(map(_is_ours, functions))


def _is_ours(function: Any) -> bool:
    module = getattr(getattr(function, "func", function), "__module__", "")
    return function is None or str(module).startswith("slipway.")


@lru_cache(maxsize=1)
def source_digest() -> bytes:
    """Return the SHA-256 of the compiler's own source."""
    digest = hashlib.sha256()
    for room in _ROOMS:
        _add(digest, resources.files("slipway").joinpath(room))
    return digest.digest()


def _add(digest: Any, item: Traversable) -> None:
    if item.is_dir():
        for inner in sorted(item.iterdir(), key=lambda inner: inner.name):
            _add(digest, inner)
    elif not item.name.endswith(".pyc"):
        content = item.read_bytes()
        digest.update(f"{item.name} {len(content)} ".encode() + content)
