"""Calls of PackedFuncs from generated code, and what a function returns: values as TVMFFIAny."""

from __future__ import annotations

from typing import Any

from slipway import dtypes
from slipway.codegen.packed import need_returnable
from slipway.errors import CodegenError
from slipway.ir import expr as E

# tvm-ffi type indices.
NONE, INT, BOOL, FLOAT, POINTER, TEXT, TENSOR = 0, 1, 2, 3, 4, 8, 70
ANY = "{ i32, i32, i64 }"
RETURNED = "%returned"  # the parameter behind which a value is returned


def emit_call_packed(emitter: Any, node: E.Call) -> str:
    """Emit the call; return its result as a value of the node's dtype.

    An error raised by the function leaves the surrounding compute function with status -1.
    """
    w = emitter.w
    name = node.args[0]
    if not isinstance(name, E.StringImm):
        raise CodegenError(f"call_packed needs the function's name as its first argument: {node}")
    args = node.args[1:]
    array, result = w.name(), w.name()
    w.entry.append(f"  {array} = alloca [{max(1, len(args))} x {ANY}], align 8")
    w.entry.append(f"  {result} = alloca {ANY}, align 8")
    for number, arg in enumerate(args):
        slot = w.put(f"getelementptr {ANY}, ptr {array}, i32 {number}")
        _store_argument(emitter, slot, arg)
    w.do(f"store {ANY} zeroinitializer, ptr {result}, align 8")
    cache = emitter.module.cache_slot(name.value)
    text = emitter.module.string(name.value)
    emitter.helpers.add("declare hidden i32 @slw_call_packed(ptr, ptr, ptr, i32, ptr)")
    status = w.put(
        f"call i32 @slw_call_packed(ptr {text}, ptr {cache}, ptr {array}, i32 {len(args)}, "
        f"ptr {result})"
    )
    _leave_on_error(emitter, status, name.value)
    return _result(emitter, node, result)


def emit_return(emitter: Any, value: E.PrimExpr) -> None:
    """Leave the function with a value, and give back the memory that it holds."""
    w = emitter.w
    elsewhere = emitter.inside_parallel or not emitter.returns_values
    need_returnable(emitter.name, value, elsewhere)
    emitter.returned = True
    _store_argument(emitter, RETURNED, value)
    emitter.leave("0")
    w.start(w.label("after"))


def _leave_on_error(emitter: Any, status: str, name: str) -> None:
    w = emitter.w
    bad, missing, good = w.label("raised"), w.label("missing"), w.label("called")
    w.lines.append(
        f"  switch i32 {status}, label %{bad} [ i32 0, label %{good} i32 -2, label %{missing} ]"
    )
    w.start(missing)
    message = f"{emitter.name}: no function {name!r} is registered where this code runs"
    kind, text = emitter.module.string("RuntimeError"), emitter.module.string(message)
    w.do(f"store ptr {kind}, ptr @slw_failure_kind")
    w.do(f"store ptr {text}, ptr @slw_failure_message")
    w.branch(bad)
    w.start(bad)
    emitter.leave(status)
    w.start(good)


def _result(emitter: Any, node: E.Call, result: str) -> str:
    w = emitter.w
    code, bits, _ = dtypes.parse(node.dtype) if node.dtype not in ("", "void") else ("void", 0, 1)
    if code in ("void", "handle"):
        return "null" if code == "handle" else "0"
    at = w.put(f"getelementptr i8, ptr {result}, i32 8")
    word = w.put(f"load i64, ptr {at}, align 8")
    if code in ("float", "bfloat"):
        wide = E.Var("result", "float64")
        emitter.values[id(wide)] = w.put(f"bitcast i64 {word} to double")
        return str(emitter.value(E.Cast(node.dtype, wide)))
    if code == "bool":
        return str(w.put(f"icmp ne i64 {word}, 0"))
    return word if bits == 64 else str(w.put(f"trunc i64 {word} to i{bits}"))


def _store_argument(emitter: Any, slot: str, arg: E.PrimExpr) -> None:
    w = emitter.w
    if isinstance(arg, E.StringImm):
        _store(w, slot, TEXT, f"ptr {emitter.module.string(arg.value)}")
    elif isinstance(arg, E.Call) and arg.op == "tensor_view":
        _store(w, slot, TENSOR, f"ptr {_tensor(emitter, arg)}")
    elif dtypes.is_float(arg.dtype):
        _store(w, slot, FLOAT, f"double {emitter.value(E.Cast('float64', arg))}")
    elif arg.dtype == "handle":
        _store(w, slot, POINTER, f"ptr {emitter.value(arg)}")
    else:
        kind = BOOL if dtypes.is_bool(arg.dtype) else INT
        _store(w, slot, kind, f"i64 {emitter.value(E.Cast('int64', arg))}")


def _store(w: Any, slot: str, kind: int, value: str) -> None:
    w.do(f"store {{ i32, i32, i64 }} {{ i32 {kind}, i32 0, i64 0 }}, ptr {slot}, align 8")
    at = w.put(f"getelementptr i8, ptr {slot}, i32 8")
    w.do(f"store {value}, ptr {at}, align 8")


def _tensor(emitter: Any, view: E.Call) -> str:
    """Fill the static Tensor object of this call site; return its address.

    It is an object, not a bare DLTensor, so that the callee may take DLPack views of it; and
    static, so that giving such a view back late touches no dead stack.  Its data are only there
    during the call, and two threads must not be in one call site at once.
    """
    w = emitter.w
    data, shape = view.args[0], view.args[1:]
    dtype = emitter.element_dtype.get(id(data))
    if dtype is None:
        raise CodegenError(f"tensor_view of {data}, which is no buffer of this function")
    wide = emitter.capability.pointer_bits == 64
    rank = len(shape)
    tensor_object, sizes = emitter.module.static_tensor(rank)
    tensor = w.put(f"getelementptr i8, ptr {tensor_object}, i32 24")
    stride = "1"
    for axis in reversed(range(rank)):
        extent = emitter.value(E.Cast("int64", shape[axis]))
        for position, value in ((axis, extent), (rank + axis, stride)):
            at = w.put(f"getelementptr i64, ptr {sizes}, i32 {position}")
            w.do(f"store i64 {value}, ptr {at}, align 8")
        stride = w.put(f"mul i64 {stride}, {extent}") if axis else stride
    strides = w.put(f"getelementptr i64, ptr {sizes}, i32 {rank}")
    code, bits, lanes = dtypes.parse(dtype)
    packed = dtypes.DLPACK_CODE[code] | bits << 8 | lanes << 16
    fields = (
        (0, f"ptr {emitter.value(data)}"),
        (8 if wide else 4, f"i32 {emitter.module.device_type}"),
        (12 if wide else 8, "i32 0"),
        (16 if wide else 12, f"i32 {rank}"),
        (20 if wide else 16, f"i32 {packed}"),
        (24 if wide else 20, f"ptr {sizes}"),
        (32 if wide else 24, f"ptr {strides}"),
        (40 if wide else 32, "i64 0"),
    )
    for offset, value in fields:
        at = w.put(f"getelementptr i8, ptr {tensor}, i32 {offset}")
        w.do(f"store {value}, ptr {at}, align 4")
    return str(tensor_object)
