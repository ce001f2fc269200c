"""Objects whose functions the runtime lists as "runtime.SystemLib" once they are linked in.

Asked for with the target's option ``-system-lib`` or ``Runtime("cpp", {"system-lib": True})``.
"""

from __future__ import annotations

from dataclasses import replace

from slipway.codegen.compiled import CompiledModule, merge_objects
from slipway.codegen.llvm.data import quoted
from slipway.codegen.llvm.machine import CompiledText
from slipway.relay.backend import Runtime
from slipway.runtime.libraries.library import FUNCTION_PREFIX

# What a loader would put into the pointers that code comes with (docs/architecture.md).
_SLOTS = {
    "__TVMFFIErrorSetRaisedFromCStr": "slw_error_set",
    "__slipway_parallel_launch": "slw_parallel_launch",
    "__slipway_workspace_alloc": "slw_workspace_alloc",
    "__slipway_workspace_free": "slw_workspace_free",
}
# The runtime may be missing: a program that calls the kernels by their symbols links without it,
# and the list is then not made.
_LISTER = """\
declare extern_weak i32 @TVMBackendRegisterSystemLibSymbol(ptr, ptr)
define internal void @slipway_list_functions() {{
  %is_missing = icmp eq ptr @TVMBackendRegisterSystemLibSymbol, null
  br i1 %is_missing, label %done, label %list
list:
{steps}
  br label %done
done:
  ret void
}}
@llvm.global_ctors = appending global [1 x {{ i32, ptr, ptr }}] \
[{{ i32, ptr, ptr }} {{ i32 65535, ptr @slipway_list_functions, ptr null }}]
"""
_FILL = """\
  br label %ask{number}
ask{number}:
  %slot{number} = icmp ne ptr @{slot}, null
  br i1 %slot{number}, label %fill{number}, label %filled{number}
fill{number}:
  store ptr @{function}, ptr @{slot}
  br label %filled{number}
filled{number}:"""


def is_system_library(compiled: CompiledModule) -> bool:
    """Return whether the code's objects list themselves.

    Firmware does not: it has its own table of what is in it, and its start may run no constructors.
    """
    target = compiled.target
    wanted = compiled.lists_functions or bool(target.attrs.get("system-lib"))
    return wanted and target.parsed_triple.loads_libraries


def with_runtime(compiled: CompiledModule, runtime: Runtime | None) -> CompiledModule:
    """Return the code as it is for a runtime."""
    if runtime is None or not runtime["system-lib"]:
        return compiled
    return replace(compiled, lists_functions=True)


def linkable_objects(compiled: CompiledModule, objects: list[bytes]) -> list[bytes]:
    """Return objects for a user's own linker: with the one that lists the functions, if asked."""
    return [*objects, _lister(compiled)] if is_system_library(compiled) else objects


def linkable_object(compiled: CompiledModule) -> bytes:
    """Return one object of the code, for a user's own linker."""
    objects = linkable_objects(compiled, list(compiled.objects))
    return objects[0] if len(objects) == 1 else merge_objects(tuple(objects))


def _lister(compiled: CompiledModule) -> bytes:
    lines, steps = [], []
    for number, (slot, function) in enumerate(_SLOTS.items()):
        lines.append(f"@{slot} = extern_weak global ptr\n@{function} = extern_weak global i8")
        steps.append(_FILL.format(number=number, slot=slot, function=function))
    for number, name in enumerate(FUNCTION_PREFIX + name for name in compiled.functions):
        text = "".join(f"\\{byte:02X}" for byte in name.encode())
        array = f"[{len(name) + 1} x i8]"
        lines.append(f'@name{number} = private constant {array} c"{text}\\00"')
        lines.append(f"declare i32 @{quoted(name)}(ptr, ptr, i32, ptr)")
        steps.append(
            f"  %r{number} = call i32 @TVMBackendRegisterSystemLibSymbol"
            f"(ptr @name{number}, ptr @{quoted(name)})"
        )
    text = "\n".join([*lines, _LISTER.format(steps="\n".join(steps))])
    return CompiledText(text, compiled.target, "the list of functions").object_bytes
