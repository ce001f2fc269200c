"""`relay.create_executor`: a relay module as a Python function, in one line.

    run = relay.create_executor("graph", mod=mod, device=tvm.cpu(0), target="llvm").evaluate()
    y = run(x, w=weights)

Kinds: "graph" and "aot" compile the whole model; "debug" runs the NumPy references, operator by
operator, but compiles a model with numbers of the user's own types; "vm" compiles the whole model
too, but runs functions that call themselves by the references. A model with dimensions that nothing
bounds (`relay.Any()`) is compiled by "vm" for each size that it meets; one with ranges
(`relay.Dim("n", 1, 8)`) once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway import dtypes
from slipway.arguments import table_of
from slipway.compiler.by_values import MAX_SIZES, Stages, can_be_staged
from slipway.compiler.driver import build as build_kernel
from slipway.compiler.operator_module import OperatorModule
from slipway.compiler.relay_build import build
from slipway.errors import LoweringError, TargetError, did_you_mean
from slipway.ir.function import GlobalVar, IRModule, PrimFunc
from slipway.ir.stmt import NOP
from slipway.ir.text.serialize import save_json
from slipway.relay.backend import Executor
from slipway.relay.construct import bind, distinct_names
from slipway.relay.expr import Call, Constant, Expr, Function, If, Op, Var
from slipway.relay.interpret import interpret
from slipway.relay.op_registry import is_primitive
from slipway.relay.open_dims import fix_shapes, open_inputs
from slipway.relay.types import ANY, TensorType, TupleType, Type, flatten, is_open
from slipway.relay.visit import post_order
from slipway.runtime.container import tuple_object
from slipway.runtime.devices import AnyDevice, cpu
from slipway.runtime.graph import graph_executor
from slipway.runtime.graph.input_values import IN_MODEL, converted
from slipway.runtime.ndarray import array
from slipway.runtime.vm import Executable, inputs_by_name
from slipway.target import Target
from slipway.transform.graph.dynamic_to_static import dynamic_calls
from slipway.transform.graph.infer_type import infer_type
from slipway.transform.graph.inline import inline
from slipway.transform.graph.pipeline import main_function

if TYPE_CHECKING:
    from slipway.target.target import TargetLike

KINDS = ("graph", "vm", "debug", "aot")


class _OpenModel:
    """A module that is compiled where it runs, as a virtual machine saves it."""

    def __init__(self, mod: IRModule, target: TargetLike) -> None:
        self._mod, self.target = mod, str(Target(target))

    def text(self) -> str:
        """Return the module, constants and all."""
        return save_json(self._mod)

    def library(self) -> OperatorModule:
        """Return a library of the target's with nothing in it."""
        empty = PrimFunc((), NOP, (), (("global_symbol", "compiled_when_called"),))
        return build_kernel(empty, target=self.target)


