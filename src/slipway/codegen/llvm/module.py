"""A whole LLVM module: compute functions, their packed wrappers, slots, metadata."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources

from slipway import dtypes
from slipway.codegen.llvm.function import FunctionEmitter, ModuleState
from slipway.codegen.llvm.packed_call import RETURNED
from slipway.codegen.llvm.plain_args import put_plain_args, takes_plain_args
from slipway.codegen.packed import Signature, signature_of
from slipway.errors import CodegenError
from slipway.ir import expr as E
from slipway.ir.depth import room_for
from slipway.ir.function import PrimFunc
from slipway.target import Target
from slipway.target.capability import capability_of

SLOTS = (
    "__TVMFFIErrorSetRaisedFromCStr",
    "__tvm_ffi__library_ctx",
    "__slipway_parallel_launch",
    "__slipway_workspace_alloc",
    "__slipway_workspace_free",
)
# Filled too where a function calls PackedFuncs.
CALL_SLOTS = ("__TVMFFIFunctionGetGlobal", "__TVMFFIFunctionCall")
_ADDRESS_BITS = 46  # of a process
ATTRIBUTES = 'nounwind "no-builtins"'


def attributes_of(target: Target) -> str:
    """Return the attributes of functions: -mtune's CPU, and the one length of SVE's vectors."""
    attributes = [ATTRIBUTES]
    if target.tuned_for != target.cpu:
        attributes.append(f'"tune-cpu"="{target.tuned_for}"')
    if target.sve_bits:
        scale = target.sve_bits // 128
        attributes.append(f"vscale_range({scale},{scale})")
    return " ".join(attributes)


@lru_cache(maxsize=8)
def _glue(part: str, bits: int) -> str:
    name = "glue/arm.ll" if part == "arm" else f"glue/{part}{32 if bits == 32 else 64}.ll"
    return resources.files("slipway.codegen").joinpath(name).read_text()


@dataclass(frozen=True)
class ModuleText:
    """LLVM IR of one function's module, and the bytes of the shared arena that it may use."""

    text: str
    arena_bytes: int


def arena_symbol(first: str) -> str:
    """Return the name of the arena of the library whose first function is `first`."""
    return "slw_arena_" + re.sub(r"\W", "_", first)


def emit_kernel(name: str, func: PrimFunc, target: Target, arena: str) -> ModuleText:
    """Return the LLVM IR of `func`, exported as `name`: a module of its own.

    So functions compile in parallel, and stay as they are when others change.
    """
    try:
        return _module_text(name, func, target, arena)
    except RecursionError:
        pass  # few are too deep for Python's usual limit, and to count how deep takes a walk
    with room_for(func.body, f"function {name!r}"):
        return _module_text(name, func, target, arena)


def _module_text(name: str, func: PrimFunc, target: Target, arena: str) -> ModuleText:
    state = ModuleState(
        capability_of(target),
        strict=target.is_strict,
        attributes=attributes_of(target),
        arena=arena,
    )
    text = _function_text(name, func, state, target)
    return ModuleText(text, state.arena_bytes)


def emit_shell(metadata: str, arena: str, arena_bytes: int, target: Target) -> str:
    """Return the LLVM IR of what a library's functions share.

    `metadata` is the JSON text of the exported ``__slipway_metadata``.  Raises CodegenError for an
    arena that no process has room for.
    """
    if arena_bytes >= 1 << min(_ADDRESS_BITS, target.pointer_bits - 1):
        raise CodegenError(
            f"the temporaries of a function take {arena_bytes} bytes, more than a process for "
            f"{target.triple} can have. Compute them inside the loops that read them (compute_at)"
        )
    shell = [f"@__slipway_metadata = {_exported(target)} constant {_c_string(metadata)}"]
    if arena_bytes:
        shell.append(f"@{arena} = hidden global [{arena_bytes} x i8] zeroinitializer, align 64")
    return "\n".join(shell) + "\n"


def _function_text(name: str, func: PrimFunc, state: ModuleState, target: Target) -> str:
    specs: list[str] = []
    emit_function(name, func.with_attr("global_symbol", name), state, specs)
    local = "dso_local protected" if _exported(target) != "weak" else ""
    lines = [f"@{slot} = external {local} global ptr" for slot in SLOTS]
    lines += [
        "@slw_failure_kind = external hidden global ptr",
        "@slw_failure_message = external hidden global ptr",
        "declare hidden i32 @slw_check_args(ptr, ptr, i32, ptr, ptr, ptr, ptr)",
        "declare hidden i32 @slw_raise(ptr, ptr, ptr)",
    ]
    if state.arena_bytes:
        lines.append(f"@{state.arena} = external hidden global [0 x i8], align 64")
    lines += specs
    for text, symbol in state.strings.items():
        lines.append(f"{symbol} = private unnamed_addr constant {_c_string(text)}")
    lines += state.statics
    lines += [f"{symbol} = internal global ptr null" for symbol in state.caches.values()]
    return (
        "\n".join([*lines, *state.functions, *sorted(state.declarations), *state.loop_lines()])
        + "\n"
    )


