"""The open dimensions of a model's graph, as its tables have them.

Memory is planned for the upper ends of the ranges: each tensor lies where it would with the largest
extent on each axis.  The executor evaluates the formulas once for each new size.

Inputs tell most sizes, and values the others: `relay.sized` makes an axis as long as a value of the
run says.  The executor sets such a size when the operator that computes the value has run, so that
whatever speaks of the size must come after it, also where no data says so (zeros of that many).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from slipway import dtypes
from slipway.compiler.model_graph import ModelGraph
from slipway.errors import LoweringError
from slipway.ir import expr as E
from slipway.relay.dims import ANY, SymbolDim, is_open, range_text, told_by
from slipway.relay.expr import Call, Expr, Function, Op
from slipway.relay.op_registry import is_call_of, is_primitive
from slipway.relay.ops.checks import normal_axis
from slipway.relay.types import TensorType, TupleType, flatten
from slipway.relay.visit import children, post_order
from slipway.runtime.graph.graph_sizes import MAX_DEPTH, Formula, OpenSize

CONTROL = ("branch", "scan", "while_loop")
_LARGEST = (1 << 31) - 1  # elements of a tensor that kernels index with 32 bits
_TOKENS: Mapping[type, str] = {
    E.Add: "+", E.Sub: "-", E.Mul: "*", E.FloorDiv: "//", E.FloorMod: "%",
    E.Min: "min()", E.Max: "max()",
}  # fmt: skip


def largest_shape(type_: TensorType) -> tuple[int, ...]:
    """Return a shape with the upper bounds of its open dimensions."""
    return tuple(_upper(d) for d in type_.shape)


def largest_bytes(type_: TensorType) -> int:
    """Return the bytes that a tensor takes at most."""
    size = dtypes.bytes_of(type_.dtype)
    for extent in largest_shape(type_):
        size *= extent
    return size


def _upper(extent: Any) -> int:
    if not is_open(extent):
        return int(extent)
    assert isinstance(extent, SymbolDim)
    assert extent.high is not None  # see `check_open`
    return extent.high


def formula_of(dim: Any) -> Formula:
    """Return the formula of an open dimension in reverse Polish order."""
    assert isinstance(dim, SymbolDim)
    tokens: list[int | str] = []

    def add(node: Any, held: int) -> None:
        """Add what leaves the value of a node on a stack that holds `held` others."""
        if held == MAX_DEPTH:
            raise LoweringError(
                f"the size {dim} of a tensor is a formula of which more than {MAX_DEPTH} values "
                "are held at once, which the runtime does not evaluate: fix one of its dimensions"
            )
        if isinstance(node, E.IntImm):
            tokens.append(node.value)
        elif isinstance(node, E.Var):
            tokens.append(node.name)
        elif isinstance(node, E.Cast):
            add(node.value, held)
        elif type(node) in _TOKENS:
            add(node.a, held)
            add(node.b, held + 1)
            tokens.append(_TOKENS[type(node)])
        else:
            raise LoweringError(f"the size {dim} of a tensor cannot be evaluated on a device")

    add(dim.formula, 0)
    return tuple(tokens)


def open_sizes(
    types: Iterable[TensorType], tellers: Mapping[str, int] | None = None
) -> tuple[OpenSize, ...]:
    """Return the variables in the shapes of `types`, in the order in which they appear.

    `tellers` are the entries that tell those which values decide.
    """
    known = tellers or {}
    found: dict[E.Var, None] = {}
    for type_ in types:
        for extent in type_.shape:
            if isinstance(extent, SymbolDim):
                found.update(dict.fromkeys(extent.variables))
    dims = [SymbolDim(v) for v in found]
    return tuple(OpenSize(str(d), d.low, _upper(d), known.get(str(d))) for d in dims)


def sizes_of(graph: ModelGraph, tellers: Mapping[str, int] | None = None) -> tuple[OpenSize, ...]:
    """Return the open sizes of a model, and the numbers that values of it must be."""
    known = tellers or {}
    exact = (OpenSize(n, e.size, e.size, known.get(n)) for n, e in graph.exact.items())
    return (*open_sizes((t for node in graph.nodes for t in node.types), known), *exact)


def check_open(graph: ModelGraph) -> None:
    """Raise LoweringError for open dimensions that no library can have, with what to do."""
    inputs = [node for node in graph.nodes if not node.function]  # and constants, of fixed sizes
    stated: set[E.Var] = set()
    names: dict[str, SymbolDim] = {}
    for node in graph.nodes:
        for type_ in node.types:
            _check_type(node.layer or node.name, type_)
            for extent in type_.shape:
                if isinstance(extent, SymbolDim):
                    for dim in map(SymbolDim, extent.variables):
                        other = names.setdefault(str(dim), dim)
                        if other is not dim:
                            raise LoweringError(
                                f"two dimensions are called {dim}: {range_text(dim)} and "
                                f"{range_text(other)}. Give one of them another name."
                            )
    for node in inputs:
        for extent in node.types[0].shape:
            variable = told_by(extent)
            if variable is not None:
                stated.add(variable)
    for dim in names.values():
        if dim.formula not in stated and str(dim) not in graph.tellers:
            raise no_input_tells(dim)


def no_input_tells(dim: SymbolDim) -> LoweringError:
    """Return the error for a size that is not known when the inputs' shapes are."""
    return LoweringError(
        f"no input has the dimension {dim} itself or some times, so that its size cannot be told "
        f"from the inputs' shapes: give one of them an axis of Dim({str(dim)!r}, {dim.low}, "
        f"{dim.high})"
    )


