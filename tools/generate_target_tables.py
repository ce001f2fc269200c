"""Write src/slipway/target/data/cpus.json: the CPUs and features that LLVM knows, per architecture.

Names come from LLVM itself (``-mcpu=help`` of the llvmlite in use, printed to stderr, hence the
child process); which features a CPU has, and which features imply others, comes from the tables
that ziglang ships (they are generated from LLVM's TableGen).  Run it after a new llvmlite::

    python tools/generate_target_tables.py
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

# Our name: (triple to ask LLVM about, Zig's table).
ARCHES = {
    "x86": ("x86_64-linux-gnu", "x86"),
    "aarch64": ("aarch64-linux-gnu", "aarch64"),
    "arm": ("armv7-linux-gnueabihf", "arm"),
    "riscv": ("riscv64-linux-gnu", "riscv"),
    "wasm": ("wasm32-unknown-unknown", "wasm"),
    "hexagon": ("hexagon-unknown-linux-musl", "hexagon"),
    "nvptx": ("nvptx64-nvidia-cuda", "nvptx"),
    "amdgcn": ("amdgcn-amd-amdhsa", "amdgcn"),
}
# Floating point units that LLVM gives these CPUs by default and Zig leaves out.
EXTRA = {
    "cortex-m4": ["vfp4d16sp"],
    "cortex-m7": ["fp-armv8d16"],
    "cortex-m33": ["fp-armv8d16sp", "dsp"],
    "cortex-m35p": ["fp-armv8d16sp", "dsp"],
    "cortex-m55": ["fp-armv8d16", "dsp", "mve.fp"],
    "cortex-m85": ["fp-armv8d16", "dsp", "mve.fp"],
}
# Second names of x86 CPUs that Zig leaves out.
SAME = {
    "core-avx2": "haswell",
    "core-avx-i": "ivybridge",
    "corei7": "nehalem",
    "corei7-avx": "sandybridge",
    "skx": "skylake-avx512",
    "slm": "silvermont",
    "atom": "bonnell",
    "arrowlake_s": "arrowlake-s",
    "gracemont": "alderlake",
}
PROBE = """
import sys, llvmlite.binding as b
b.initialize_all_targets(); b.initialize_all_asmprinters()
b.Target.from_triple(sys.argv[1]).create_target_machine(cpu="help")
"""


def llvm_help(triple: str) -> tuple[list[str], list[str]]:
    """Return the CPU and feature names that LLVM lists for `triple`."""
    done = subprocess.run(
        [sys.executable, "-c", PROBE, triple], capture_output=True, text=True, check=False
    )
    if "Available features" not in done.stderr:  # Hexagon aborts on "help"
        return [], []
    cpus, features = done.stderr.split("Available features for this target:")
    names = re.compile(r"^  (\S+) +- ", re.MULTILINE)
    return names.findall(cpus), names.findall(features)


def zig_table(path: Path) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Return (CPU -> features, feature -> implied features) of one Zig file, in LLVM's names."""
    text = path.read_text()
    entry = r"llvm_name = (?:\"([^\"]*)\"|null),(?:.*?)featureSet\(&\[_\]Feature\{(.*?)\}\)"
    feature_part, cpu_part = text.split("pub const cpu = struct", 1)
    spelled: dict[str, str] = {}
    implied: dict[str, list[str]] = {}
    pattern = re.compile(r"result\[@\w+\(Feature\.@?\"?(\w+)\"?\)\] = \.\{(.*?)\n    \};", re.S)
    bodies = pattern.findall(feature_part)
    for name, body in bodies:
        found = re.search(r'llvm_name = "([^"]*)"', body)
        if found:
            spelled[name] = found.group(1)
    for name, body in bodies:
        if name in spelled:
            wanted = re.findall(r"\.@?\"?(\w+)\"?,", body.split("featureSet", 1)[-1])
            implied[spelled[name]] = [spelled[w] for w in wanted if w in spelled]
    cpus: dict[str, list[str]] = {}
    for found in re.finditer(entry, cpu_part, re.S):
        if found.group(1):
            wanted = re.findall(r"\.@?\"?(\w+)\"?,", found.group(2))
            cpus[found.group(1)] = [spelled[w] for w in wanted if w in spelled]
    return cpus, implied


def main() -> None:
    """Write the table."""
    import llvmlite.binding as llvm
    import ziglang

    zig = Path(ziglang.__file__).parent / "lib" / "std" / "Target"
    out: dict[str, object] = {"llvm": ".".join(map(str, llvm.llvm_version_info))}
    for arch, (triple, table) in ARCHES.items():
        cpus, features = llvm_help(triple)
        cpu_features, implied = zig_table(zig / f"{table}.zig")
        cpus, features = cpus or list(cpu_features), features or list(implied)
        for cpu, more in EXTRA.items():
            if cpu in cpu_features:
                cpu_features[cpu] += more
        for cpu, other in SAME.items():
            if not cpu_features.get(cpu) and other in cpu_features:
                cpu_features[cpu] = cpu_features[other]
        known = set(features)
        out[arch] = {
            "cpus": {c: [f for f in cpu_features.get(c, []) if f in known] for c in sorted(cpus)},
            "features": {
                f: [i for i in implied.get(f, []) if i in known] for f in sorted(features)
            },
        }
    target = Path(__file__).parent.parent / "src/slipway/target/data/cpus.json"
    lines = json.dumps(out, indent=None, separators=(",", ":"), sort_keys=False)
    target.write_text(lines.replace("],", "],\n") + "\n")


if __name__ == "__main__":
    main()