def _exported(target: Target) -> str:
    """Return linkage and visibility of exported data: its own library's copy is always meant."""
    return "weak dso_local protected" if target.parsed_triple.object_format == "elf" else "weak"


def emit_part(part: str, target: Target) -> str:
    """Return the LLVM IR text of a part of codegen/glue; the slots go with "packed"."""
    text = _glue(part, target.pointer_bits)
    exported = _exported(target)
    if part == "call":
        return text + "".join(
            f"@{slot} = {exported} global ptr null, align 8\n" for slot in CALL_SLOTS
        )
    if part != "packed":
        return text
    text += "".join(f"@{slot} = {exported} global ptr null, align 8\n" for slot in SLOTS)
    kept = ("slw_failure_kind", "slw_failure_message")
    return text + "".join(f"@{name} = weak hidden global ptr null, align 8\n" for name in kept)


def argument_checks(target: Target) -> str:
    """Return slw_check_args and slw_raise as a part of another module, which alone sees them."""
    text = _glue("packed", target.pointer_bits).replace("define weak hidden ", "define internal ")
    for plain in ("@.str", "%struct.", "%union."):  # names that the other module may have, too
        text = text.replace(plain, f"{plain[0]}slw.{plain[1:].lstrip('.')}")
    exported = _exported(target)
    return text + "".join(f"@{s} = {exported} global ptr null, align 8\n" for s in SLOTS[:2])


def metadata_json(names: list[str], entry: str, target: Target, compiler: str) -> str:
    """Return the text of ``__slipway_metadata``."""
    return json.dumps(
        {
            "format_version": 1,
            "compiler": compiler,
            "target": str(target),
            "triple": target.triple,
            "isa": target.needed,
            "functions": names,
            "entry": entry,
        },
        separators=(",", ":"),
    )


def _c_string(text: str) -> str:
    data = text.encode() + b"\0"
    body = "".join(chr(b) if 32 <= b < 127 and b not in (34, 92) else f"\\{b:02X}" for b in data)
    return f'[{len(data)} x i8] c"{body}"'


def emit_function(name: str, func: PrimFunc, state: ModuleState, specs: list[str]) -> None:
    """Emit the compute function of `func` and its exported wrapper."""
    signature = signature_of(func, state.device_type)
    variables: list[E.Var] = []
    compute = FunctionEmitter(state, f"{name}.compute")
    for param in func.params:
        buffer = func.buffer_of(param)
        variables.append(buffer.data if buffer is not None else param)
        if buffer is not None:
            compute.note_buffer(buffer)
            if isinstance(buffer.elem_offset, E.Var):  # the wrapper adds the byte offset
                compute.bind_scalar(buffer.elem_offset, "0")
    known = {id(v) for v in variables}
    variables += [v for v in signature.symbols if v is not None and id(v) not in known]
    unique = list({id(v): v for v in variables}.values())
    text = compute.parameters(unique, bool(func.attr("noalias", True)))
    compute.widen_scalars(unique)
    compute.returns_values = True
    compute.stmt(func.body)
    if compute.returned:
        text = ", ".join(filter(None, (text, f"ptr {RETURNED}")))
    compute.finish(text)
    _wrapper(name, func, signature, unique, compute, state, specs)


def _end_with(emitter: FunctionEmitter, status: str, has_result: bool) -> None:
    """Return `status`, with None as the result if it has none; -2 stands for a failure, raised."""
    w = emitter.w
    w.branch_if(w.put(f"icmp eq i32 {status}, 0"), "done", "failed")
    w.start("done")
    if not has_result:
        w.do("store i32 0, ptr %result")
    w.do("ret i32 0")
    w.start("failed")
    w.branch_if(w.put(f"icmp eq i32 {status}, -2"), "raise", "passed")
    w.start("passed")
    w.do(f"ret i32 {status}")
    w.start("raise")
    w.do("%kind = load ptr, ptr @slw_failure_kind")
    w.do("%message = load ptr, ptr @slw_failure_message")
    w.do("%r = call i32 @slw_raise(ptr %result, ptr %kind, ptr %message)")
    w.do("ret i32 %r")


