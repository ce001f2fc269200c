"""Reading a Python function as a function of loops.

Statements are taken apart here; an expression is evaluated as Python, in which variables are nodes
whose operators build expressions.  What decides (``and``, ``if else``, chains of comparisons) is
rewritten first, since Python would ask the nodes for a truth value.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from slipway.arith.analyzer import Analyzer
from slipway.errors import ModelError, SlipwayError
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.buffer import Buffer
from slipway.ir.calls import ret
from slipway.ir.expr import Call, IterVar, PrimExpr, Range, StringImm, Var
from slipway.ir.function import PrimFunc
from slipway.ir.visit import walk
from slipway.script import marks, tir
from slipway.script.decisions import CALLS, decided
from slipway.script.parts import Part, part_of
from slipway.transform.loop.lower_blocks import ATTRIBUTE


def parse_function(function: Callable[..., Any]) -> PrimFunc:
    """Return a Python function that is written with `slipway.script.tir` as a PrimFunc.

    Raises ModelError with file and line for what is no part of the language.
    """
    try:
        lines, first = inspect.getsourcelines(function)
        file = inspect.getsourcefile(function) or function.__code__.co_filename
    except (OSError, TypeError):
        raise ModelError(
            f"the source of {getattr(function, '__name__', function)!r} cannot be read: write the "
            "function in a file, or give its text to tvm.script.from_source"
        ) from None
    tree = ast.parse(textwrap.dedent("".join(lines)))
    ast.increment_lineno(tree, first - 1)
    (definition,) = tree.body
    assert isinstance(definition, ast.FunctionDef)
    names = {**function.__globals__, **_enclosing(function)}
    try:
        return _Reader(file, names, function.__annotations__).function(definition)
    except RecursionError:
        raise ModelError(
            f"{definition.name!r} has expressions or statements inside each other, more than "
            "Python can read: give parts names of their own"
        ) from None


def _enclosing(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the variables around a function, but for those that have no value yet."""
    found = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with suppress(ValueError):
            found[name] = cell.cell_contents
    return found


