"""Calls of PackedFuncs from generated C, and what a function returns: values as SlwAny."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway import dtypes
from slipway.codegen.c import spelling
from slipway.codegen.packed import need_returnable
from slipway.errors import CodegenError
from slipway.ir import expr as E

if TYPE_CHECKING:
    from slipway.codegen.c.function import CFunction

RETURNED = "slw_returned"  # the parameter behind which a value is returned


def emit_call_packed(out: CFunction, node: E.Call) -> str:
    """Call a PackedFunc with its arguments in an array of SlwAny; return the value as C.

    An error raised by the function leaves the surrounding compute function with status -1.
    """
    name, args = node.args[0], node.args[1:]
    if not isinstance(name, E.StringImm):
        raise CodegenError(f"call_packed needs the function's name first: {node}")
    number = out.module.packed_calls.setdefault(name.value, len(out.module.packed_calls))
    array, result, status = (out.fresh(n) for n in ("packed", "returned", "outcome"))
    out.line(f"SlwAny {array}[{max(1, len(args))}];")
    out.line(f"SlwAny {result};")
    out.line(f"int {status};")
    for i, arg in enumerate(args):
        kind, member, value = _packed_argument(out, arg)
        out.line(f"{array}[{i}].type_index = {kind};")
        out.line(f"{array}[{i}].padding = 0;")
        out.line(f"{array}[{i}].v.i = 0;")
        out.line(f"{array}[{i}].v.{member} = {value};")
    out.line(f"{result}.type_index = 0;")
    out.line(f"{result}.padding = 0;")
    out.line(f"{result}.v.i = 0;")
    text = spelling.c_string(name.value)
    out.line(f"{status} = slw_call_packed({text}, &slw_cache_{number}, {array}, {len(args)},")
    out.line(f"                         &{result});")
    out.line(f"if ({status} == -2) {{")
    out.fail("RuntimeError", f"{out.name}: no function {name.value!r} is registered here")
    out.line("}")
    out.line(f"if ({status} != 0) {{")
    out.nested(lambda: out.leave("-1"))
    out.line("}")
    if node.dtype in ("", "void", "handle"):
        return "0"
    member = "f" if dtypes.is_float(node.dtype) else "i"
    return f"({spelling.c_type(node.dtype)}){result}.v.{member}"


def emit_return(out: CFunction, value: E.PrimExpr) -> None:
    """Leave the function with a value, and give back the memory that it holds."""
    need_returnable(out.name, value, out.inside_parallel or not out.returns_values)
    out.returned = True
    kind, member, text = _packed_argument(out, value)
    out.line(f"{RETURNED}->type_index = {kind};")
    out.line(f"{RETURNED}->v.i = 0;")
    out.line(f"{RETURNED}->v.{member} = {text};")
    out.leave("0")


def _packed_argument(out: CFunction, arg: E.PrimExpr) -> tuple[int, str, str]:
    """Return (type index, member of the union, value)."""
    if isinstance(arg, E.StringImm):
        return 8, "p", f"(void*)(uintptr_t){spelling.c_string(arg.value)}"
    if isinstance(arg, E.Call) and arg.op == "tensor_view":
        return 70, "p", _tensor_view(out, arg)
    if dtypes.is_float(arg.dtype):
        return 3, "f", out.expr(E.Cast("float64", arg))
    if arg.dtype == "handle":
        return 4, "p", out.expr(arg)
    return (2 if dtypes.is_bool(arg.dtype) else 1), "i", out.expr(E.Cast("int64", arg))


def _tensor_view(out: CFunction, view: E.Call) -> str:
    data, shape = view.args[0], view.args[1:]
    dtype = out.element_dtype.get(id(data))
    if dtype is None:
        raise CodegenError(f"tensor_view of {data}, which is no buffer of this function")
    code, bits, lanes = dtypes.parse(dtype)
    sizes, tensor, rank = out.fresh("sizes"), out.fresh("tensor"), len(shape)
    out.module.uses_tensor = True
    out.line(f"static slw_i64 {sizes}[{max(1, 2 * rank)}];")
    out.line(f"static SlwTensorObject {tensor} = SLW_TENSOR_OBJECT;")
    for axis in reversed(range(rank)):
        out.line(f"{sizes}[{axis}] = {out.index(shape[axis])};")
        inner = f"{sizes}[{axis + 1}] * {sizes}[{rank + axis + 1}]" if axis + 1 < rank else "1"
        out.line(f"{sizes}[{rank + axis}] = {inner};")
    for field_, value in (
        ("data", out.names[id(data)]), ("device_type", out.module.device_type),
        ("device_id", 0), ("ndim", rank), ("code", dtypes.DLPACK_CODE[code]), ("bits", bits),
        ("lanes", lanes), ("shape", sizes), ("strides", f"{sizes} + {rank}"),
        ("byte_offset", 0),
    ):  # fmt: skip
        out.line(f"{tensor}.tensor.{field_} = {value};")
    return f"&{tensor}"
