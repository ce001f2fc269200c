"""Write the LLVM form of the C files in codegen/glue, for any CPU of 32 or 64 bits.

Run it after a change of one of them::

    python tools/generate_glue.py
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

GLUE = Path(__file__).parent.parent / "src/slipway/codegen/glue"
FLAGS = ["-std=c11", "-ffreestanding", "-Oz", "-fno-builtin", "-fno-stack-protector",
         "-ffp-contract=off",
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


LONG_DIVISION = """
define weak hidden arm_aapcscc { i64, i64 } @__aeabi_{u}ldivmod(i64 %n, i64 %d) nounwind {
  %q = call i64 @slw_{u}div64(i64 %n, i64 %d)
  %p = mul i64 %q, %d
  %r = sub i64 %n, %p
  %a = insertvalue { i64, i64 } poison, i64 %q, 0
  %b = insertvalue { i64, i64 } %a, i64 %r, 1
  ret { i64, i64 } %b
}
"""


def main() -> None:
    """Write all files."""
    triples = {"32": "arm-linux-gnueabihf", "64": "aarch64-linux-gnu"}
    parts = ("packed", "support", "call")
    jobs = [(part, bits, f"{part}{bits}.ll") for part in parts for bits in triples]
    for part, bits, name in [*jobs, ("arm", "32", "arm.ll")]:
        command = [sys.executable, "-m", "ziglang", "cc", "-target", triples[bits], *FLAGS]
        out = GLUE / name
        subprocess.run([*command, str(GLUE / f"{part}.c"), "-o", str(out)], check=True)
        text = portable(out.read_text())
        if part == "arm":
            text += "".join(LONG_DIVISION.replace("{u}", u) for u in ("", "u"))
        out.write_text(text)


if __name__ == "__main__":
    main()
