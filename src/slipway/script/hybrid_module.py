"""A schedule as text of the language of `te.hybrid`: `te.hybrid.build`, and what it returns."""

from __future__ import annotations

import ast
import itertools
import linecache
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from slipway.errors import ModelError
from slipway.ir import expr as E
from slipway.ir import stmt as S
from slipway.ir.buffer import Buffer
from slipway.ir.text.printer import Printer
from slipway.script.hybrid import script
from slipway.te.lowering import lower
from slipway.te.schedule import Schedule
from slipway.te.tensor import Tensor

_LOOPS = {S.ForKind.SERIAL: "range", S.ForKind.PARALLEL: "parallel",
          S.ForKind.VECTORIZED: "vectorize", S.ForKind.UNROLLED: "unroll"}  # fmt: skip
_NUMBERS = itertools.count()


class HybridModule:
    """A function of `te.hybrid` with its text: called with tensors it is a stage, else Python."""

    def __init__(self, src: str | None = None, name: str | None = None) -> None:
        self.name = name
        self.src_ = ""
        self.func_: Callable[..., Any] | None = None
        if src is not None:
            self._take(src)

    def __call__(self, *args: Any) -> Any:
        """Return the function's tensors for tensors, its arrays for arrays."""
        if self.func_ is None:
            raise ModelError("this HybridModule has no text: load(path) first")
        return self.func_(*args)

    def get_source(self) -> str:
        """Return the text."""
        return self.src_

    def save(self, path: str | Path) -> None:
        """Write the text to a file, whose name gets the ending .py."""
        text = str(path)
        Path(text if text.endswith(".py") else f"{text}.py").write_text(self.src_, encoding="utf-8")

    def load(self, path: str | Path) -> None:
        """Take the function of a file, the only one in it."""
        self._take(Path(path).read_text(encoding="utf-8"))

    def _take(self, text: str) -> None:
        found = [n for n in ast.parse(text).body if isinstance(n, ast.FunctionDef)]
        if len(found) != 1:
            raise ModelError(f"a HybridModule is made of one function, the text has {len(found)}")
        found[0].decorator_list = []
        source = ast.unparse(found[0]) + "\n"
        file = f"<hybrid {next(_NUMBERS)}>"
        linecache.cache[file] = (len(source), None, source.splitlines(True), file)
        scope: dict[str, Any] = {}
        exec(compile(source, file, "exec"), scope)
        self.name = self.name or found[0].name
        self.src_, self.func_ = text, script(scope[found[0].name])


class _Writer(Printer):
    """Writes loops as Python that `te.hybrid` reads and Python runs."""

    def name(self, node: Any) -> str:
        """Return a name that Python takes."""
        return super().name(node).replace(".", "_")

    def parts(self, node: Any, level: int) -> list[Any]:
        """Return an expression's texts, and what stands between them."""
        match node:
            case E.IntImm():
                return [str(bool(node.value) if node.dtype == "bool" else node.value)]
            case E.FloatImm():
                return [repr(float(node.value))]
            case E.Not():
                return ["(not ", (node.a, 8), ")"]
            case E.Select():
                return self._choice(node.condition, node.true_value, node.false_value)
            case E.Call(op="if_then_else"):
                return self._choice(*node.args)
            case E.Call(op="likely"):
                return [(node.args[0], level)]
            case E.Let():
                raise ModelError("a value that is computed within an expression is not written")
            case E.BufferLoad() if not node.indices:
                return [self.name(node.buffer), "[()]"]
            case _:
                return super().parts(node, level)

    @staticmethod
    def _choice(condition: Any, one: Any, other: Any) -> list[Any]:
        return ["(", (one, 1), " if ", (condition, 1), " else ", (other, 1), ")"]

    def lines(self, node: S.Stmt, depth: int) -> list[Any]:
        """Return a statement's lines, and what stands between them."""
        pad = "    " * depth
        match node:
            case S.For():
                if node.kind not in _LOOPS:
                    raise ModelError(f"a loop of kind {node.kind!r} has no text: bind no threads")
                begin, extent = self.expr(node.min), self.expr(node.extent)
                bounds = extent if begin == "0" else f"{begin}, {begin} + {extent}"
                head = f"{pad}for {self.name(node.loop_var)} in {_LOOPS[node.kind]}({bounds}):"
                return [head, (node.body, depth + 1)]
            case S.Allocate():
                return [f"{pad}{self.name(node.buffer)} = {self.memory('allocate', node.buffer)}",
                        (node.body, depth)]  # fmt: skip
            case S.LetStmt():
                head = f"{pad}{self.name(node.var)} = {self.expr(node.value)}"
                return [head, (node.body, depth)]
            case S.AssertStmt():
                text = repr(getattr(node.message, "value", str(node.message)))
                return [f"{pad}assert {self.expr(node.condition)}, {text}", (node.body, depth)]
            case S.AttrStmt():
                return [(node.body, depth)]
            case S.Evaluate():
                return [f"{pad}pass"] if isinstance(node.value, E.IntImm) else [
                    f"{pad}{self.expr(node.value)}"]  # fmt: skip
            case S.SeqStmt(stmts=()):
                return [f"{pad}pass"]
            case _:
                return super().lines(node, depth)

    def memory(self, maker: str, buffer: Buffer) -> str:
        """Return the call that makes a buffer."""
        extents = "".join(f"{self.expr(extent)}, " for extent in buffer.shape)
        return f"{maker}(({extents}), {buffer.dtype!r})"


def build(
    sch: Schedule, inputs: Sequence[Any], outputs: Sequence[Tensor], name: str = "hybrid_func"
) -> HybridModule:
    """Return the loops of a schedule as a function of `te.hybrid`, which can be saved and read.

    Raises ModelError for what its language does not have: threads of a GPU, vectors.
    """
    function = lower(sch, [*inputs, *outputs], name=name)
    writer = _Writer()
    params, made = [], []
    for position, var in enumerate(function.params):
        buffer = function.buffer_of(var)
        if position < len(inputs):
            params.append(writer.name(var if buffer is None else buffer))
        elif buffer is not None:
            made.append(buffer)
    lines = [f"def {name}({', '.join(params)}):"]
    lines += [f"    {writer.name(b)} = {writer.memory('output_tensor', b)}" for b in made]
    lines += writer.stmt(function.body, 1)
    lines.append(f"    return {', '.join(map(writer.name, made))}")
    return HybridModule("import tvm\n@tvm.te.hybrid.script\n" + "\n".join(lines) + "\n", name)


__all__ = ["HybridModule", "build"]
