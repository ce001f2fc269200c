"""Check the device runtime and generated models against MISRA C:2012 with cppcheck's addon.

python tools/misra.py [--write] [--tflite FOLDER]

Prints the findings by rule.  A required or mandatory rule with findings must stand in
src/slipway/crt/misra_deviations.txt with its reason, else the exit code is 1.  `--write` puts the
counts into src/slipway/crt/README.md and the deviations into docs/micro.md.  The models are those
of the tests and every quantised model of a folder (without --tflite the shared models, where they
are), each for every family of kernels.  cppcheck reads one branch of an #if: every family is read
twice, as portable C and as on the cores that it is written for.  It takes ten to fifteen minutes on
two cores.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests" / "compiler")]
CRT = ROOT / "src" / "slipway" / "crt"
DEVIATIONS = CRT / "misra_deviations.txt"
MANDATORY = {"9.1", "13.6", "17.3", "17.4", "17.6", "19.1", "21.13", "21.17", "21.18", "21.19",
             "21.20", "22.2", "22.4", "22.5", "22.6"}  # fmt: skip
ADVISORY = {"2.3", "2.4", "2.5", "2.6", "2.7", "4.2", "5.9", "8.7", "8.9", "8.11", "8.13", "10.5",
            "11.4", "11.5", "12.1", "12.3", "12.4", "13.3", "13.4", "15.1", "15.4", "15.5", "17.5",
            "17.8", "18.4", "18.5", "19.2", "20.1", "20.5", "20.10"}  # fmt: skip


Finding = tuple[str, int, str]


def run(
    sources: Sequence[Path], includes: Sequence[str | Path], defines: Sequence[str] = ()
) -> set[Finding]:
    """Return (file, line, rule) of each finding."""
    if not sources:
        return set()
    command = ["cppcheck", "--addon=misra", "--quiet", "--enable=style", f"-j{os.cpu_count() or 2}",
               "--inline-suppr", "--template={file}:{line}:{id}",
               *(f"-D{d}" for d in ("SLW_STATIC", "SLW_NO_THREADS", "__GNUC__=12", *defines)),
               *(f"-I{i}" for i in includes), *map(str, sources)]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = re.findall(r"^(.+?):(\d+):misra-c2012-([\d.]+)$", done.stderr, re.MULTILINE)
    return {(Path(name).name, int(line), rule) for name, line, rule in found}


FAMILIES = {
    "dsp": "c -keys=arm_cpu -mcpu=cortex-m4",
    "mve": "c -keys=arm_cpu -mcpu=cortex-m55",
    "scalar": "c -mtriple=riscv32-unknown-none-elf -mattr=+m",
}
# What the compilers define for the cores of a family.
CORES = {
    "dsp": ("__ARM_FEATURE_SIMD32=1",),
    "mve": ("__ARM_FEATURE_SIMD32=1", "__ARM_FEATURE_MVE=3"),
    "scalar": ("__riscv=1", "__riscv_xlen=32", "__riscv_mul=1"),
}


def write_model(lib: Any, folder: Path) -> Path:
    """Write a model's C into a folder, without its tables of numbers, and return the source.

    The tables hold nothing to check, and reading them takes cppcheck minutes.
    """
    sources = lib.sources
    (folder / sources.header_name).write_text(sources.header)
    source = folder / sources.source_name
    source.write_text(re.sub(r"= \{\n(  [-0-9a-fx., ]+\n)+\};", "= {0};", sources.source))
    return source


def float_models(folder: Path) -> list[Path]:
    """Write the test models with generated loops."""
    from aot_models import build, keyword_net, residual_net

    makers = {"keyword": keyword_net, "residual": residual_net}
    return [write_model(build(make(), mod_name=n), folder) for n, make in makers.items()]


def kernel_model(folder: Path, family: str) -> Path:
    """Write a model with the convolution, depthwise and product kernels of one family."""
    from aot_models import build, quantized_net

    return write_model(build(quantized_net(), FAMILIES[family], mod_name=family), folder)


def tflite_models(folder: Path, models: Path) -> dict[str, list[Path]]:
    """Write every quantised model of a folder for every family, and return them by family."""
    from aot_models import build

    from slipway import relay

    found: dict[str, list[Path]] = {family: [] for family in FAMILIES}
    for path in sorted(models.glob("*.tflite")):
        module = relay.frontend.from_tflite(path.read_bytes())
        if all(dtype.startswith("float") for dtype in _input_dtypes(module[0])):
            continue
        for family, target in FAMILIES.items():
            name = f"{path.stem}_{family}".lower()
            found[family].append(write_model(build(module, target, mod_name=name), folder))
    return found


def _input_dtypes(module: Any) -> list[str]:
    return [param.type_annotation.dtype for param in module["main"].params]


def check_models(folder: Path, tflite: Path | None) -> set[Finding]:
    """Write the models into a folder and return what is found in them."""
    by_family = tflite_models(folder, tflite) if tflite is not None else {}
    for family in FAMILIES:
        by_family.setdefault(family, []).append(kernel_model(folder, family))
    everything = [*float_models(folder), *(m for models in by_family.values() for m in models)]
    print(f"{len(everything)} models, as portable C ...", file=sys.stderr, flush=True)
    found = run(everything, [folder])
    for family, models in by_family.items():
        print(f"{len(models)} models with {family} kernels ...", file=sys.stderr, flush=True)
        found |= run(models, [folder], CORES[family])
    return found


def check_runtime() -> set[Finding]:
    """Return what is found in the runtime."""
    return run(sorted((CRT / "src").glob("*.c")), [CRT / "include", CRT / "src"])


def shared_models() -> Path | None:
    """Return the folder of shared TFLite models, if there is one."""
    shared = Path(os.environ.get("SLIPWAY_SHARED", ROOT.parent / "shared"))
    folder = shared / "models" / "tflite"
    return folder if folder.is_dir() else None


def unjustified(found: set[Finding]) -> list[Finding]:
    """Return the findings of required and mandatory rules without a documented deviation."""
    allowed = deviations()
    return sorted(f for f in found if category(f[2]) != "advisory" and f[2] not in allowed)


def deviations() -> dict[str, str]:
    """Return the documented deviations: rule to reason."""
    lines = DEVIATIONS.read_text().splitlines()
    pairs = (line.split(maxsplit=1) for line in lines if line and not line.startswith("#"))
    return dict(pairs)


def category(rule: str) -> str:
    """Return how binding a rule is."""
    return "mandatory" if rule in MANDATORY else "advisory" if rule in ADVISORY else "required"


def main() -> int:
    """Check, print, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--tflite", type=Path, default=shared_models())
    args = parser.parse_args()
    print("the runtime ...", file=sys.stderr, flush=True)
    runtime = check_runtime()
    with tempfile.TemporaryDirectory() as name:
        models_found = check_models(Path(name), args.tflite)
    counts = [Counter(rule for _, _, rule in found) for found in (runtime, models_found)]
    lines = counted(*counts)
    print("\n".join(lines))
    if args.write:
        replace_after_mark(CRT / "README.md", lines)
        replace_after_mark(ROOT / "docs" / "micro.md", documented(counts[1]))
    missing = unjustified(runtime | models_found)
    for file, line, rule in missing[:40]:
        print(f"{file}:{line}: rule {rule} has no documented deviation ({DEVIATIONS})",
              file=sys.stderr)  # fmt: skip
    return 1 if missing else 0


def counted(runtime: Counter[str], models: Counter[str]) -> list[str]:
    """Return the table of all findings."""
    allowed = deviations()
    lines = ["| rule | category | runtime | generated | deviation |", "|---|---|---|---|---|"]
    for rule in sorted({*runtime, *models}, key=lambda r: tuple(map(int, r.split(".")))):
        reason = allowed.get(rule, "")
        lines.append(f"| {rule} | {category(rule)} | {runtime[rule]} | {models[rule]} | {reason} |")
    return lines


def documented(found: Counter[str]) -> list[str]:
    """Return the table of deviations in generated code."""
    allowed = deviations()
    rows = [f"| {rule} | {found[rule]} | {allowed[rule]} |" for rule in allowed if found[rule]]
    return ["| rule | findings | reason |", "|---|---|---|", *rows]


def replace_after_mark(path: Path, lines: Sequence[str]) -> None:
    """Put lines in the place of the table behind the mark."""
    head, mark, rest = path.read_text().partition("<!-- misra -->\n")
    rest = re.sub(r"\A(\|.*\n)*", "", rest)
    path.write_text(head + mark + "\n".join(lines) + "\n" + rest)


if __name__ == "__main__":
    sys.exit(main())