class RelayExecutor:
    """A module bound to a kind of executor; `evaluate` gives the callable."""

    def __init__(
        self,
        kind: str,
        mod: IRModule,
        device: AnyDevice | None,
        target: TargetLike,
        params: Mapping[str, Any] | None,
    ) -> None:
        self.kind, self.mod, self.device, self.target = kind, mod, device, target
        self.params = dict(table_of(params, "params", "{'weight': array}"))

    def evaluate(
        self, expr: Expr | GlobalVar | None = None, binds: Mapping[Any, Any] | None = None
    ) -> Callable[..., Any]:
        """Return a function of the inputs, in order or by name.

        Its result is an NDArray; for a tuple, as in classic TVM, a list of results ("graph" and
        "aot") or an ADT of them ("vm" and "debug").  `expr`
        replaces the module's main; `binds` gives variables values beforehand.  An expression that
        is no function, and has no inputs, is run at once, and its value returned.
        """
        mod, main = self._bound(expr, binds)
        run = self._runner(mod, main)
        value = expr is not None and not isinstance(expr, Function) and not main.params
        return run() if value else run

    def as_executable(self, lib: Any = None) -> Executable:
        """Return the module's main for a `runtime.vm.VirtualMachine`; `lib` was saved beside it."""
        mod, main = self._bound(None, None)
        names = [p.name for p in main.params]
        if _is_unbounded(main) or dynamic_calls(main) or _calls_itself(mod, main):
            model = _OpenModel(mod, self.target)
            return Executable(lib, names, 0, self._runner(mod, main), model)
        mod, main, factory = self._built(mod, main)
        numbers = count()
        return Executable(factory, names, _as_typed(_result_type(main), lambda: next(numbers)))

    def _bound(
        self, expr: Expr | GlobalVar | None, binds: Mapping[Any, Any] | None
    ) -> tuple[IRModule, Function]:
        """Return the module and its main, with variables that have values bound."""
        mod = self.mod
        if isinstance(expr, GlobalVar):
            mod = mod.update("main", mod[expr])
        elif expr is not None:
            mod = mod.update("main", expr if isinstance(expr, Function) else expr.as_function())
        main = distinct_names(bind(main_function(mod), {**self.params, **dict(binds or {})}))
        return mod.update("main", main), main

    def _runner(self, mod: IRModule, main: Function) -> Callable[..., Any]:
        if self.kind == "vm" and _is_unbounded(main):
            return self._compiling(mod, main)
        if self.kind == "vm" and dynamic_calls(main) and not _calls_itself(mod, main):
            return self._staged(mod, main)
        by_references = self.kind == "debug" and not _has_own_types(mod, main)
        if by_references or (self.kind == "vm" and _calls_itself(mod, main)):
            return self._by_references(mod, main)
        return self._compiled(mod, main)

    def _compiling(self, mod: IRModule, main: Function) -> Callable[..., Any]:
        """Return what compiles the module for the sizes of its inputs, once for each."""
        names = [p.name for p in main.params]
        known: dict[tuple[tuple[int, ...], ...], Callable[..., Any]] = {}

        def run(*args: Any, **named: Any) -> Any:
            given = _by_name(names, args, named)
            shapes = {
                p.name: tuple(np.shape(given[p.name].numpy() if hasattr(given[p.name], "numpy")
                                       else given[p.name]))
                for p in open_inputs(main)
            }  # fmt: skip
            key = tuple(shapes.values())
            if key not in known:
                if len(known) >= MAX_SIZES:
                    known.pop(next(iter(known)))
                fixed = fix_shapes(main, shapes)
                known[key] = self._runner(mod.update("main", fixed), fixed)
            return known[key](**given)

        return run

    def _staged(self, mod: IRModule, main: Function) -> Callable[..., Any]:
        """Return what compiles the module for the sizes that values of its inputs give."""
        main = infer_type(inline(main, mod))
        if not can_be_staged(main):
            return self._by_references(mod, main)

        def compiled(function: Function) -> Any:
            function = distinct_names(function)
            run = self._compiled(IRModule((("main", function),)), function)
            return lambda values: run(*values)

        stages = Stages(main, compiled)
        names = [p.name for p in main.params]
        types = {p.name: getattr(p.type, "dtype", None) for p in main.params}

        def run(*args: Any, **named: Any) -> Any:
            given = _by_name(names, args, named)
            return stages([_array(given[name], types[name]) for name in names])

        return run

    def _by_references(self, mod: IRModule, main: Function) -> Callable[..., Any]:
        return lambda *args, **named: _wrapped(
            interpret(mod, *_as_asked(main, args), **_as_asked_by_name(main, named))
        )

    def _built(self, mod: IRModule, main: Function) -> tuple[IRModule, Function, Any]:
        """Return the module and its main with their types, and what `relay.build` makes of it."""
        if main.type is None:  # what it calls, and where, tells the rest
            main = infer_type(inline(main, mod))
            mod = mod.update("main", main)
        options = {"executor": Executor("aot")} if self.kind == "aot" else {}
        return mod, main, build(mod, target=self.target, **options)  # type: ignore[arg-type]

    def _compiled(self, mod: IRModule, main: Function) -> Callable[..., Any]:
        mod, main, factory = self._built(mod, main)
        module = graph_executor.GraphModule(factory["default"](self.device))
        names = [p.name for p in main.params]

        def run(*args: Any, **named: Any) -> Any:
            for name, value in _by_name(names, args, named).items():
                module.set_input(name, value)
            module.run()
            numbers = iter(range(module.get_num_outputs()))
            type_, nest = (
                _result_type(main),
                list if self.kind in ("graph", "aot") else tuple_object,
            )
            return _as_typed(type_, lambda: array(module.get_output(next(numbers))), nest)

        return run


