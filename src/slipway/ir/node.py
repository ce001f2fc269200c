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
_MISSING = object()
_NO_NODES = {"str", "int", "float", "bool", "tuple[int, ...]"}


class Writers(Late, package="slipway.ir"):
    """How nodes are written, which only modules that know all of them can tell."""

    to_text: Callable[[Node], str]
    save_json: Callable[[Any], str]
    load_json: Callable[[str], Any]
    script: Callable[[Any], str]


WRITERS = Writers()


class Node:
    """Base class of all IR objects.  Nodes are immutable; equality is identity."""

    __slots__ = ("__weakref__", "_below")
    _below: tuple[Node, ...]  # its children, once `ir.visit` has asked for them
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

    def __str__(self) -> str:
        return WRITERS.to_text(self)

    def __repr__(self) -> str:
        return str(self)

    def astext(self, show_meta_data: bool = True) -> str:
        """Return the readable text form, the same as ``str(node)`` (the classic name)."""
        return str(self)


keep_below: Callable[[Node, tuple[Node, ...]], None] = Node.__dict__["_below"].__set__


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
    made.KIND = cls.__dict__.get("KIND", cls.__name__)
    NODE_CLASSES[made.KIND] = made
    return made  # type: ignore[no-any-return]
