"""Functions and modules: what passes take and give."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from slipway.errors import ArgumentTypeError, LoweringError
from slipway.ir.buffer import Buffer
from slipway.ir.expr import Var
from slipway.ir.node import NODE_CLASSES, WALKED, WRITERS, Node, node
from slipway.ir.stmt import Stmt


class BaseFunc(Node):
    """Base of PrimFunc (loops) and relay.Function (graphs)."""

    __slots__ = ()
    attrs: tuple[tuple[str, Any], ...]

    def attr(self, key: str, default: Any = None) -> Any:
        """Return the attribute `key`, or `default`."""
        return next((value for name, value in self.attrs if name == key), default)

    def with_attr(self, key: str | Mapping[str, Any], value: Any = None) -> Any:
        """Return a copy of this function with attribute `key` set, or all of a dictionary."""
        given = dict(key) if isinstance(key, Mapping) else {key: value}
        given = {{"tir.noalias": "noalias"}.get(name, name): v for name, v in given.items()}
        kept = tuple(pair for pair in self.attrs if pair[0] not in given)
        return self.replace(attrs=(*kept, *given.items()))

    def without_attr(self, key: str) -> Any:
        """Return a copy of this function without an attribute."""
        key = {"tir.noalias": "noalias"}.get(key, key)
        return self.replace(attrs=tuple(pair for pair in self.attrs if pair[0] != key))


def _pairs(given: Any) -> Any:
    """Return the pairs of a mapping; of None, none."""
    return given.items() if isinstance(given, Mapping) else given or ()


class FunctionAttrs(tuple[tuple[str, Any], ...]):
    """The (name, value) pairs of a function's attributes, which also read like a mapping."""

    __slots__ = ()

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, str):
            return tuple.__getitem__(self, key)
        for name, value in self:
            if name == key:
                return value
        names = ", ".join(name for name, _ in self) or "none"
        raise KeyError(f"the function has no attribute {key!r}; it has: {names}")

    def __getattr__(self, key: str) -> Any:
        if any(name == key for name, _ in self):
            return self[key]
        raise AttributeError(f"the function has no attribute {key!r}")

    def __contains__(self, key: object) -> bool:
        return any(key in (name, (name, value)) for name, value in self)

    def get(self, key: str, default: Any = None) -> Any:
        """Return the attribute `key`, or `default`."""
        return next((value for name, value in self if name == key), default)

    def keys(self) -> list[str]:
        """Return the names."""
        return [name for name, _ in self]

    def values(self) -> list[Any]:
        """Return the values."""
        return [value for _, value in self]

    def items(self) -> list[tuple[str, Any]]:
        """Return (name, value) pairs."""
        return list(self)


class BufferMap(tuple[tuple[Var, Buffer], ...]):
    """The (handle, buffer) pairs of a function of loops, which also read like a mapping."""

    __slots__ = ()

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, Var):
            return tuple.__getitem__(self, key)
        for handle, buffer in self:
            if handle is key:
                return buffer
        raise KeyError(f"{key.name!r} is no handle of the function")

    def __contains__(self, key: object) -> bool:
        return any(handle is key for handle, _ in self) or tuple.__contains__(self, key)

    def get(self, key: Var, default: Buffer | None = None) -> Buffer | None:
        """Return the buffer passed at a handle, or `default`."""
        return next((buffer for handle, buffer in self if handle is key), default)

    def keys(self) -> list[Var]:
        """Return the handles."""
        return [handle for handle, _ in self]

    def values(self) -> list[Buffer]:
        """Return the buffers."""
        return [buffer for _, buffer in self]

    def items(self) -> list[tuple[Var, Buffer]]:
        """Return (handle, buffer) pairs."""
        return list(self)


