"""Write codegen/glue/packed32.ll and packed64.ll: the LLVM form of packed.c, for any CPU.

Run it after a change of packed.c::

    python tools/generate_glue.py
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

GLUE = Path(__file__).parent.parent / "src/slipway/codegen/glue"
FLAGS = ["-std=c11", "-ffreestanding", "-Oz", "-fno-builtin", "-fno-stack-protector",
         "-Wno-unused-command-line-argument",
         "-fno-unwind-tables", "-fno-asynchronous-unwind-tables", "-fvisibility=hidden",
         "-fno-sanitize=all", "-emit-llvm", "-S", "-x", "c"]  # fmt: skip


def portable(text: str) -> str:
    """Strip what ties the IR to one CPU: triple, layout, CPU attributes, metadata."""
    text = re.sub(r"^(; ModuleID|source_filename|target |!|attributes ).*\n", "", text, flags=re.M)
    text = re.sub(r", !(range|tbaa|llvm\.loop|noundef|nonnull|srcloc|prof) !\d+", "", text)
    text = re.sub(r"( local_unnamed_addr)? #\d+", ' minsize optsize nounwind "no-builtins"', text)
    text = re.sub(r'(call .*\)) minsize optsize nounwind "no-builtins"', r"\1", text)
    text = re.sub(r"^declare .*\n", "", text, flags=re.M)
    text = re.sub(r"dso_local |; Function Attrs.*\n|memory\([^)]*\) ", "", text)
    text = re.sub(r"^define hidden", "define weak hidden", text, flags=re.M)
    text = re.sub(r"^@__(\w+) = external .*\n", "", text, flags=re.M)
    text = re.sub(r"^.*llvm\.lifetime.*\n", "", text, flags=re.M)
    text = re.sub(r"\n+; <label>.*", "", text)
    return re.sub(r"\n{2,}", "\n\n", text).strip() + "\n"


def main() -> None:
    """Write both files."""
    for bits, triple in (("32", "arm-linux-gnueabihf"), ("64", "aarch64-linux-gnu")):
        command = [sys.executable, "-m", "ziglang", "cc", "-target", triple, *FLAGS]
        out = GLUE / f"packed{bits}.ll"
        subprocess.run([*command, str(GLUE / "packed.c"), "-o", str(out)], check=True)
        out.write_text(portable(out.read_text()))


if __name__ == "__main__":
    main()