def _check_type(where: str, type_: TensorType) -> None:
    count = 1
    for extent in type_.shape:
        if extent is ANY:
            raise LoweringError(
                f"{where!r} gives {type_}, and what the size ? is does not follow from the sizes "
                "of the inputs. Fix a dimension, as in relay.transform.FixShapes, or run the "
                'module with relay.create_executor("vm"), which compiles it for each size.'
            )
        if isinstance(extent, SymbolDim) and extent.high is None:
            raise LoweringError(
                f"{where!r} gives {type_}, and nothing bounds {extent}, for which memory is to be "
                f'planned: give it an upper end, as in Dim("{extent}", {extent.low}, 512)'
            )
        count *= _upper(extent)
    if count > _LARGEST and any(map(is_open, type_.shape)):
        raise LoweringError(
            f"{where!r} gives {type_}, which has up to {count} elements: tensors with open "
            f"dimensions have at most {_LARGEST}. Give a dimension a smaller upper end."
        )


def need_fixed_sizes(graph: ModelGraph, what: str) -> None:
    """Raise LoweringError, with the ways out, where `what` is to hold an open dimension."""
    sizes = sizes_of(graph)
    if sizes:
        listed = ", ".join(f"{s.name} in {s.low}..{s.high}" for s in sizes)
        raise LoweringError(
            f"{what} has fixed sizes, and the model has the open dimension {listed}. Export the "
            "program alone (.o, .a or .tar), whose header has the sizes, compile with "
            'Executor("graph"), or fix the shapes with relay.transform.FixShapes.'
        )


# -- sizes that values decide -------------------------------------------------------------------


def told_size(call: Call) -> tuple[SymbolDim, int] | None:
    """Return the size that a kernel's call brings, and which of its arguments is the value.

    None for a call that brings none.
    """
    body, at = _sized(call)
    if body is None or not isinstance(body.attrs.size, SymbolDim):
        return None
    if at is None:
        raise LoweringError(
            f"relay.sized(...) has a constant for the size {body.attrs.size}: take a slice of so "
            "many entries"
        )
    return body.attrs.size, at


def exact_size(call: Call) -> tuple[str, int, int, int] | None:
    """Return the name, number and axis of a size that is one number, and the argument it is.

    None for a call without one.
    """
    body, at = _sized(call)
    if body is None or isinstance(body.attrs.size, SymbolDim) or at is None:
        return None
    axis = normal_axis(body.attrs.axis, len(flatten(body.checked_type)[0].shape))
    return body.attrs.name or "size", int(body.attrs.size), axis, at


def _sized(call: Call) -> tuple[Call | None, int | None]:
    """Return the `sized` that a kernel's call computes, and which argument its count is."""
    body = call.op.body if is_primitive(call.op) and isinstance(call.op, Function) else call
    if not isinstance(body, Call) or not is_call_of(body, "sized"):
        return None, None
    params = call.op.params if isinstance(call.op, Function) else call.args
    numbers = [i for i, param in enumerate(params) if param is body.args[1]]
    return body, numbers[0] if numbers else None


def brings_inside(function: Function) -> bool:
    """Return whether a region of a kernel (a branch, a loop's body) brings a size."""
    regions = [
        value
        for e in post_order(function.body)
        if isinstance(e, Call) and is_call_of(e, *CONTROL)
        for value in map(e.attrs.__getitem__, e.attrs.keys())
        if isinstance(value, Function)
    ]
    brought = (e for region in regions for e in post_order(region.body) if isinstance(e, Call))
    return any(
        is_call_of(e, "sized") and isinstance(e.attrs.size, SymbolDim) for e in brought
    ) or any(map(brings_inside, regions))


def two_values(size: str) -> LoweringError:
    """Return the error for a size that several values decide."""
    return LoweringError(
        f"the size {size} is that of two values: give each relay.Dim of a relay.sized(...) a name "
        "of its own"
    )


def in_order_of_sizes(order: Sequence[Expr]) -> list[Expr]:
    """Return expressions in their order, but what speaks of a size after what brings it."""
    bringing: dict[E.Var, Expr] = {}
    for expr in order:
        found = told_size(expr) if isinstance(expr, Call) and is_primitive(expr.op) else None
        if found is not None:
            bringing.setdefault(found[0].variables[0], expr)
    if not bringing:
        return list(order)
    made: dict[int, Expr] = {}
    for expr in order:
        pending = [(expr, False)]
        open_now: set[int] = set()
        while pending:
            one, is_ready = pending.pop()
            if id(one) in made:
                continue
            if is_ready:
                made[id(one)] = one
                continue
            if id(one) in open_now:
                raise LoweringError(
                    "the size of a relay.sized(...) depends on values of that size themselves"
                )
            open_now.add(id(one))
            pending.append((one, True))
            pending += [(before, False) for before in _before(one, bringing)]
    return list(made.values())


def _before(expr: Expr, bringing: dict[E.Var, Expr]) -> Iterable[Expr]:
    """Yield what must be computed before an expression."""
    if isinstance(expr, Function | Op):
        return
    yield from (e for e in children(expr) if not isinstance(e, Function | Op))
    for variable in _spoken_of(expr):
        teller = bringing.get(variable)
        if teller is not None and teller is not expr:
            yield teller


def _spoken_of(expr: Expr) -> list[E.Var]:
    """Return the variables in the type of an expression, and in those inside of a kernel."""
    inner = [expr]
    if isinstance(expr, Call) and isinstance(expr.op, Function):
        inner += [e for e in post_order(expr.op.body, into_functions=False) if e.type is not None]
    types = [
        t for e in inner if isinstance(e.type, TensorType | TupleType) for t in flatten(e.type)
    ]
    dims: list[Any] = [d for t in types for d in t.shape if isinstance(d, SymbolDim)]
    return list(dict.fromkeys(v for d in dims for v in d.variables))