WALKED.add(BufferMap)


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

    def __post_init__(self) -> None:
        if type(self.attrs) is not FunctionAttrs:
            object.__setattr__(self, "attrs", FunctionAttrs(_pairs(self.attrs)))
        if type(self.buffer_map) is not BufferMap:
            object.__setattr__(self, "buffer_map", BufferMap(_pairs(self.buffer_map)))
        if not any(isinstance(getattr(p, "buffer", p), Buffer) for p in self.params):
            return
        params, bound = [], list(self.buffer_map)
        for param in self.params:  # a buffer in the place of its handle (the classic form)
            buffer = getattr(param, "buffer", param)
            if isinstance(buffer, Buffer):
                param = Var(f"{buffer.name}_handle", "handle")
                bound.append((param, buffer))
            params.append(param)
        object.__setattr__(self, "params", tuple(params))
        object.__setattr__(self, "buffer_map", BufferMap(bound))

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

    def script(self, *_: object, **__: Any) -> str:
        """Return the function as TVMScript; there are no options."""
        return WRITERS.script(self)

    def show(self, *_: object, **__: Any) -> None:
        """Print the function as TVMScript; there are no options."""
        print(self.script())


@node
class GlobalVar(Node):
    """The name of a function in a module, with its type where that is known.

    Two are equal that have one name, known type or not.
    """

    IS_PROGRAM: ClassVar[bool] = True  # callable, but an argument to functions as it is
    name: str
    function_type: Any = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GlobalVar) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)

    @property
    def name_hint(self) -> str:
        """The name (the classic spelling)."""
        return self.name

    def __call__(self, *args: Any) -> Any:
        """Return the call of this function of the module."""
        return NODE_CLASSES["relay.Call"](self, args)  # type: ignore[call-arg]


class FunctionPair(tuple[str, BaseFunc]):
    """A (name, function) of a module; where its name is asked for, it is that, as a GlobalVar is.

    So ``for name in mod.functions: mod[name]`` of classic scripts reads what it did.
    """

    __slots__ = ()

    @property
    def name(self) -> str:
        """The name of the function."""
        return self[0]

    name_hint = name


class FunctionPairs(tuple[FunctionPair, ...]):
    """The (name, function) pairs of a module, which also reads like a mapping."""

    __slots__ = ()

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, (str, GlobalVar, FunctionPair)):
            return tuple.__getitem__(self, key)
        name = _function_name(key)
        for known, function in self:
            if known == name:
                return function
        raise KeyError(f"the module has no function {name!r}")

    def __contains__(self, key: object) -> bool:
        if not isinstance(key, (str, GlobalVar, FunctionPair)):
            return tuple.__contains__(self, key)
        return any(known == _function_name(key) for known, _ in self)

    def get(self, key: str | GlobalVar, default: Any = None) -> Any:
        """Return the function of a name, or `default`."""
        try:
            return self[key]
        except KeyError:
            return default

    def keys(self) -> list[GlobalVar]:
        """Return the names."""
        return [GlobalVar(name) for name, _ in self]

    def values(self) -> list[BaseFunc]:
        """Return the functions."""
        return [function for _, function in self]

    def items(self) -> list[tuple[GlobalVar, BaseFunc]]:
        """Return (name, function) pairs."""
        return [(GlobalVar(name), function) for name, function in self]


def _function_name(key: Any) -> str:
    return key.name if isinstance(key, (GlobalVar, FunctionPair)) else str(key)


