"""The code generator "ccompiler": sums, differences and products of whole tensors, as plain C.

It is the example that classic TVM brings for parts of a model that somebody else compiles; those
who write one of their own register ``relay.ext.<name>`` (see docs/byoc.md).
"""

from __future__ import annotations

import math

from slipway import dtypes
from slipway.codegen.c.spelling import c_type
from slipway.codegen.c.unpacked import constant_text
from slipway.errors import CodegenError
from slipway.relay.expr import Call, Constant, Expr, Function, Op, Tuple, Var
from slipway.relay.types import TensorType
from slipway.relay.visit import post_order

_OPERATORS = {"add": "+", "subtract": "-", "multiply": "*"}


def generate(function: Function) -> str:
    """Return C for a function whose calls are elementwise, on tensors of one shape and dtype.

    Raises CodegenError for any other operator, and for operands that would be broadcast.
    """
    symbol = str(function.attr("global_symbol", "main"))
    results = function.body.fields if isinstance(function.body, Tuple) else (function.body,)
    kind = _type_of(results[0], symbol)
    values: dict[Expr, str] = {}
    lines, tables = [], []
    for number, expr in enumerate(post_order(function.body)):
        if isinstance(expr, Op | Tuple):
            continue
        if _type_of(expr, symbol) != kind:
            raise CodegenError(
                f"{symbol}: ccompiler takes tensors of one shape and dtype, {kind} here, and one "
                f"is {expr.checked_type}; broadcast before the part, or leave it to the processor"
            )
        values[expr] = f"v{number}"
        if isinstance(expr, Var):
            values[expr] = f"in{function.params.index(expr)}[i]"
        elif isinstance(expr, Constant):
            elements = ", ".join(constant_text(kind.dtype, expr.data.numpy().ravel()))
            name = f"{symbol}_c{number}"
            tables.append(f"static const {c_type(kind.dtype)} {name}[] = {{{elements}}};")
            values[expr] = f"{name}[i]"
        else:
            lines.append(_statement(expr, values, kind.dtype, symbol))
    for number, result in enumerate(results):
        lines.append(f"out{number}[i] = {values[result]};")
    ctype = c_type(kind.dtype)
    parameters = [f"const {ctype} *in{i}" for i in range(len(function.params))]
    parameters += [f"{ctype} *out{i}" for i in range(len(results))]
    body = "\n".join(f"    {line}" for line in lines)
    return "\n".join([
        "#include <stdint.h>",
        *tables,
        f"int32_t {symbol}({', '.join(parameters)}) {{",
        f"  for (int32_t i = 0; i < {math.prod(kind.shape)}; ++i) {{",
        body,
        "  }",
        "  return 0;",
        "}",
        "",
    ])  # fmt: skip


def _statement(expr: Expr, values: dict[Expr, str], dtype: str, symbol: str) -> str:
    name = expr.op.name if isinstance(expr, Call) and isinstance(expr.op, Op) else str(expr)
    if not isinstance(expr, Call) or name not in _OPERATORS:
        raise CodegenError(
            f"{symbol}: ccompiler has {', '.join(_OPERATORS)}, not {name}; a code generator of "
            "your own is a function registered as relay.ext.<name>"
        )
    left, right = (values[argument] for argument in expr.args)
    ctype = c_type(dtype)
    if dtypes.is_float(dtype):
        return f"const {ctype} {values[expr]} = {left} {_OPERATORS[name]} {right};"
    wide = "uint64_t" if dtypes.bits_of(dtype) > 32 else "uint32_t"  # integers wrap
    sum_ = f"({wide}){left} {_OPERATORS[name]} ({wide}){right}"
    return f"const {ctype} {values[expr]} = ({ctype})({sum_});"


def _type_of(expr: Expr, symbol: str) -> TensorType:
    found = expr.checked_type
    if not isinstance(found, TensorType):
        raise CodegenError(f"{symbol}: ccompiler takes tensors, not {found}")
    return found
