"""The base of every IR object: immutable records with generic printing, comparison and rewriting.

A node class is declared like a dataclass and decorated with `@node`::

    @node
    class Add(BinaryOp):
        "a + b; same dtype on both sides, wraps on overflow."

The decorator gives it ``__slots__``, a fast constructor, `FIELDS` (names in order),
``__match_args__`` for `match` statements, and registers it by class name, so that printing,
`structural_equal`, `save_json` and every walker in `ir.visit` serve it without further code.
Walkers look for nodes in `INNER`, the fields that are not annotated as plain values.
A class that needs checks on construction defines ``__post_init__``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar, dataclass_transform

from slipway.lazy import Late

N = TypeVar("N", bound="Node")

NODE_CLASSES: dict[str, type[Node]] = {}
# Values in fields that are no nodes, and stand where integers do: name in JSON -> class, which has
# `record`, what it is made of, and is made by a call with that.
INTEGER_LIKE: dict[str, type[Any]] = {}
_MISSING = object()
_NO_NODES = {"str", "int", "float", "bool", "tuple[int, ...]"}


class Writers(Late, package="slipway.ir"):
    """How nodes are written, which only modules that know all of them can tell."""

    to_text: Callable[[Node], str]
    astext: Callable[[Any, bool], str]
    save_json: Callable[[Any], str]
    load_json: Callable[[str], Any]
    script: Callable[[Any], str]


WRITERS = Writers()


class Node:
    """Base class of all IR objects.  Nodes are immutable; equality is identity."""

    __slots__ = ("__weakref__", "_below", "_depth")
    _below: tuple[Node, ...]  # its children, once `ir.visit` has asked for them
    _depth: int  # how many nodes lie inside each other from here on, once it has asked for that
    FIELDS: ClassVar[tuple[str, ...]] = ()
    INNER: ClassVar[tuple[str, ...]] = ()  # the fields that may hold nodes, by their annotations
    KIND: ClassVar[str] = (
        "Node"  # the name in JSON: the class name, or a dotted one given in the class
    )

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(
            f"{type(self).__name__} is immutable: make a changed copy with node.replace({name}=...)"
        )

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable")

    def __copy__(self) -> Node:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Node:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return WRITERS.load_json, (WRITERS.save_json(self),)

    def replace(self, **changes: Any) -> Any:
        """Return a copy with the given fields changed; `self` when no value is a new object."""
        values = [changes.pop(name, _MISSING) for name in self.FIELDS]
        if changes:
            raise TypeError(f"{type(self).__name__} has no field {next(iter(changes))!r}")
        old = [getattr(self, name) for name in self.FIELDS]
        new = [o if v is _MISSING else v for o, v in zip(old, values, strict=True)]
        if all(o is n for o, n in zip(old, new, strict=True)):
            return self
        return type(self)(*new)

    def same_as(self, other: object) -> bool:
        """Return whether the other is this very object."""
        return self is other

    def find_below(self) -> tuple[Node, ...]:
        """Return the nodes directly inside, in field order.

        Written for a class when it is first asked for, as few of all classes are.
        """
        cls = _declared(type(self))
        cls.find_below = _finder(cls.INNER)  # type: ignore[method-assign]
        return cls.find_below(self)

    def mapped(self, function: Callable[[Node], Node]) -> Any:
        """Return a copy with what `function` gives for each node inside; `self` if all stay."""
        cls = _declared(type(self))
        cls.mapped = _mapper(cls.FIELDS, cls.INNER)  # type: ignore[method-assign]
        return cls.mapped(self, function)

    def __str__(self) -> str:
        return WRITERS.to_text(self)

    def __repr__(self) -> str:
        return str(self)

    def astext(self, show_meta_data: bool = True) -> str:
        """Return the readable text form: ``str(node)``, and the values of large constants after it.

        What that of a graph is, `relay.fromtext` reads.
        """
        return WRITERS.astext(self, show_meta_data)


# Tuples of a class of their own whose nodes are below the node that holds them, as a tuple's are.
WALKED: set[type[tuple[Any, ...]]] = set()


def _collect(values: tuple[Any, ...], found: list[Node]) -> None:
    for value in values:
        if isinstance(value, Node):
            found.append(value)
        elif type(value) is tuple or type(value) in WALKED:
            _collect(value, found)


def _mapped(value: Any, function: Callable[[Node], Node]) -> Any:
    if type(value) is not tuple and type(value) not in WALKED:
        return value
    changed = False
    mapped = []
    for item in value:  # a loop: walks that recurse bear deeper nesting than with a generator
        new = function(item) if isinstance(item, Node) else _mapped(item, function)
        changed = changed or new is not item
        mapped.append(new)
    return tuple(mapped) if changed else value


keep_below: Callable[[Node, tuple[Node, ...]], None] = Node.__dict__["_below"].__set__
keep_depth: Callable[[Node, int], None] = Node.__dict__["_depth"].__set__


def register_object(type_key: Any = None) -> Any:
    """Let `load_json` know a node class of a script's own by a name, its own without one.

    A decorator, with or without the name; a class that is no `Node` comes back as it is, for it
    needs none here.
    """

    def entered(cls: type) -> type:
        if issubclass(cls, Node):
            NODE_CLASSES[type_key if isinstance(type_key, str) else cls.__name__] = cls
            if isinstance(type_key, str):
                cls.KIND = type_key
        return cls

    return entered(type_key) if isinstance(type_key, type) else entered


def _constructor(cls: type, names: list[str], defaults: dict[str, Any]) -> Any:
    """Generate ``__init__``: one slot write per field, through descriptors kept as locals."""
    parameters, closure, body = [], {}, []
    for name in names:
        closure[f"_set_{name}"] = getattr(cls, name).__set__
        if name in defaults:
            closure[f"_default_{name}"] = defaults[name]
            parameters.append(f"{name}=_default_{name}")
        else:
            parameters.append(name)
        body.append(f"    _set_{name}(self, {name})")
    if hasattr(cls, "__post_init__"):
        body.append("    self.__post_init__()")
    source = f"def __init__(self, {', '.join(parameters)}):\n" + ("\n".join(body) or "    pass")
    scope: dict[str, Any] = {}
    exec(source, closure, scope)
    return scope["__init__"]


_FIRST_FIND, _FIRST_MAP = Node.find_below, Node.mapped


def _declared(cls: type[Node]) -> type[Node]:
    """Return the class that declares the fields of `cls`: itself, or one that it derives from."""
    return next(c for c in cls.__mro__ if "FIELDS" in c.__dict__)


def _written(lines: list[str]) -> Any:
    """Return the function `made` that `lines` define."""
    scope: dict[str, Any] = {"Node": Node, "collect": _collect, "mapped": _mapped, "walked": WALKED}
    exec("\n    ".join(lines), scope)
    return scope["made"]


def _finder(inner: tuple[str, ...]) -> Any:
    """Write `find_below`: a tuple at once where each field holds a node, else field by field."""
    if not inner:
        return _written(["def made(self):", "return ()"])
    values = [f"v{number}" for number in range(len(inner))]
    lines = ["def made(self):"]
    lines += [f"{v} = self.{name}" for v, name in zip(values, inner, strict=True)]
    lines += [
        f"if {' and '.join(f'isinstance({v}, Node)' for v in values)}:",
        f"    return ({', '.join(values)},)",
        "found = []",
    ]
    for v in values:
        lines += [
            f"if isinstance({v}, Node): found.append({v})",
            f"elif type({v}) is tuple or type({v}) in walked: collect({v}, found)",
        ]
    return _written([*lines, "return tuple(found)"])


def _mapper(names: tuple[str, ...], inner: tuple[str, ...]) -> Any:
    """Write `mapped`, of a class with the fields `names`, of which `inner` may hold nodes."""
    if not inner:
        return _written(["def made(self, function):", "return self"])
    lines = ["def made(self, function):"]
    fresh = {name: f"n{number}" for number, name in enumerate(inner)}
    for name, new in fresh.items():
        lines += [
            f"{new}_old = self.{name}",
            f"{new} = function({new}_old) if isinstance({new}_old, Node) "
            f"else mapped({new}_old, function)",
        ]
    values = ", ".join(fresh.get(name, f"self.{name}") for name in names)
    lines += [
        f"if {' and '.join(f'{new} is {new}_old' for new in fresh.values())}:",
        "    return self",
        f"return self.__class__({values})",
    ]
    return _written(lines)


@dataclass_transform(frozen_default=True, eq_default=False)
def node(cls: type[N]) -> type[N]:
    """Class decorator: turn annotated fields into an immutable slotted node class."""
    own = list(inspect.get_annotations(cls))
    own = [n for n in own if not str(cls.__annotations__[n]).startswith("ClassVar")]
    inherited = [n for n in cls.FIELDS if n not in own]
    names = inherited + own
    defaults = dict(getattr(cls, "_DEFAULTS", {}))
    defaults.update({n: cls.__dict__[n] for n in own if n in cls.__dict__})
    body = {k: v for k, v in cls.__dict__.items() if k not in own}
    body.pop("__dict__", None)
    body.pop("__weakref__", None)
    body["__slots__"] = tuple(n for n in own if not hasattr(cls, n) or n in defaults)
    body["FIELDS"] = tuple(names)
    plain = {n for n in own if str(cls.__annotations__[n]) in _NO_NODES}
    plain |= set(inherited) - set(cls.INNER)
    body["INNER"] = tuple(n for n in names if n not in plain)
    body["_DEFAULTS"] = defaults
    body["__match_args__"] = tuple(names)
    metaclass: Any = type(cls)
    made: Any = metaclass(cls.__name__, cls.__bases__, body)
    made.__qualname__ = cls.__qualname__
    made.__init__ = _constructor(made, names, defaults)
    made.find_below, made.mapped = _FIRST_FIND, _FIRST_MAP  # not those of a base
    made.KIND = cls.__dict__.get("KIND", cls.__name__)
    NODE_CLASSES[made.KIND] = made
    return made  # type: ignore[no-any-return]