class _Block:
    """A block under construction."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.axes: list[IterVar] = []
        self.bindings: list[PrimExpr] = []
        self.predicate: PrimExpr = ops.TRUE
        self.init: S.Stmt | None = None
        self.annotations: tuple[tuple[str, Any], ...] = ()
        self.regions: dict[str, list[Buffer]] = {"reads": [], "writes": []}


class _Reader:
    def __init__(self, file: str, names: dict[str, Any], types: dict[str, Any]) -> None:
        self.file = file
        self.types = types  # of parameters, as Python has found them
        self.names = {**names, **CALLS,
                      "range": tir.serial, "max": tir.max, "min": tir.min}  # fmt: skip
        self.params: list[Var] = []
        self.buffer_map: list[tuple[Var, Buffer]] = []
        self.attrs: dict[str, Any] = {}
        self.blocks: list[_Block] = []
        self.block_names: set[str] = set()
        self.loops: dict[int, PrimExpr] = {}  # of a loop variable: its extent
        self.threads: dict[int, str] = {}  # of a variable of T.env_thread: its tag

    def error(self, node: ast.AST, problem: str) -> ModelError:
        return ModelError(f"{self.file}, line {getattr(node, 'lineno', 0)}: {problem}")

    # -- the function ----------------------------------------------------------------------------

    def function(self, node: ast.FunctionDef) -> PrimFunc:
        for argument in node.args.args:
            if argument.arg == "self":
                continue
            self._parameter(argument)
        body = self.statements(node.body)
        attrs = {"global_symbol": node.name, **self.attrs}
        attrs.pop("from_legacy_te_schedule", None)  # what printed the text says of itself
        attrs = {{"tir.noalias": "noalias"}.get(k, k): v for k, v in attrs.items()}
        attrs.setdefault("noalias", True)
        if self.block_names:
            attrs[ATTRIBUTE] = True
        return PrimFunc(tuple(self.params), body, tuple(self.buffer_map), tuple(attrs.items()))

    def _parameter(self, argument: ast.arg) -> None:
        if argument.annotation is None:
            raise self.error(argument, f"the parameter {argument.arg!r} needs a type: T.handle, "
                             'T.Buffer((8,), "float32"), T.int32')  # fmt: skip
        # What only a type speaks of, Python does not keep for the function: its value is there.
        kind = self.types.get(argument.arg)
        if kind is None:
            kind = self.value(argument.annotation)
        if isinstance(kind, str):  # written by `from __future__ import annotations`
            kind = self.value(ast.parse(kind, mode="eval").body)
        if isinstance(kind, Buffer):
            buffer = self._named(kind, argument.arg)
            handle = Var(argument.arg, "handle")
            self.buffer_map.append((handle, buffer))
            self.params.append(handle)
            self.names[argument.arg] = buffer
            return
        dtype = getattr(kind, "dtype", None)
        if not isinstance(dtype, str):
            raise self.error(argument, f"{argument.arg!r} has no type of T's: {kind!r}")
        var = Var(argument.arg, dtype)
        self.params.append(var)
        self.names[argument.arg] = var

    @staticmethod
    def _named(buffer: Buffer, name: str) -> Buffer:
        made = buffer.replace(name=name, data=Var(name, "handle"))
        if isinstance(made.elem_offset, Var) and made.elem_offset.name == "elem_offset":
            made = made.replace(elem_offset=Var(f"{name}_elem_offset"))
        return made  # type: ignore[no-any-return]

    # -- expressions -----------------------------------------------------------------------------

    def value(self, node: ast.expr) -> Any:
        """Evaluate an expression as Python, over nodes."""
        tree = ast.Expression(decided(ast.parse(ast.unparse(node), mode="eval").body))
        try:
            return eval(compile(ast.fix_missing_locations(tree), self.file, "eval"), self.names)
        except SlipwayError as error:
            raise self.error(node, str(error)) from error
        except Exception as error:
            raise self.error(
                node, f"{ast.unparse(node)}: {type(error).__name__}: {error}"
            ) from error

    def expression(self, node: ast.expr) -> PrimExpr:
        """Evaluate to an expression of the loop language."""
        found = self.value(node)
        try:
            return ops.as_expr(found)
        except (TypeError, ValueError, SlipwayError):
            raise self.error(node, f"{ast.unparse(node)} is no value of a program") from None

    # -- statements ------------------------------------------------------------------------------

    def statements(self, nodes: list[ast.stmt]) -> S.Stmt:
        """Return statements in order; what stands for the rest of its block wraps what follows."""
        parts: list[S.Stmt] = []
        for position, node in enumerate(nodes):
            wrapper = self._wrapper(node)
            if wrapper is not None:
                return S.seq([*parts, wrapper(self.statements(nodes[position + 1 :]))])
            parts.append(self.statement(node))
        return S.seq(parts)

    def _wrapper(self, node: ast.stmt) -> Callable[[S.Stmt], S.Stmt] | None:
        """Return how a statement wraps the rest of its block; None where it does not."""
        if isinstance(node, ast.Assert):
            condition = self.expression(node.test)
            text = str(self.value(node.msg)) if node.msg is not None else "assertion failed"
            return lambda rest: S.AssertStmt(condition, StringImm(text), rest)
        if isinstance(node, ast.Expr) and _says(node.value, "launch_thread", "attr"):
            return self._around(node, self.value(node.value), None)
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            target, right = node.target, node.value
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            target, right = node.targets[0], node.value
        else:
            return None
        if right is None:
            raise self.error(node, f"{target.id!r} gets no value")
        found = self._part(target.id, right) or self.value(right)
        if isinstance(found, marks.Allocated | marks.Launched):
            return self._around(node, found, target.id)
        if isinstance(found, (PrimExpr, int, float)) and not isinstance(found, Var | bool):
            value = ops.as_expr(found)
            var = self.names[target.id] = Var(target.id, value.dtype)
            return lambda rest: S.LetStmt(var, value, rest)
        self._bind(node, target.id, found)
        return lambda rest: rest

    def _around(self, node: ast.stmt, found: Any, name: str | None) -> Callable[[S.Stmt], S.Stmt]:
        """Return how threads, a note or memory that is opened wraps what it is for."""
        if isinstance(found, marks.Mark) and found.kind == "attr":
            about, key, value = found.values
            return lambda body: S.AttrStmt(key, about, value, body)
        if isinstance(found, marks.Launched):
            tag = self.threads.get(id(found.thread), found.thread)
            if not isinstance(tag, str):
                raise self.error(node, "T.launch_thread takes what T.env_thread names, or a tag: "
                                 '"threadIdx.x"')  # fmt: skip
            extent = ops.as_extent(found.extent)
            var = Var(tag, extent.dtype) if found.thread is tag else found.thread
            if name is not None:
                self.names[name] = var
            self.loops[id(var)] = extent
            axis = IterVar(Range.of(extent), var, "thread", tag)
            zero = ops.const(0, var.dtype)
            return lambda body: S.For(var, zero, extent, S.ForKind.THREAD, body, axis)
        assert name is not None
        if isinstance(found, marks.Allocated):
            buffer = self.names[name] = self._named(found.buffer, name)
            return lambda body: S.Allocate(buffer, body)
        self.names[name] = self._view(node, name, found)
        return lambda body: body

    def _bind(self, node: ast.stmt, name: str, found: Any) -> None:
        """Give a name to what an assignment makes."""
        if isinstance(found, marks.Matched):
            buffer = self.names[name] = self._named(found.buffer, name)
            if not any(found.param is p for p in self.params):
                raise self.error(node, "T.match_buffer takes a parameter of type T.handle, or a "
                                 "part of a buffer, B[i : i + 4]")  # fmt: skip
            self.buffer_map.append((found.param, buffer))
        elif isinstance(found, marks.BlockAxis):
            self.names[name] = self._axis(node, name, found)
        elif isinstance(found, Buffer):
            self.names[name] = self._view(node, name, found)
        elif isinstance(found, marks.Mark) and found.kind == "var":
            self.names[name] = Var(name, found.values[0])
        elif isinstance(found, marks.Mark) and found.kind == "env_thread":
            var = self.names[name] = Var(name)
            self.threads[id(var)] = found.values[0]
        elif isinstance(found, marks.Mark) and found.kind == "remap" and len(found.values[0]) == 1:
            self._remap(node, [name], found)
        else:
            self.names[name] = found

    def _part(self, name: str, node: ast.expr) -> Part | None:
        """Return the part of a buffer that T.match_buffer names; None for any other expression."""
        match node:
            case ast.Call(
                func=ast.Attribute(attr="match_buffer"), args=[ast.Subscript() as region, *others]
            ):
                pass
            case _:
                return None
        buffer, index = self.value(region.value), region.slice
        if not isinstance(buffer, Buffer):
            raise self.error(node, f"{ast.unparse(region.value)} is no buffer")
        declared = self.value(ast.Call(node.func, [ast.Constant(None), *others], node.keywords))
        picked = [
            slice(*(None if end is None else self.expression(end) for end in (i.lower, i.upper)))
            if isinstance(i, ast.Slice) else self.expression(i)
            for i in (index.elts if isinstance(index, ast.Tuple) else [index])
        ]  # fmt: skip
        try:
            part, meant = part_of(buffer, picked, declared.buffer, name)
        except ModelError as error:
            raise self.error(node, str(error)) from None
        for variable, value in meant:  # T.var: a stride, or where the part begins
            self.names.update({k: value for k, v in self.names.items() if v is variable})
        return part

    def _view(self, node: ast.stmt, name: str, found: Buffer) -> Buffer:
        """Return a buffer that sees memory of another one, or one under a second name."""
        known = [b for b in self.names.values() if isinstance(b, Buffer)]
        if any(found is b for b in known):
            return found
        if not any(found.data is v for v in (*self.params, *(b.data for b in known))):
            raise self.error(node, f"{name!r} has no memory: give it that of another buffer, as "
                             "data=A.data, or allocate it with T.alloc_buffer")  # fmt: skip
        return found.replace(name=name)  # type: ignore[no-any-return]

    def _axis(self, node: ast.stmt, name: str, axis: marks.BlockAxis) -> Var:
        if not self.blocks:
            raise self.error(node, f"the axis {name!r} stands outside of any block")
        begin, end = axis.dom if isinstance(axis.dom, tuple) else (0, axis.dom)
        dom = Range(ops.as_expr(begin), ops.sub(end, begin))
        value = ops.as_expr(axis.value)
        made = IterVar(dom, Var(name, value.dtype), axis.kind)
        self.blocks[-1].axes.append(made)
        self.blocks[-1].bindings.append(value)
        return made.var

    def _remap(self, node: ast.stmt, names: list[str], found: marks.Mark) -> None:
        kinds, values = found.values
        if not len(kinds) == len(values) == len(names):
            raise self.error(node, f"T.axis.remap({kinds!r}, ...) has {len(values)} variables for "
                             f"{len(names)} names")  # fmt: skip
        for name, kind, value in zip(names, kinds, values, strict=True):
            extent = self.loops.get(id(value))
            if extent is None or kind not in ("S", "R"):
                raise self.error(node, f"T.axis.remap takes variables of loops, and a letter S or "
                                 f"R for each: {value} as {kind!r}")  # fmt: skip
            axis = marks.BlockAxis(extent, {"S": "data", "R": "reduce"}[kind], value)
            self.names[name] = self._axis(node, name, axis)

    def statement(self, node: ast.stmt) -> S.Stmt:
        """Return one statement."""
        match node:
            case ast.Assign(targets=[ast.Tuple(elts=elements)]):
                names = [e.id for e in elements if isinstance(e, ast.Name)]
                found = self.value(node.value)
                if isinstance(found, marks.Mark) and found.kind == "remap":
                    self._remap(node, names, found)
                else:
                    for name, one in zip(names, found, strict=True):
                        self._bind(node, name, one)
                return S.NOP
            case ast.Assign(targets=[ast.Subscript() as stored]):
                return self._store(stored, self.value(node.value))
            case ast.AugAssign(target=ast.Subscript() as stored):
                loaded = ast.Subscript(stored.value, stored.slice, ast.Load())
                whole = ast.copy_location(ast.BinOp(loaded, node.op, node.value), node)
                return self._store(stored, self.value(whole))
            case ast.For():
                return self._for(node)
            case ast.With():
                return self._with(node)
            case ast.If():
                other = self.statements(node.orelse) if node.orelse else None
                return S.IfThenElse(self.expression(node.test), self.statements(node.body), other)
            case ast.While():
                return S.While(self.expression(node.test), self.statements(node.body))
            case ast.Expr(value=ast.Constant(value=str())) | ast.Pass():
                return S.NOP
            case ast.Expr(value=ast.Call(func=ast.Attribute(attr="reads" | "writes" as what))):
                return self._regions(node, what)
            case ast.Return(value=ast.expr() as returned):
                return S.Evaluate(ret(self.expression(returned)))
            case ast.Expr():
                return self._said(node, self.value(node.value))
            case _:
                raise self.error(node, f"`{ast.unparse(node).splitlines()[0]}` is no statement of "
                                 "TVMScript here")  # fmt: skip

    def _store(self, target: ast.Subscript, value: Any) -> S.Stmt:
        buffer: Any = self.value(target.value)
        if not isinstance(buffer, Buffer | Part):
            raise self.error(target, f"{ast.unparse(target.value)} is no buffer")
        parts = target.slice.elts if isinstance(target.slice, ast.Tuple) else [target.slice]
        indices = tuple(self._index(part) for part in parts)
        if isinstance(buffer, Part):
            indices = buffer.indices_of(indices)
            buffer = buffer.buffer
        if len(indices) != buffer.ndim:
            raise self.error(target, f"buffer {buffer.name!r} has {buffer.ndim} dimensions, but is "
                             f"indexed with {len(indices)}")  # fmt: skip
        try:
            given = ops.as_expr(value, buffer.dtype)
        except (TypeError, ValueError, SlipwayError) as error:
            raise self.error(target, str(error)) from error
        if given.dtype == "handle":
            raise self.error(target, f"{value!r} is no value of a program")
        if given.lanes == 1:
            given = ops.cast(given, buffer.dtype)
        return S.BufferStore(buffer, given, indices)

    def _index(self, node: ast.expr) -> PrimExpr:
        """Return an index of a store; ``B[4 : 8]`` stores a vector."""
        if not isinstance(node, ast.Slice):
            return ops.as_expr(self.value(node))
        if node.lower is None or node.upper is None or node.step is not None:
            text = ast.unparse(node)
            raise self.error(node, f"a vector is stored at B[begin : end], not at B[{text}]")
        first, end = (self.expression(part) for part in (node.lower, node.upper))
        lanes = ops.as_int(Analyzer().simplify(ops.sub(end, first)))
        if lanes is None or lanes < 1:
            raise self.error(node, f"B[{ast.unparse(node)}] has no known number of elements")
        return first if lanes == 1 else tir.ramp(first, 1, lanes)

    def _said(self, node: ast.Expr, found: Any) -> S.Stmt:
        if isinstance(found, S.Stmt):
            return found
        if isinstance(found, PrimExpr):
            return S.Evaluate(found)
        if isinstance(found, marks.Mark):
            block = self.blocks[-1] if self.blocks else None
            if found.kind == "func_attr":
                self.attrs.update(found.values[0])
                return S.NOP
            if block is not None and found.kind == "where":
                block.predicate = ops.logical_and(block.predicate, found.values[0])
                return S.NOP
            if block is not None and found.kind == "block_attr":
                block.annotations += tuple(found.values[0].items())
                return S.NOP
            if found.kind == "preflattened":
                self._preflattened(node, *found.values)
                return S.NOP
        raise self.error(node, f"`{ast.unparse(node)}` says nothing here")

    def _regions(self, node: ast.Expr, what: str) -> S.Stmt:
        """Keep the buffers that a block says it reads or writes."""
        assert isinstance(node.value, ast.Call)
        given = node.value.args
        if len(given) == 1 and isinstance(given[0], ast.List | ast.Tuple):
            given = given[0].elts
        for region in given:
            named = region.value if isinstance(region, ast.Subscript) else region
            found = self.value(named)
            found = found.buffer if isinstance(found, Part) else found
            if not isinstance(found, Buffer) or not self.blocks:
                raise self.error(node, f"T.{what} takes parts of buffers, inside of a block; "
                                 f"{ast.unparse(region)} is none")  # fmt: skip
            self.blocks[-1].regions[what].append(found)
        return S.NOP

    def _preflattened(self, node: ast.Expr, flat: Buffer, shape: Any, dtype: str) -> None:
        """Let the caller's tensor of a parameter have a shape of its own."""
        for position, (param, buffer) in enumerate(self.buffer_map):
            if buffer is flat:
                given = flat.replace(shape=tuple(map(ops.as_extent, shape)), dtype=dtype)
                self.buffer_map[position] = (param, given)
                return
        raise self.error(node, f"{flat.name!r} is no parameter that a tensor is passed for")

    def _for(self, node: ast.For) -> S.Stmt:
        loops = self.value(node.iter)
        if not isinstance(loops, marks.Loops):
            raise self.error(node, f"a loop runs over range or T.serial, T.parallel, T.grid, ...; "
                             f"not over {ast.unparse(node.iter)}")  # fmt: skip
        targets = node.target.elts if isinstance(node.target, ast.Tuple) else [node.target]
        names = [t.id for t in targets if isinstance(t, ast.Name)]
        if len(names) != len(loops.extents):
            raise self.error(node, f"{len(loops.extents)} loops for {len(names)} variables")
        begin = ops.as_expr(loops.begin)
        made = []
        for name, size in zip(names, loops.extents, strict=True):
            extent = ops.as_extent(size)
            var = Var(name, extent.dtype)
            self.names[name] = var
            self.loops[id(var)] = extent
            made.append((var, extent))
        body = self.statements(node.body)
        for var, extent in reversed(made):
            thread = None
            if loops.kind == S.ForKind.THREAD:
                thread = IterVar(Range.of(extent), var, "thread", loops.thread)
            first = ops.cast(begin, var.dtype)
            body = S.For(var, first, extent, loops.kind, body, thread, loops.annotations)
        return body

    def _with(self, node: ast.With) -> S.Stmt:
        if len(node.items) > 1:
            inner = ast.copy_location(ast.With(node.items[1:], node.body), node)
            node = ast.copy_location(ast.With(node.items[:1], [inner]), node)
        head, named = self.value(node.items[0].context_expr), node.items[0].optional_vars
        name = named.id if isinstance(named, ast.Name) else None
        is_opened = isinstance(head, marks.Allocated | Buffer) and name is not None
        if is_opened or isinstance(head, marks.Launched) or getattr(head, "kind", "") == "attr":
            return self._around(node, head, name)(self.statements(node.body))
        if isinstance(head, marks.Mark) and head.kind == "init" and self.blocks:
            self.blocks[-1].init = self.statements(node.body)
            return S.NOP
        if not isinstance(head, marks.BlockHead):
            raise self.error(node, f"`with {ast.unparse(node.items[0])}` is not understood: there "
                             "are T.block and, inside one, T.init, T.launch_thread, T.allocate and "
                             "T.attr")  # fmt: skip
        name = head.name or "root"
        number, unique = 0, name
        while unique in self.block_names:
            number += 1
            unique = f"{name}_{number}"
        self.block_names.add(unique)
        self.blocks.append(_Block(unique))
        body = self.statements(node.body)
        block = self.blocks.pop()
        # What loads and stores show is seen there; a call shows only the memory that it is given.
        used = {a for n in walk(body) if isinstance(n, Call) for a in n.args}
        reads, writes = (
            tuple(dict.fromkeys(b for b in block.regions[what] if b.data in used))
            for what in ("reads", "writes")
        )
        return S.Block(block.name, tuple(block.axes), tuple(block.bindings), block.predicate, body,
                       block.init, block.annotations, reads, writes)  # fmt: skip


def _says(node: ast.expr, *names: str) -> bool:
    """Return whether an expression is a call of one of T's functions."""
    return isinstance(node, ast.Call) and (
        isinstance(node.func, ast.Attribute) and node.func.attr in names
    )


tir.READERS["prim_func"] = parse_function
