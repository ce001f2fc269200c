"""Functions that a code generator of the user's compiles: ``relay.ext.<name>``.

A relay function with the attribute "Compiler" is handed to the global function
``relay.ext.<compiler>``, which returns C source (text, or an object with ``get_source()``).  The C
defines, under the name in "global_symbol", ::

    int32_t <global_symbol>(const T0 *input0, ..., T *output0, ...);

with row-major tensors in the order of parameters and results, and 0 for success.  It is compiled
for the target beside the kernels, so that one source serves this machine and every device.  A
function that takes packed arguments, ``<global_symbol>(TVMValue *args, int *type_codes, ...)``, is
called with tensors.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from slipway import dtypes
from slipway.compiler.accelerators import ccompiler
from slipway.errors import CodegenError, LoweringError
from slipway.ir import calls, ops
from slipway.ir.buffer import Buffer, decl_buffer
from slipway.ir.expr import StringImm, Var
from slipway.ir.function import IRModule, PrimFunc
from slipway.ir.stmt import NOP, AssertStmt
from slipway.relay.expr import Function
from slipway.relay.types import TensorType, flatten
from slipway.runtime.packed_func import get_global_func, list_global_func_names

_PREFIX = "relay.ext."
_OWN = {"ccompiler": ccompiler.generate}  # one of the user's under that name goes first


def is_external(function: Any) -> bool:
    """Return whether a code generator of the user's compiles `function`."""
    return isinstance(function, Function) and bool(function.attr("Compiler"))


def external_kernel(name: str, function: Function) -> PrimFunc:
    """Return the kernel `name` that calls the C function for `function`, and brings its source.

    Raises LoweringError where no code generator is registered, CodegenError for what it returned.
    """
    symbol = str(function.attr("global_symbol", name))
    loops = get_global_func(f"{_PREFIX}uma.{function.attr('Compiler')}.relay_to_tir", True)
    if loops is not None:  # of slipway.compiler.accelerators.uma: loops, not C
        lowered: PrimFunc = loops(IRModule.from_functions({symbol: function}))[symbol]
        kernel: PrimFunc = lowered.with_attr({"global_symbol": name, "noalias": True})
        return kernel
    source = _source(function, symbol)
    types = [*(p.checked_type for p in function.params), *flatten(function.body.checked_type)]
    handles, buffers, pointers = [], [], []
    given = sum(len(flatten(p.checked_type)) for p in function.params)
    for number, kind in enumerate(flat for type_ in types for flat in flatten(type_)):
        assert isinstance(kind, TensorType)
        handles.append(Var(f"p{number}_handle", "handle"))
        buffers.append(decl_buffer(kind.shape, kind.dtype, f"p{number}"))
        pointers.append(buffers[-1].access_ptr("r" if number < given else "w"))
    packed = re.search(rf"\b{re.escape(symbol)}\s*\(\s*TVMValue([^)]*)\)", source)
    called = symbol
    if packed is not None:
        called = f"{symbol}_on_pointers"
        source += _on_pointers(symbol, called, buffers, packed.group(1).count(",") + 1)
    status = calls.call_extern("int32", called, *pointers)
    message = f"{symbol}, a function of {function.attr('Compiler')}, reports failure"
    body = AssertStmt(ops.equal(status, 0), StringImm(message), NOP)
    attrs = (
        ("global_symbol", name), ("noalias", True), ("import_source", (("import_c", source),)),
    )  # fmt: skip
    return PrimFunc(tuple(handles), body, tuple(zip(handles, buffers, strict=True)), attrs)


def _on_pointers(symbol: str, name: str, buffers: Sequence[Buffer], arity: int) -> str:
    """Return a C function of pointers that hands packed arguments to a function of `arity`."""
    count = len(buffers)
    shapes, tensors = [], []
    for number, buffer in enumerate(buffers):
        shape = buffer.constant_shape()
        if shape is None:
            raise CodegenError(
                f"{symbol} takes packed arguments, and a tensor of its has the open shape "
                f"{buffer.shape}: give the function pointers, or fix the sizes"
            )
        code, bits, lanes = dtypes.parse(buffer.dtype)
        extents = ", ".join(map(str, shape)) or "1"
        shapes.append(f"  int64_t shape{number}[] = {{{extents}}};\n")
        kind = f"{{{dtypes.DLPACK_CODE[code]}, {bits}, {lanes}}}"
        tensors.append(
            f"  tensors[{number}] = (DLTensor){{(void *)p{number}, {{1, 0}}, {len(shape)}, {kind}, "
            f"shape{number}, 0, 0}};\n"
        )
    pointers = ", ".join(f"const void *p{n}" for n in range(count))
    result = ", ".join(["values", "codes", str(count), "&result", "&code", "0"][:arity])
    return (
        f"\nint32_t {name}({pointers}) {{\n{''.join(shapes)}"
        f"  DLTensor tensors[{count}];\n  TVMValue values[{count}], result;\n"
        f"  int codes[{count}], code = kTVMNullptr;\n{''.join(tensors)}"
        f"  for (int i = 0; i < {count}; i++) {{\n"
        "    values[i].v_handle = &tensors[i];\n    codes[i] = kTVMDLTensorHandle;\n  }\n"
        f"  return {symbol}({result});\n}}\n"
    )


def _source(function: Function, symbol: str) -> str:
    compiler = str(function.attr("Compiler"))
    generate = get_global_func(_PREFIX + compiler, allow_missing=True) or _OWN.get(compiler)
    if generate is None:
        known = [n.removeprefix(_PREFIX) for n in list_global_func_names() if n.startswith(_PREFIX)]
        raise LoweringError(
            f"the function {symbol} is for {compiler!r}, which has no code generator: register a "
            f"function that returns C with register_func({_PREFIX + compiler!r}). There are: "
            f"{', '.join(known) or 'none'}"
        )
    made = generate(function)
    text = made.get_source() if hasattr(made, "get_source") else made
    if not isinstance(text, str):
        raise CodegenError(
            f"{_PREFIX}{compiler} returned {type(made).__name__} for {symbol}: it returns C as "
            "text, or an object with get_source()"
        )
    if not re.search(rf"\b{re.escape(symbol)}\s*\(", text):
        raise CodegenError(
            f"the C that {_PREFIX}{compiler} returned defines no function {symbol}, which is the "
            "function's global_symbol"
        )
    return text