def _has_own_types(mod: IRModule, main: Function) -> bool:
    """Return whether values are of the user's own types, for which there are no references."""
    if not dtypes.any_custom():
        return False
    order = post_order(infer_type(inline(main, mod)))
    leaves = (leaf for e in order if e.type is not None for leaf in _tensors(e.type))
    return any(dtypes.is_custom(leaf.dtype) for leaf in leaves)


def _tensors(type_: Type) -> Sequence[TensorType]:
    return flatten(type_) if isinstance(type_, TensorType | TupleType) else ()


def _is_unbounded(main: Function) -> bool:
    """Return whether an input has a size of which nothing tells how large it may be."""
    extents: list[Any] = [
        d for p in open_inputs(main) for t in flatten(p.checked_type) for d in t.shape
    ]
    return any(is_open(d) and (d is ANY or d.high is None) for d in extents)


def _calls_itself(mod: IRModule, main: Function) -> bool:
    """Return whether a branch decides if a function is called again, so that none is inlined."""
    order = post_order(main)
    if not any(isinstance(e, If) for e in order) and not _needs_others(order):
        return False
    try:
        inlined = post_order(inline(main, mod))
    except LoweringError:
        return True
    return any(isinstance(e, If) for e in inlined) and _needs_others(inlined)


def _needs_others(order: Sequence[Expr]) -> bool:
    """Return whether a function is called that is no operator and no kernel."""
    calls = (e.op for e in order if isinstance(e, Call))
    return any(not isinstance(op, Op) and not is_primitive(op) for op in calls)


def _by_name(names: Sequence[str], args: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
    """Return all inputs by name, constants as their arrays.  Raises ExecutionError."""
    given = inputs_by_name(names, args, named)
    return {name: _plain(value) for name, value in given.items()}


def _array(value: Any, dtype: str | None) -> np.ndarray[Any, Any]:
    value = value.numpy() if hasattr(value, "numpy") else value
    return np.asarray(value, None if hasattr(value, "dtype") else dtype)


def _plain(value: Any) -> Any:
    return value.array if isinstance(value, Constant) else value


def _as_typed(
    type_: Type, take: Callable[[], Any], nest: Callable[[Iterable[Any]], Any] = tuple_object
) -> Any:
    """Return the next outputs as the model's type nests them, each tuple by `nest`."""
    if isinstance(type_, TupleType):
        return nest(_as_typed(field, take, nest) for field in type_.fields)
    return take()


def _result_type(main: Function) -> Type:
    return main.body.checked_type


def _wrapped(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple_object(_wrapped(v) for v in value)
    return array(np.asarray(value))


def _as_asked(main: Function, args: Sequence[Any]) -> list[Any]:
    """Return inputs in the dtypes of the parameters, converted as set_input does."""
    return [_fitting(p, a) for p, a in zip(main.params, args, strict=False)] + [
        *args[len(main.params) :]
    ]


def _as_asked_by_name(main: Function, named: Mapping[str, Any]) -> dict[str, Any]:
    known = {p.name: p for p in main.params}
    return {n: _fitting(known[n], v) if n in known else v for n, v in named.items()}


def _fitting(param: Var, value: Any) -> Any:
    value = _plain(value)
    dtype = getattr(param.type, "dtype", None)
    given = getattr(value, "dtype", None)
    if dtype is None or given is None or str(given) == dtype:
        return value
    return converted(f"input {param.name!r}", value, dtype, IN_MODEL).numpy()


def create_executor(
    kind: str = "debug",
    mod: IRModule | Function | Expr | None = None,
    device: AnyDevice | None = None,
    target: TargetLike = "llvm",
    params: Mapping[str, Any] | None = None,
    *,
    ctx: AnyDevice | None = None,
) -> RelayExecutor:
    """Return an executor of `mod` on `device` (once called `ctx`); see the module for the kinds.

    Raises TargetError for an unknown kind.
    """
    device = ctx if device is None else device
    if not isinstance(kind, str) or kind not in KINDS:
        raise TargetError(
            f"there is no executor {kind!r}; use one of {', '.join(KINDS)}."
            f"{did_you_mean(kind, KINDS)}"
        )
    if mod is None:
        mod = IRModule()
    elif not isinstance(mod, IRModule):
        mod = IRModule.from_expr(mod)
    return RelayExecutor(kind, mod, device if device is not None else cpu(0), target, params)
