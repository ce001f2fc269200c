"""Reading relay's text form back: the inverse of `relay.text.printer`.

The grammar (statements end in ";"; comments are dropped)::

    text     = [ #[version = "0.0.5"] ] ( module | function | body )
    module   = { "def" @name function }  [ #[metadata] json ]
    function = [ "fn" ] "(" { %name ":" type | key "=" value } ")" [ "->" type ] block
    block    = "{" body "}"
    body     = { %name "=" expr ";" | "let" %name [ ":" type ] "=" expr ";"
               | "free_var" %name [ ":" type ] ";" | expr ";" } expr
    expr     = { "-" } atom { "." number | "(" { expr | key "=" value } ")" }, and + - * / < == ...
    atom     = %name | @name | operator | function | "(" expr ")" | "(" exprs ")" | number dtype?
             | True | False | "meta[relay.Constant][" i "]" | "if" "(" expr ")" block "else" block
    type     = "Tensor[(" dims ")," dtype "]" | dtype | "(" types ")" | "fn" "(" types ")" "->" type
             | "_" (which is left open)
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from slipway.errors import GraphTextError, SlipwayError, did_you_mean
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
from slipway.relay.op_registry import as_expr
from slipway.relay.text.printer import METADATA
from slipway.relay.text.tokens import error_at, number, tokens, without_comments
from slipway.relay.types import ANY, MAX_NESTING, FuncType, TensorType, TupleType, Type

# The versions that classic TVM has written at the head of its texts; the first ones wrote v0.0.4.
VERSIONS = tuple(f"0.0.{n}" for n in range(1, 6))
# Operators between operands, as old text has them -> (how tightly they bind, the operator).
_INFIX = {
    "*": (4, "multiply"), "/": (4, "divide"), "+": (3, "add"), "-": (3, "subtract"),
    "<": (2, "less"), ">": (2, "greater"), "<=": (2, "less_equal"), ">=": (2, "greater_equal"),
    "==": (1, "equal"), "!=": (1, "not_equal"),
}  # fmt: skip


def parse(
    source: str, source_name: str = "from_string", init_module: IRModule | None = None,
    init_meta_table: Mapping[str, Sequence[Any]] | None = None,
) -> IRModule | Expr:  # fmt: skip
    """Read a module (text that starts with "def") or one function or expression.

    Functions of `init_module` are a part of the module; `init_meta_table` holds the constants of
    "relay.Constant" where the text brings none.  `source_name` names the text in errors.  Raises
    GraphTextError with line and column where the text is no relay, TypeInferenceError where its
    operators do not fit their arguments.
    """
    if not isinstance(source, str):
        raise GraphTextError(f"the text of a graph is read, not a {type(source).__name__}")
    return _Parser(source, source_name, init_meta_table or {}).program(init_module)


def fromtext(data: str, source_name: str = "from_string") -> IRModule | Expr:
    """Read a module, a function or an expression, as `parse` does (the classic spelling)."""
    return parse(data, source_name)


def parse_expr(source: str) -> Expr:
    """Read one function or expression.  Raises GraphTextError for a whole module."""
    found = parse(source)
    if isinstance(found, IRModule):
        raise GraphTextError("the text is a module, not an expression: read it with parse")
    return found


_AXES = re.compile(r"([123])d(?:_|$)")  # of nn.conv2d_transpose, nn.max_pool3d


class _Parser:
    def __init__(self, text: str, name: str, table: Mapping[str, Sequence[Any]]) -> None:
        code, _, data = text.partition(METADATA)
        self.name = name
        self.text = without_comments(code)
        given = [as_expr(c) for c in table.get("relay.Constant", ())]
        self.constants = self._metadata(data) if data.strip() else given
        self.tokens = list(tokens(self.text))
        self.at = 0
        self.depth = 0
        self.scopes: list[dict[str, Expr]] = [{}]

    def _metadata(self, data: str) -> list[Constant]:
        arrays = load_json(data)
        if isinstance(arrays, list | tuple) and all(isinstance(a, np.ndarray) for a in arrays):
            return [Constant(array) for array in arrays]
        raise GraphTextError(f"{self.name}: the metadata behind the text is no list of arrays")

    # -- tokens ----------------------------------------------------------------------------------

    def error(self, problem: str, position: int | None = None) -> GraphTextError:
        """The error to raise, with line and column."""
        if position is None:
            position = self.tokens[self.at][2] if self.at < len(self.tokens) else len(self.text)
        return error_at(self.text, problem, position, self.name)

    def peek(self, ahead: int = 0) -> str:
        position = self.at + ahead
        return self.tokens[position][1] if position < len(self.tokens) else ""

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

    def version(self) -> None:
        """Pass over the version at the head of the text; a later one may mean something else."""
        if self.kind() != "version":
            return
        found = re.sub(r'^v|^[^"]*"|"[^"]*$', "", self.peek())
        if found not in VERSIONS:
            raise self.error(
                f"the text is of version {found!r}, and those from {VERSIONS[0]} to {VERSIONS[-1]} "
                "are read here: write it again as one of them (classic TVM's mod.astext() does)"
            )
        self.at += 1

    def program(self, init: IRModule | None) -> IRModule | Expr:
        self.version()
        if self.peek() in ("type", "extern"):
            raise self.error("algebraic data types are not there: use tuples")
        if self.peek() != "def" and (self.peek() or init is None):
            found = self.block_of("") if self.peek() != "fn" else self.expr()
            if self.peek():
                raise self.error(f"{self.peek()!r} follows the end")
            return found
        functions = dict(init.items()) if init is not None else {}
        while self.accept("def"):
            if self.kind() != "module":
                raise self.error(f"expected a name as @main, found {self.peek()!r}")
            if (name := self.peek().removeprefix("@")) in functions:
                raise self.error(f"there are two functions called @{name}")
            self.take()
            functions[name] = self.function()
        if self.peek():
            raise self.error(f"expected 'def', found {self.peek()!r}")
        return IRModule(tuple(functions.items()))

    def function(self) -> Function:
        self.accept("fn")
        if self.peek() == "[":
            raise self.error("functions have no type parameters here: write the types out")
        self.take("(")
        params: list[Var] = []
        attrs: list[tuple[str, Any]] = []
        scope: dict[str, Expr] = {}
        while not self.accept(")"):
            if self.kind() == "local":
                params.append(self.declared())
                scope[f"%{params[-1].name}"] = params[-1]
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
                variable = self.declared()
                self.take("=")
                name = f"%{variable.name}"
                if self.peek() == "fn" and variable.type_annotation is not None:
                    self.scopes[-1][name] = variable  # it may call itself
                value = self.expr()
                if variable.type_annotation is None:
                    variable = Var(variable.name, value.type)
                self.scopes[-1][name] = variable
                lets.append((variable, value))
            elif self.accept("free_var"):
                variable = self.declared()
                self.scopes[-1][f"%{variable.name}"] = variable
            elif self.kind() == "local" and self.peek(1) == "=":
                name = self.take()
                self.take("=")
                self.scopes[-1][name] = self.expr()
            else:
                body = self.expr()
                if self.peek() != ";" or end is None:
                    break
                lets.append((Var("_", body.type), body))  # computed, and not used
            self.take(";")
        if end is not None and self.peek() != end:
            raise self.error(f"expected {end or 'the end'!r}, found {self.peek()!r}")
        for variable, value in reversed(lets):
            body = Let(variable, value, body)
        return body

    def declared(self) -> Var:
        """A variable, with the type that stands behind it."""
        if self.kind() != "local":
            raise self.error(f"expected a variable as %x, found {self.peek() or 'the end'!r}")
        name = self.take()[1:]
        return Var(name, self.type() if self.accept(":") else None)

    # -- expressions -----------------------------------------------------------------------------

    @contextmanager
    def inside(self) -> Iterator[None]:
        """What is read in the block is nested in what is being read."""
        self.depth += 1
        if self.depth > MAX_NESTING:
            raise self.error(f"this is nested more than {MAX_NESTING} deep")
        yield
        self.depth -= 1

    def expr(self, precedence: int = 1) -> Expr:
        """An expression, with the operators that bind at least so tightly."""
        with self.inside():
            found = self.one_expr()
            while self.kind() == "infix" and _INFIX[self.peek()][0] >= precedence:
                level, name = _INFIX[self.take()]
                found = op_registry.make(name)(found, self.expr(level + 1))
            return found

    def one_expr(self) -> Expr:
        if self.accept("-"):
            if self.kind() == "number":
                return self.number("-")
            with self.inside():
                inner = self.one_expr()
            if isinstance(inner, Constant) and inner.array.dtype.kind in "if":
                return Constant(-inner.array)
            return op_registry.make("negative")(inner)  # type: ignore[no-any-return]
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
                if not text.startswith("meta[relay.Constant]"):
                    raise self.error("meta[...] is for constants: meta[relay.Constant][0]")
                number = int(self.take().rpartition("[")[2][:-1][:9])
                if number >= len(self.constants):
                    raise self.error(
                        f"{text} is not in the metadata: print with show_meta_data=True"
                    )
                return self.constants[number]
            case "number":
                return self.number()
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

    def tuple_expr(self) -> Expr:
        self.take("(")
        fields, comma = [], False
        while not self.accept(")"):
            fields.append(self.expr())
            comma = self.accept(",")
        return fields[0] if len(fields) == 1 and not comma else Tuple(tuple(fields))

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

    def number(self, sign: str = "") -> Constant:
        text = self.take()
        try:
            return Constant(number(sign + text))
        except (OverflowError, ValueError, TypeError) as error:
            self.at -= 1
            raise self.error(f"{sign + text} is not a number here: {error}") from None

    def value(self) -> Any:
        """An attribute's value: a number, a string, None, a truth value, a list, or a function."""
        with self.inside():
            return self.one_value()

    def one_value(self) -> Any:
        if self.peek() == "fn":
            return self.function()
        text = self.take()
        if text == "-" and self.kind() == "number":
            text += self.take()
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

    def type(self) -> Type | None:
        with self.inside():
            return self.one_type()

    def one_type(self) -> Type | None:
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
                return FuncType(arguments, self.whole_type())
        if self.accept("_"):
            return None
        if self.kind() == "word":
            if self.peek() == "ref":
                raise self.error("references are not there: models are functions")
            return TensorType((), self.take())
        return TupleType(self.types())

    def whole_type(self) -> Type:
        """A type inside of another, where "_" cannot stand."""
        found = self.type()
        if found is None:
            raise self.error("a type inside of another cannot be left open")
        return found

    def types(self) -> tuple[Type, ...]:
        self.take("(")
        found = []
        while not self.accept(")"):
            with self.inside():
                found.append(self.whole_type())
            self.accept(",")
        return tuple(found)
