"""What a program takes for granted of its open sizes, checked over their ranges.

torch.export refuses a range that it cannot prove its own assumptions for.  Where it can leave them
in the program as assertions, they are evaluated here for the sizes of the ranges.  Most of those
that some size breaks change nothing (that an axis is longer than 1), others mean another branch of
the module: at such sizes the program, without its assertions, is compared with the module itself.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from slipway.errors import ModelError

ASSERTION = "_assert_scalar"
# A range up to here is looked at whole, and its ends and powers of two where it is larger.
WHOLE = 1024
# Sizes of several dimensions are combined up to here; beyond, each goes with the others' ends.
MOST = 4096
# How many sizes that break one assertion are compared, and how closely.
COMPARED, CLOSE = 4, 1e-3

Sizes = dict[Any, Any]  # torch's own integers, by its symbols


def export_with_assertions(torch: Any, module: Any, examples: Sequence[Any], dynamic: Any) -> Any:
    """Export a module whose assumptions torch cannot prove; None where this torch has no such way.

    Raises ModelError where a size in range breaks one, and the module gives something else there.
    """
    option = "prefer_deferred_runtime_asserts_over_guards"
    if option not in inspect.signature(torch.export.export).parameters:
        return None
    with _no_size_apart(torch):
        program = torch.export.export(
            module, tuple(examples), dynamic_shapes=dynamic, strict=False, **{option: True}
        )
    ranges = {s: b for s, b in program.range_constraints.items() if not str(s).startswith("u")}
    compared: list[Sizes] = []
    for why, sizes in (*_small(ranges), *_breaking(program, ranges)):
        if sizes in compared:
            continue
        compared.append(sizes)
        if not _same(torch, module, program, examples, {**_usual(ranges), **sizes}):
            at = ", ".join(f"{symbol} = {size}" for symbol, size in sizes.items())
            raise ModelError(
                f"the module does something else at {at}, where {why}: give a smaller range, or "
                "compile those sizes apart"
            )
    return program


def _no_size_apart(torch: Any) -> AbstractContextManager[object]:
    """Let torch take no length of 1 for a case of its own, which it does of every formula."""
    config = torch.fx.experimental._config
    option = "backed_size_oblivious"
    return config.patch(**{option: True}) if hasattr(config, option) else nullcontext()


def _small(ranges: Mapping[Any, Any]) -> Iterator[tuple[str, Sizes]]:
    """Yield the smallest sizes, where what is computed of them may be 1, and why they are here."""
    for symbol, bounds in ranges.items():
        for size in _values(bounds)[:COMPARED]:
            yield "an axis may have one element", {symbol: size}


def _breaking(program: Any, ranges: Mapping[Any, Any]) -> Iterator[tuple[str, Sizes]]:
    """Yield some sizes that break each assertion, and what it says."""
    for assertion in _assertions(program):
        broken = list(_broken(assertion, ranges))
        for sizes in broken[:: max(1, len(broken) // COMPARED)]:
            yield f"{assertion} does not hold", sizes


def _assertions(program: Any) -> Iterator[Any]:
    """Yield torch's formulas of what a program asserts of its sizes."""
    for node in program.graph.nodes:
        if node.op != "call_function" or ASSERTION not in str(node.target):
            continue
        value = node.args[0].meta.get("val") if hasattr(node.args[0], "meta") else node.args[0]
        formula = getattr(getattr(value, "node", None), "expr", None)
        if hasattr(formula, "free_symbols"):
            yield formula


def _broken(formula: Any, ranges: Mapping[Any, Any]) -> Iterator[Sizes]:
    """Yield the sizes in range for which a formula does not hold; none for one of values."""
    symbols = sorted(formula.free_symbols, key=str)
    if not symbols or any(symbol not in ranges for symbol in symbols):
        return
    for sizes in _combinations([ranges[symbol] for symbol in symbols]):
        found = formula.xreplace(dict(zip(symbols, sizes, strict=True)))
        if found == False:  # noqa: E712 - of sympy, which may leave it open
            yield dict(zip(symbols, sizes, strict=True))


def _usual(ranges: Mapping[Any, Any]) -> Sizes:
    return {s: v[min(3, len(v) - 1)] for s, v in ((s, _values(b)) for s, b in ranges.items())}


def _same(torch: Any, module: Any, program: Any, examples: Sequence[Any], sizes: Sizes) -> bool:
    """Return whether a program gives what its module does for inputs of some sizes."""
    plain = program.module(check_guards=False)
    for node in list(plain.graph.nodes):
        if node.op == "call_function" and ASSERTION in str(node.target):
            plain.graph.erase_node(node)
    plain.graph.eliminate_dead_code()
    plain.recompile()
    inputs = _inputs(torch, program, examples, sizes)
    try:
        with torch.no_grad():
            wanted = torch.utils._pytree.tree_leaves(module(*(x.clone() for x in inputs)))
            found = torch.utils._pytree.tree_leaves(plain(*(x.clone() for x in inputs)))
    except Exception:  # of a module that refuses these sizes, or a program that cannot
        return False
    return len(found) == len(wanted) and all(
        a.shape == b.shape and torch.allclose(a.double(), b.double(), CLOSE, CLOSE, equal_nan=True)
        for a, b in zip(found, wanted, strict=True)
        if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor)
    )


def _inputs(torch: Any, program: Any, examples: Sequence[Any], sizes: Sizes) -> list[Any]:
    """Return inputs of the given sizes: numbers, and zeros for integers, which index everything."""
    specs = program.graph_signature.input_specs
    nodes = [node for node in program.graph.nodes if node.op == "placeholder"]
    given = [n for n, spec in zip(nodes, specs, strict=True) if spec.kind.name == "USER_INPUT"]
    made = []
    for node, example in zip(given, examples, strict=True):
        shape = [
            d if isinstance(d, int) else int(d.node.expr.xreplace(sizes))
            for d in node.meta["val"].shape
        ]
        floating = example.dtype.is_floating_point
        made.append((torch.randn(shape) if floating else torch.zeros(shape)).to(example.dtype))
    return made


def _combinations(bounds: list[Any]) -> Iterator[tuple[Any, ...]]:
    """Yield sizes to look at, all together where they are few."""
    values = [_values(b) for b in bounds]
    count = 1
    for several in values:
        count *= len(several)
    if count <= MOST:
        yield from itertools.product(*values)
        return
    ends = [(several[0], several[-1]) for several in values]
    for position, several in enumerate(values):
        for others in itertools.product(*(e for i, e in enumerate(ends) if i != position)):
            for value in several:
                yield (*others[:position], value, *others[position:])


def _values(bounds: Any) -> list[Any]:
    low = int(bounds.lower)
    try:
        high = int(bounds.upper)
    except (OverflowError, TypeError, ValueError):
        high = 1 << 31
    if high - low < WHOLE:
        return [bounds.lower + n for n in range(high - low + 1)]
    powers = [p + d for p in (1 << n for n in range(32)) for d in (-1, 0, 1)]
    chosen = {low, low + 1, high - 1, high, *range(low, low + 64), *powers}
    return [bounds.lower + (n - low) for n in sorted(chosen) if low <= n <= high]