@node
class IRModule(Node):
    """Functions by name, loops and graphs alike.

    Passes return new modules.  ``module["f"] = function`` and `update` with another module change
    this one, as scripts of classic TVM expect; the compiler never does that.
    """

    functions: tuple[tuple[str, BaseFunc], ...] = ()
    attrs: tuple[tuple[str, Any], ...] = ()

    def __post_init__(self) -> None:
        if type(self.functions) is not FunctionPairs:
            given = self.functions
            pairs = given.items() if isinstance(given, Mapping) else given or ()
            table = FunctionPairs(FunctionPair((_function_name(k), value)) for k, value in pairs)
            object.__setattr__(self, "functions", table)

    @staticmethod
    def from_functions(functions: Mapping[str, BaseFunc]) -> IRModule:
        """Make a module of named functions."""
        return IRModule(tuple(functions.items()))

    @staticmethod
    def from_expr(
        expr: Any, functions: Mapping[Any, BaseFunc] | None = None, type_defs: object | None = None
    ) -> IRModule:
        """Make a module whose "main" is a relay expression or any function.

        A relay expression that is no function becomes one over its free variables.  `functions`
        are further ones, by name.  Raises LoweringError for `type_defs`: there are no data types.
        """
        if type_defs:
            raise LoweringError(
                "IRModule.from_expr: relay here has no data types to define (type_defs); use tuples"
            )
        name = "main"
        if isinstance(expr, BaseFunc):
            name = str(expr.attr("global_symbol", "main"))
        elif isinstance(expr, Node) and hasattr(expr, "as_function"):
            expr = expr.as_function()
        else:
            raise ArgumentTypeError(
                f"a module is made of a relay expression or of a function, not of {expr!r:.80}"
            )
        others = tuple((_function_name(key), f) for key, f in (functions or {}).items())
        return IRModule(((name, expr), *others))

    def __getitem__(self, name: str | GlobalVar | FunctionPair) -> BaseFunc:
        key = _function_name(name)
        for known, function in self.functions:
            if known == key:
                return function
        only = self.functions[0][1] if len(self.functions) == 1 else None
        if key == "main" and isinstance(only, PrimFunc):
            return only  # what TVM up to 0.10 called "main", whatever its symbol
        names = ", ".join(n for n, _ in self.functions) or "none"
        raise KeyError(f"the module has no function {key!r}; it has: {names}")

    def __setitem__(self, name: str | GlobalVar | FunctionPair, function: Any) -> None:
        if not isinstance(function, BaseFunc):
            function = function.as_function()
        made = self.update(_function_name(name), function)
        object.__setattr__(self, "functions", made.functions)

    def update_func(self, name: str | GlobalVar | FunctionPair, function: BaseFunc) -> None:
        """Put a function into this module, as ``module[name] = function`` does."""
        self[name] = function

    def __contains__(self, name: object) -> bool:
        key = _function_name(name)
        return any(known == key for known, _ in self.functions)

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in self.functions)

    def items(self) -> tuple[tuple[str, BaseFunc], ...]:
        """Return (name, function) pairs in order of definition."""
        return tuple(self.functions)

    def update(
        self, name: str | GlobalVar | IRModule, function: BaseFunc | None = None
    ) -> IRModule:
        """Return a module in which `name` is `function`, replaced in place or added at the end.

        With another module in place of a name, its functions are put into this one.
        """
        if isinstance(name, IRModule):
            for key, value in name.functions:
                self[key] = value
            return self
        name = _function_name(name)
        assert function is not None
        if name in self:
            pairs = tuple((n, function if n == name else f) for n, f in self.functions)
            return self.replace(functions=pairs)  # type: ignore[no-any-return]
        return self.replace(  # type: ignore[no-any-return]
            functions=(*self.functions, (name, function))
        )

    def with_attr(self, key: str, value: Any) -> IRModule:
        """Return a module with attribute `key` set."""
        kept = tuple(pair for pair in self.attrs if pair[0] != key)
        return self.replace(attrs=(*kept, (key, value)))  # type: ignore[no-any-return]

    def get_attr(self, key: str) -> Any:
        """Return an attribute of the module, or None."""
        return next((value for name, value in self.attrs if name == key), None)

    def get_global_var(self, name: str) -> GlobalVar:
        """Return the GlobalVar of a function.  Raises KeyError when there is none."""
        self[name]
        return GlobalVar(name)

    def script(self, *_: object, **__: Any) -> str:
        """Return the functions as TVMScript; there are no options.  LoweringError for graphs."""
        return WRITERS.script(self)

    def show(self, *_: object, **__: Any) -> None:
        """Print the module: as TVMScript where it holds functions of loops alone."""
        loops = all(isinstance(function, PrimFunc) for _, function in self.functions)
        print(self.script() if loops else self)

    def get_global_vars(self) -> list[GlobalVar]:
        """Return the names of all functions."""
        return [GlobalVar(name) for name, _ in self.functions]