def _wrapper(
    name: str,
    func: PrimFunc,
    signature: Signature,
    variables: list[E.Var],
    compute: FunctionEmitter,
    state: ModuleState,
    specs: list[str],
) -> None:
    """Emit ``__tvm_ffi_<name>``: check the arguments, unpack them, call the compute function."""
    words = ", ".join(f"i32 {w}" for w in signature.words)
    spec = f"@slw.spec.{len(specs)}"
    specs.append(f"{spec} = internal constant [{len(signature.words)} x i32] [{words}], align 8")
    emitter = FunctionEmitter(state, name)
    w = emitter.w
    slots = max(1, len(signature.symbols))
    w.do(f"%values = alloca [{max(1, len(func.params))} x i64], align 8")
    w.do(f"%symbols = alloca [{slots} x i64], align 8")
    w.do(f"%bound = alloca [{slots} x i8], align 8")
    for slot in range(slots if signature.symbols else 0):
        w.do(f"%b{slot} = getelementptr i8, ptr %bound, i64 {slot}")
        w.do(f"store i8 0, ptr %b{slot}")
    if takes_plain_args(signature, state.capability.target):
        put_plain_args(w, signature, "run", "check")
        w.start("check")
    w.do(f"%ok = call i32 @slw_check_args(ptr {spec}, ptr %args, i32 %n, ptr %values, "
         "ptr %symbols, ptr %bound, ptr %result)")  # fmt: skip
    w.do("%good = icmp eq i32 %ok, 1")
    w.branch_if("%good", "run", "refuse")
    w.start("refuse")
    w.do("ret i32 %ok")
    w.start("run")
    operands: dict[int, str] = {}
    for slot, var in enumerate(signature.symbols):
        at = w.put(f"getelementptr i64, ptr %symbols, i64 {slot}")
        wide = w.put(f"load i64, ptr {at}")
        if var is not None:
            operands[id(var)] = _narrow(emitter, var, wide)
    for number, param in enumerate(func.params):
        buffer = func.buffer_of(param)
        at = w.put(f"getelementptr i64, ptr %values, i64 {number}")
        bits = w.put(f"load i64, ptr {at}")
        var = buffer.data if buffer is not None else param
        operand = _narrow(emitter, var, bits)
        if id(var) in operands and buffer is None:
            message = f"{name}: argument {number} ({var.name}) differs from the size of a tensor"
            same = w.put(f"icmp eq {emitter.ty(var.dtype)} {operand}, {operands[id(var)]}")
            _refuse_unless(emitter, same, message)
        operands[id(var)] = operand
    for var in variables:
        if var.dtype != "handle":
            emitter.bind_scalar(var, operands[id(var)])
    for slot, value, what in signature.conditions:
        at = w.put(f"getelementptr i64, ptr %symbols, i64 {slot}")
        size = w.put(f"load i64, ptr {at}")
        emitter.new_statement()
        wanted = emitter.value(E.Cast("int64", value) if value.dtype != "int64" else value)
        same = w.put(f"icmp eq i64 {size}, {wanted}")
        _refuse_unless(emitter, same, f"{name}: {what} is not {value}")
    given = [f"{emitter.ty(v.dtype)} {operands[id(v)]}" for v in variables]
    if compute.returned:
        given.append("ptr %result")
        w.do("store i32 0, ptr %result")
    args = ", ".join(given)
    _end_with(emitter, w.put(f"call i32 @{compute.name}({args})"), bool(compute.returned))
    state.functions.append(
        f"define signext i32 @__tvm_ffi_{name}(ptr %self, ptr %args, i32 signext %n, ptr %result)"
        f" {state.attributes} {{\nentry:\n" + "\n".join(w.lines) + "\n}\n"
    )
    state.declarations |= emitter.helpers


def _refuse_unless(emitter: FunctionEmitter, test: str, message: str) -> None:
    w = emitter.w
    good, bad = w.label("good"), w.label("bad")
    w.branch_if(test, good, bad)
    w.start(bad)
    kind, text = (emitter.module.string(t) for t in ("ValueError", message))
    w.do(f"{w.name()} = call i32 @slw_raise(ptr %result, ptr {kind}, ptr {text})")
    w.do(f"ret i32 %v{w.count}")
    w.start(good)


def _narrow(emitter: FunctionEmitter, var: E.Var, bits: str) -> str:
    """Turn the 64 bits that the check left into a value of the variable's dtype."""
    w = emitter.w
    code, size, _ = dtypes.parse(var.dtype)
    if code == "handle":
        word = emitter.word
        value = bits if word == "i64" else w.put(f"trunc i64 {bits} to {word}")
        return w.put(f"inttoptr {word} {value} to ptr")
    if code in ("float", "bfloat"):
        double = w.put(f"bitcast i64 {bits} to double")
        if size == 64:
            return double
        wide = E.Var("scalar", "float64")
        emitter.values[id(wide)] = double
        return emitter.value(E.Cast(var.dtype, wide))
    if code == "bool":
        return w.put(f"icmp ne i64 {bits}, 0")
    return bits if size == 64 else w.put(f"trunc i64 {bits} to i{size}")
