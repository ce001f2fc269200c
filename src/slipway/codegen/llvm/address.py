"""Index arithmetic: linear forms in pointer width, with the constant part kept apart.

Indices never wrap (an out-of-range index is an error of the program), so they are computed in
pointer width with nsw.  Each index is split into ``sum(coefficient * atom) + constant``; the sum
and the address made of it are shared by all accesses with the same atoms, which leaves
``base + constant`` addresses in unrolled code.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from slipway import dtypes
from slipway.ir import expr as E
from slipway.ir.visit import walk

if TYPE_CHECKING:
    from slipway.codegen.llvm.expressions import ExpressionEmitter

_VECTOR = re.compile(r"<(\d+) x (\w+)>$")

# (constant, ((atom id, coefficient), ...)) with the atoms sorted by depth, then by first use.
Linear = tuple[int, tuple[tuple[int, int], ...]]


class Addresses:
    """Linear forms of index expressions and the code that evaluates them."""

    def __init__(self, emitter: ExpressionEmitter) -> None:
        self.emitter = emitter
        self.atoms: dict[int, E.PrimExpr] = {}
        self.order: dict[int, int] = {}  # of atoms: first use; ids would differ from run to run
        self.depth: dict[int, int] = {}  # of variables: loops around their definition
        self.fickle: set[int] = set()  # atoms that read memory: never used again
        self._memo: dict[int, tuple[E.PrimExpr, Linear]] = {}
        self.word = f"i{emitter.capability.pointer_bits}"

    def linear(self, index: E.PrimExpr) -> Linear:
        """Return the linear form of a scalar index."""
        found = self._memo.get(id(index))
        if found is None:
            found = (index, self._linear(index))
            self._memo[id(index)] = found
        return found[1]

    def _linear(self, index: E.PrimExpr) -> Linear:
        kind = type(index)
        if kind is E.IntImm:
            return index.value, ()  # type: ignore[attr-defined]
        if kind is E.Add:
            return self._sum(self.linear(index.a), self.linear(index.b), 1)  # type: ignore[attr-defined]
        if kind is E.Sub:
            return self._sum(self.linear(index.a), self.linear(index.b), -1)  # type: ignore[attr-defined]
        if kind is E.Mul:
            a, b = self.linear(index.a), self.linear(index.b)  # type: ignore[attr-defined]
            if not a[1]:
                a, b = b, a
            if not b[1]:
                return scaled(a, b[0])
        if kind is E.Cast and dtypes.is_int(index.dtype) and dtypes.bits_of(index.dtype) >= 32:
            inner = index.value  # type: ignore[attr-defined]
            if dtypes.is_int(inner.dtype) and dtypes.bits_of(inner.dtype) >= 32:
                return self.linear(inner)
        self.atoms[id(index)] = index
        self.order.setdefault(id(index), len(self.order))
        if id(index) not in self.depth:
            self.depth[id(index)] = 1000
            if any(isinstance(n, (E.BufferLoad, E.Call)) for n in walk(index)):
                self.fickle.add(id(index))
        return 0, ((id(index), 1),)

    def _sum(self, a: Linear, b: Linear, sign: int) -> Linear:
        if not b[1]:
            return a[0] + sign * b[0], a[1]
        if not a[1] and sign == 1:
            return a[0] + b[0], b[1]
        terms = dict(a[1])
        for atom, coefficient in b[1]:
            terms[atom] = terms.get(atom, 0) + sign * coefficient
        kept = [(atom, c) for atom, c in terms.items() if c]
        depth, order = self.depth, self.order
        kept.sort(key=lambda term: (depth.get(term[0], 1000), order[term[0]]))
        return a[0] + sign * b[0], tuple(kept)

    def value(self, form: Linear) -> str:
        """Emit the value of a linear form; return the operand."""
        total = self.terms(form[1])
        if form[0] == 0:
            return total
        if total == "0":
            return str(form[0])
        return self.emitter.w.put(f"add nsw {self.word} {total}, {form[0]}")

    def terms(self, terms: tuple[tuple[int, int], ...]) -> str:
        """Emit the sum of coefficient * atom, outer loops' terms first, so that it hoists."""
        if not terms:
            return "0"
        w = self.emitter.w
        key = ("sum", terms)
        known = w.known(key)
        if known is not None:
            return known
        atom, coefficient = terms[-1]
        part = self._atom(atom)
        if coefficient != 1:
            scaled_key = ("scaled", atom, coefficient)
            product = w.known(scaled_key)
            if product is None:
                product = w.put(f"mul nsw {self.word} {part}, {coefficient}")
                if atom not in self.fickle:
                    w.remember(scaled_key, product)
            part = product
        if len(terms) > 1:
            before = self.terms(terms[:-1])
            part = w.put(f"add nsw {self.word} {before}, {part}")
        if self.fickle and any(term[0] in self.fickle for term in terms):
            return part
        return w.remember(key, part)

    def _atom(self, atom: int) -> str:
        """Emit an atom in pointer width; so is a product of two that are not known."""
        node = self.atoms[atom]
        if not isinstance(node, E.Mul) or not dtypes.is_int(node.dtype):
            return self.emitter.wide(node)
        key = ("product", atom)
        known = self.emitter.w.known(key)
        if known is None:
            a, b = (self.value(self.linear(x)) for x in (node.a, node.b))
            known = self.emitter.w.put(f"mul nsw {self.word} {a}, {b}")
            if atom not in self.fickle:
                self.emitter.w.remember(key, known)
        return known

    def pointer(self, data: str, element: str, size: int, form: Linear) -> str:
        """Emit the address of element `form` (of LLVM type `element`, `size` bytes) of `data`."""
        w = self.emitter.w
        base, element = data, in_steps(element)
        if self.fickle and any(term[0] in self.fickle for term in form[1]):
            total = self.value(form)
            return w.put(f"getelementptr inbounds {element}, ptr {data}, {self.word} {total}")
        if form[1]:
            key = ("base", data, size, form[1])
            known = w.known(key)
            if known is None:
                total = self.terms(form[1])
                known = w.put(f"getelementptr inbounds {element}, ptr {data}, {self.word} {total}")
                w.remember(key, known)
            base = known
        if form[0] == 0:
            return base
        spot = ("at", base, size * form[0])
        known = w.known(spot)
        if known is None:
            known = w.put(f"getelementptr inbounds i8, ptr {base}, {self.word} {size * form[0]}")
            w.remember(spot, known)
        return known


def in_steps(element: str) -> str:
    """Return a type of the bytes that an element of a buffer takes.

    LLVM takes a vector of three lanes for one of four where it lies beside others; buffers have
    their elements, whose lanes may be any number, without a gap.
    """
    found = _VECTOR.match(element)
    return element if found is None else f"[{found[1]} x {found[2]}]"


def scaled(form: Linear, factor: int) -> Linear:
    """Return factor * form."""
    if factor == 0:
        return 0, ()
    return form[0] * factor, tuple((atom, c * factor) for atom, c in form[1])
