"""Functions and modules: what passes take and give."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from slipway.ir.buffer import Buffer
from slipway.ir.expr import Var
from slipway.ir.node import Node, node
from slipway.ir.stmt import Stmt


class BaseFunc(Node):
    """Base of PrimFunc (loops) and relay.Function (graphs)."""

    __slots__ = ()
    attrs: tuple[tuple[str, Any], ...]

    def attr(self, key: str, default: Any = None) -> Any:
        """Return the attribute `key`, or `default`."""
        return next((value for name, value in self.attrs if name == key), default)

    def with_attr(self, key: str, value: Any) -> Any:
        """Return a copy of this function with attribute `key` set."""
        kept = tuple(pair for pair in self.attrs if pair[0] != key)
        return self.replace(attrs=(*kept, (key, value)))


@node
class PrimFunc(BaseFunc):
    """A loop function.

    `params` are scalars and "handle" Vars; `buffer_map` pairs each handle parameter with the
    Buffer that describes the tensor passed there.  Attributes in use: "global_symbol" (the
    exported name), "target" (a Target), "noalias" (bool: buffers never overlap).
    """

    params: tuple[Var, ...]
    body: Stmt
    buffer_map: tuple[tuple[Var, Buffer], ...] = ()
    attrs: tuple[tuple[str, Any], ...] = ()

    def buffer_of(self, param: Var) -> Buffer | None:
        """Return the Buffer passed at `param`, or None for a scalar."""
        return next((buffer for var, buffer in self.buffer_map if var is param), None)

    @property
    def name(self) -> str:
        """The exported name; "main" when none was given."""
        return str(self.attr("global_symbol", "main"))

    def with_body(self, new_body: Stmt) -> PrimFunc:
        """Return this function with another body."""
        return self.replace(body=new_body)  # type: ignore[no-any-return]

    def script(self, *_: Any, **__: Any) -> str:
        """Return the function as TVMScript; there are no options."""
        return _script(self)


@node
class GlobalVar(Node):
    """The name of a function in a module."""

    name: str


@node
class IRModule(Node):
    """Functions by name, loops and graphs alike.  Immutable: `update` returns a new module."""

    functions: tuple[tuple[str, BaseFunc], ...] = ()
    attrs: tuple[tuple[str, Any], ...] = ()

    def __post_init__(self) -> None:
        if isinstance(self.functions, Mapping):  # as classic scripts write a module
            given = self.functions.items()
            pairs = tuple((k.name if isinstance(k, GlobalVar) else str(k), f) for k, f in given)
            IRModule.functions.__set__(self, pairs)  # type: ignore[attr-defined]

    @staticmethod
    def from_functions(functions: Mapping[str, BaseFunc]) -> IRModule:
        """Make a module of named functions."""
        return IRModule(tuple(functions.items()))

    @staticmethod
    def from_expr(expr: Any) -> IRModule:
        """Make a module whose "main" is a relay expression or any function.

        A relay expression that is no function becomes one over its free variables.
        """
        if isinstance(expr, BaseFunc):
            name = expr.attr("global_symbol", "main")
            return IRModule(((str(name), expr),))
        return IRModule((("main", expr.as_function()),))

    def __getitem__(self, name: str | GlobalVar) -> BaseFunc:
        key = name.name if isinstance(name, GlobalVar) else name
        for known, function in self.functions:
            if known == key:
                return function
        names = ", ".join(n for n, _ in self.functions) or "none"
        raise KeyError(f"the module has no function {key!r}; it has: {names}")

    def __contains__(self, name: str) -> bool:
        return any(known == name for known, _ in self.functions)

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in self.functions)

    def items(self) -> tuple[tuple[str, BaseFunc], ...]:
        """Return (name, function) pairs in order of definition."""
        return self.functions

    def update(self, name: str, function: BaseFunc) -> IRModule:
        """Return a module in which `name` is `function`, replaced in place or added at the end."""
        if name in self:
            pairs = tuple((n, function if n == name else f) for n, f in self.functions)
            return self.replace(functions=pairs)  # type: ignore[no-any-return]
        return self.replace(  # type: ignore[no-any-return]
            functions=(*self.functions, (name, function))
        )

    def script(self, *_: Any, **__: Any) -> str:
        """Return the functions as TVMScript; there are no options.  LoweringError for graphs."""
        return _script(self)

    def get_global_vars(self) -> list[GlobalVar]:
        """Return the names of all functions."""
        return [GlobalVar(name) for name, _ in self.functions]


def _script(node: Any) -> str:
    from slipway.ir.script_text import script  # which takes functions apart

    return script(node)
