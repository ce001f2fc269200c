"""What starts the kernels of LLVM IR on this processor, as IR of its own: no compiler is needed.

It is what `SLW_ENTRY` of `languages/threads.h` makes for kernels that are C++.
"""

import re

_KERNEL = re.compile(r"^define ptx_kernel void @(\w+)\((.*)\) nounwind", re.MULTILINE)
_RUN = "_ZN3slw10run_blocksEPKmS1_PFvPvES2_"  # slw::run_blocks of fibres.cc


def entries(text):
    """Return IR with an entry for each kernel of `text`, which is IR for NVIDIA's GPUs."""
    made = [f"declare i32 @{_RUN}(ptr, ptr, ptr, ptr)\n"]
    for name, given in _KERNEL.findall(text):
        made.append(_entry(name, [word.split()[0] for word in given.split(", ")]))
    return "".join(made)


def _entry(name, kinds):
    """Return the entry of one kernel, whose arguments are where a list of pointers says."""
    lines, passed = [], []
    for at, kind in enumerate(kinds):
        lines.append(f"%at{at} = getelementptr ptr, ptr %args, i64 {at}")
        lines.append(f"%held{at} = load ptr, ptr %at{at}")
        if kind == "i1":  # a byte in memory
            lines.append(f"%byte{at} = load i8, ptr %held{at}")
            lines.append(f"%value{at} = trunc i8 %byte{at} to i1")
        else:
            lines.append(f"%value{at} = load {kind}, ptr %held{at}")
        passed.append(f"{kind} %value{at}")
    body = "".join(f"  {line}\n" for line in lines)
    return (
        f"define i64 @slw_count_{name}() {{\n  ret i64 {len(kinds)}\n}}\n"
        f"define internal void @slw_body_{name}(ptr %args) {{\n{body}"
        f"  call void @{name}({', '.join(passed)})\n  ret void\n}}\n"
        f"define i32 @slw_entry_{name}(ptr %grid, ptr %block, ptr %args) {{\n"
        f"  %failed = call i32 @{_RUN}(ptr %grid, ptr %block, ptr @slw_body_{name}, ptr %args)\n"
        "  ret i32 %failed\n}\n"
    )
