"""Which variables and memories a piece of loop code takes from around it."""

from __future__ import annotations

from slipway.ir import expr as E
from slipway.ir import stmt as S
from slipway.ir.node import Node
from slipway.ir.visit import walk


def captured(root: Node) -> list[E.Var]:
    """Return the Vars used under `root` and not defined there, in order of first use.

    Data pointers of buffers count as variables, except those of buffers allocated inside.
    """
    used: dict[int, E.Var] = {}
    defined: set[int] = set()
    for node in walk(root):
        match node:
            case S.For():
                defined.add(id(node.loop_var))
            case S.LetStmt() | E.Let():
                defined.add(id(node.var))
            case S.Allocate():
                defined.add(id(node.buffer.data))
            case E.Var():
                used.setdefault(id(node), node)
            case _:
                pass
    return [var for key, var in used.items() if key not in defined]
