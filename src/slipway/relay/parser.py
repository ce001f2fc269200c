"""Reading relay's text form back: the inverse of `relay.text`.

The grammar (statements end in ";"; comments and classic TVM's ``#[version = "0.0.5"]`` are
dropped)::

    module   = { "def" @name function }  [ #[metadata] json ]
    function = [ "fn" ] "(" { %name ":" type | key "=" value } ")" [ "->" type ] block
    block    = "{" { %name "=" expr ";" | "let" %name "=" expr ";" } expr "}"
    expr     = atom { "." number } { "(" { expr | key "=" value } ")" }
    atom     = %name | @name | operator | function | "(" exprs ")" | number dtype? | True | False
             | "meta[relay.Constant][" i "]" | "if" "(" expr ")" block "else" block
    type     = "Tensor[(" dims ")," dtype "]" | "(" types ")" | "fn" "(" types ")" "->" type
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from slipway.errors import ModelError, SlipwayError, did_you_mean
from slipway.ir.field_types import field_checks
from slipway.ir.function import GlobalVar, IRModule
from slipway.ir.text.serialize import load_json
from slipway.relay import op_registry
from slipway.relay.expr import (
    Call,
    Constant,
    Expr,
    Function,
    If,
    Let,
    Tuple,
    TupleGetItem,
    Var,
)
from slipway.relay.text import METADATA
from slipway.relay.types import ANY, MAX_NESTING, FuncType, TensorType, TupleType, Type

_TOKEN = re.compile(
    r"""(?P<space>\s+|/\*.*?\*/|\#\[version\ *=\ *"[^"]*"\])
      | (?P<arrow>->)
      | (?P<local>%[A-Za-z0-9_./:\-]*[A-Za-z0-9_])
      | (?P<module>@[A-Za-z0-9_.]+)
      | (?P<meta>meta\[relay\.Constant\]\[(\d+)\])
      | (?P<string>"[^"]*"|'[^']*')
      | (?P<number>-?(?:\d+\.?\d*(?:e[+-]?\d+)?|inf|nan)(?![A-Za-z_.]*\()(?:f|u?int\d+|float\d+)?)
      | (?P<word>[A-Za-z_][A-Za-z0-9_.]*)
      | (?P<infix>==|!=|<=|>=|[+*/<>-])
      | (?P<sign>[(){}\[\],:;=.?])""",
    re.VERBOSE | re.DOTALL,
)
# Operators between operands, as old text has them -> (how tightly they bind, the operator).
_INFIX = {
    "*": (3, "multiply"), "/": (3, "divide"), "+": (2, "add"), "-": (2, "subtract"),
    "<": (1, "less"), ">": (1, "greater"), "<=": (1, "less_equal"), ">=": (1, "greater_equal"),
    "==": (1, "equal"), "!=": (1, "not_equal"),
}  # fmt: skip
_NUMBER = re.compile(r"(-?(?:\d+\.?\d*(?:e[+-]?\d+)?|inf|nan))(.*)")


def parse(text: str) -> IRModule | Expr:
    """Read a module (text that starts with "def") or one function or expression.

    Raises ModelError with line and column where the text is no relay, TypeInferenceError where its
    operators do not fit their arguments.
    """
    if not isinstance(text, str):
        raise ModelError(f"the text of a graph is read, not a {type(text).__name__}")
    return _Parser(text).program()


def parse_expr(source: str) -> Expr:
    """Read one function or expression.  Raises ModelError for a whole module."""
    found = parse(source)
    if isinstance(found, IRModule):
        raise ModelError("the text is a module, not an expression: read it with parse")
    return found


_AXES = re.compile(r"([123])d(?:_|$)")  # of nn.conv2d_transpose, nn.max_pool3d


class _Parser:
    def __init__(self, text: str) -> None:
        code, _, data = text.partition(METADATA)
        self.text = code
        self.constants = [Constant(a) for a in load_json(data)] if data.strip() else []
        self.tokens: list[tuple[str, str, int]] = []
        position = 0
        while position < len(code):
            match = _TOKEN.match(code, position)
            if match is None:
                raise self.error(f"{code[position]!r} begins nothing", position)
            kind = match.lastgroup or ""
            if match.group("meta"):
                kind = "meta"
            if kind != "space" and not match.group("space"):
                self.tokens.append((kind, match.group(), position))
            position = match.end()
        self.at = 0
        self.depth = 0
        self.scopes: list[dict[str, Expr]] = [{}]

    # -- tokens ----------------------------------------------------------------------------------

    def error(self, problem: str, position: int | None = None) -> ModelError:
        """The error to raise, with line and column."""
        if position is None:
            position = self.tokens[self.at][2] if self.at < len(self.tokens) else len(self.text)
        line = self.text.count("\n", 0, position) + 1
        column = position - (self.text.rfind("\n", 0, position) + 1) + 1
        return ModelError(f"relay text, line {line}, column {column}: {problem}")

    def peek(self, ahead: int = 0) -> str:
        place = self.at + ahead
        return self.tokens[place][1] if place < len(self.tokens) else ""

    def kind(self) -> str:
        return self.tokens[self.at][0] if self.at < len(self.tokens) else "end"

    def take(self, wanted: str | None = None) -> str:
        found = self.peek()
        if not found or (wanted is not None and found != wanted):
            raise self.error(f"expected {wanted or 'more'!r}, found {found or 'the end'!r}")
        self.at += 1
        return found

    def accept(self, wanted: str) -> bool:
        if self.peek() == wanted:
            self.at += 1
            return True
        return False

    # -- structure -------------------------------------------------------------------------------

    def program(self) -> IRModule | Expr:
        if self.peek() != "def":
            found = self.block_of("") if self.peek() != "fn" else self.expr()
            if self.peek():
                raise self.error(f"{self.peek()!r} follows the end")
            return found
        functions = []
        while self.accept("def"):
            name = self.take().removeprefix("@")
            functions.append((name, self.function()))
        if self.peek():
            raise self.error(f"expected 'def', found {self.peek()!r}")
        return IRModule(tuple(functions))

    def function(self) -> Function:
        self.accept("fn")
        self.take("(")
        params: list[Var] = []
        attrs: list[tuple[str, Any]] = []
        scope: dict[str, Expr] = {}
        while not self.accept(")"):
            if self.kind() == "local":
                name = self.take()
                type_ = self.type() if self.accept(":") else None
                params.append(Var(name[1:], type_))
                scope[name] = params[-1]
            else:
                key = self.take()
                self.take("=")
                attrs.append((key, self.value()))
            self.accept(",")
        result = self.type() if self.accept("->") else None
        self.scopes.append(scope)
        body = self.block()
        self.scopes.pop()
        return Function(tuple(params), body, result, tuple(attrs))

    def block(self) -> Expr:
        self.take("{")
        self.scopes.append({})
        body = self.block_of("}")
        self.scopes.pop()
        self.take("}")
        return body

    def block_of(self, end: str | None) -> Expr:
        """Statements, then the expression that gives the value, up to `end` if that is known."""
        lets: list[tuple[Var, Expr]] = []
        while True:
            if self.accept("let"):
                name = self.take()
                self.take("=")
                value = self.expr()
                variable = Var(name[1:], value.type)
                self.scopes[-1][name] = variable
                lets.append((variable, value))
                self.take(";")
            elif self.kind() == "local" and self.peek(1) == "=":
                name = self.take()
                self.take("=")
                self.scopes[-1][name] = self.expr()
                self.take(";")
            else:
                break
        body = self.expr()
        if end is not None and self.peek() != end:
            raise self.error(f"expected {end or 'the end'!r}, found {self.peek()!r}")
        for variable, value in reversed(lets):
            body = Let(variable, value, body)
        return body

    # -- expressions -----------------------------------------------------------------------------

    @contextmanager
    def inside(self) -> Iterator[None]:
        """What is read in the block is nested in what is being read."""
        self.depth += 1
        if self.depth > MAX_NESTING:
            raise self.error(f"this is nested more than {MAX_NESTING} deep")
        yield
        self.depth -= 1

    def expr(self, least: int = 1) -> Expr:
        """An expression, with the operators that bind at least so tightly."""
        with self.inside():
            found = self.one_expr()
            while self.kind() == "infix" and _INFIX[self.peek()][0] >= least:
                level, name = _INFIX[self.take()]
                found = op_registry.make(name)(found, self.expr(level + 1))
            return found

    def one_expr(self) -> Expr:
        found: Any = self.atom()
        while True:
            if self.peek() == "." and not isinstance(found, str):
                self.take(".")
                found = TupleGetItem(found, self.integer())
            elif self.peek() == "(":
                found = self.call(found)
            else:
                break
        if isinstance(found, str):
            return self.definition(found).op
        return found  # type: ignore[no-any-return]

    def call(self, callee: Any) -> Expr:
        self.take("(")
        args: list[Expr] = []
        attrs: dict[str, Any] = {}
        while not self.accept(")"):
            if self.kind() == "word" and self.peek(1) == "=":
                key = self.take()
                self.take("=")
                attrs[key] = self.value()
            else:
                args.append(self.expr())
            self.accept(",")
        if not isinstance(callee, str):
            return Call(callee, tuple(args))
        definition = self.definition(callee)
        made = self.attributes(definition, attrs)
        return Call(definition.op, tuple(args), made)

    def definition(self, name: str) -> op_registry.OpDefinition:
        try:
            return op_registry.get(name)
        except op_registry.UnknownOperator as error:
            raise self.error(str(error)) from None

    def attributes(self, definition: op_registry.OpDefinition, given: dict[str, Any]) -> Any:
        """The operator's record of attributes, each of its type."""
        kind = definition.attrs_type
        known = () if kind is None else kind.FIELDS
        for name in given:
            if name not in known:
                raise self.error(
                    f"{definition.name} has no attribute {name!r}.{did_you_mean(name, known)}"
                )
        if kind is None:
            return None
        axes = _AXES.search(definition.name)
        padding = given.get("padding")
        if axes and isinstance(padding, tuple) and len(padding) in (1, int(axes[1])):
            # One amount for all sides, or one for both sides of each axis.
            given = {**given, "padding": padding * (2 * int(axes[1]) // len(padding))}
        for name, fits in field_checks(kind):
            if name in given and not fits(given[name]):
                raise self.error(f"{name} of {definition.name} cannot be {given[name]!r}")
        try:
            return kind(**given)
        except (TypeError, ValueError) as error:  # an attribute without a default is missing
            if isinstance(error, SlipwayError):
                raise
            raise self.error(f"the attributes of {definition.name}: {error}") from None

    def atom(self) -> Any:
        kind, text = self.kind(), self.peek()
        match kind:
            case "local":
                return self.local()
            case "module":
                return GlobalVar(self.take()[1:])
            case "meta":
                number = int(self.take().rpartition("[")[2][:-1][:9])
                if number >= len(self.constants):
                    raise self.error(
                        f"{text} is not in the metadata: print with show_meta_data=True"
                    )
                return self.constants[number]
            case "number":
                return self.number(self.take())
            case "word" if text in ("True", "False"):
                return Constant(np.asarray(self.take() == "True"))
            case "word" if text == "fn":
                return self.function()
            case "word" if text == "let":
                return self.block_of(None)
            case "word" if text == "if":
                return self.choice()
            case "word":
                return self.take()
        if text == "(":
            return self.tuple_expr()
        raise self.error(f"expected an expression, found {text or 'the end'!r}")

    def local(self) -> Expr:
        name = self.take()
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        # %3.0 is the field of %3, unless a variable has that name.
        base, dot, index = name.rpartition(".")
        if dot and index.isdigit():
            for scope in reversed(self.scopes):
                if base in scope:
                    return TupleGetItem(scope[base], int(index))
        self.at -= 1
        raise self.error(f"{name} is not defined")

    def tuple_expr(self) -> Tuple:
        self.take("(")
        fields = []
        while not self.accept(")"):
            fields.append(self.expr())
            self.accept(",")
        return Tuple(tuple(fields))

    def choice(self) -> If:
        self.take("if")
        self.take("(")
        condition = self.expr()
        self.take(")")
        then = self.block()
        self.take("else")
        return If(condition, then, self.block())

    def integer(self) -> int:
        """A whole number of at most 18 digits, not negative."""
        text = self.take()
        if not re.fullmatch(r"[0-9]{1,18}", text):
            self.at -= 1
            raise self.error(f"expected a whole number, found {text!r}")
        return int(text)

    def number(self, text: str) -> Constant:
        match = _NUMBER.fullmatch(text)
        assert match is not None
        digits, suffix = match.groups()
        whole = re.fullmatch(r"-?\d+", digits) is not None
        dtype = {"f": "float32", "": "int32" if whole else "float32"}.get(suffix, suffix)
        try:
            return Constant(np.asarray(int(digits) if whole else float(digits), dtype))
        except (OverflowError, ValueError, TypeError) as error:
            self.at -= 1
            raise self.error(f"{text} is no number of type {dtype}: {error}") from None

    def value(self) -> Any:
        """An attribute's value: a number, a string, None, a truth value, a list, or a function."""
        with self.inside():
            return self.one_value()

    def one_value(self) -> Any:
        if self.peek() == "fn":
            return self.function()
        text = self.take()
        if text == "[":
            items = []
            while not self.accept("]"):
                with self.inside():
                    items.append(self.value())
                self.accept(",")
            return tuple(items)
        if text in ("None", "True", "False"):
            return {"None": None, "True": True, "False": False}[text]
        if text[0] in "\"'":
            return text[1:-1]
        try:
            return int(text) if re.fullmatch(r"-?[0-9]+", text) else float(text)
        except ValueError:
            self.at -= 1
            raise self.error(f"{text!r} is not an attribute's value") from None

    # -- types -----------------------------------------------------------------------------------

    def type(self) -> Type:
        with self.inside():
            return self.one_type()

    def one_type(self) -> Type:
        if self.accept("Tensor"):
            self.take("[")
            self.take("(")
            dims = []
            while not self.accept(")"):
                dims.append(ANY if self.accept("?") else self.integer())
                self.accept(",")
            self.take(",")
            dtype = self.take()
            self.take("]")
            return TensorType(tuple(dims), dtype)
        if self.accept("fn"):
            arguments = self.types()
            self.take("->")
            with self.inside():
                return FuncType(arguments, self.type())
        return TupleType(self.types())

    def types(self) -> tuple[Type, ...]:
        self.take("(")
        found = []
        while not self.accept(")"):
            with self.inside():
                found.append(self.type())
            self.accept(",")
        return tuple(found)
