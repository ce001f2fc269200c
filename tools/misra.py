"""Check the device runtime and generated models against MISRA C:2012 with cppcheck's addon.

python tools/misra.py [--write]

Prints the findings by rule.  A required or mandatory rule with findings must stand in
src/slipway/crt/misra_deviations.txt with its reason, else the exit code is 1.  `--write` puts the
counts into src/slipway/crt/README.md.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CRT = ROOT / "src" / "slipway" / "crt"
DEVIATIONS = CRT / "misra_deviations.txt"
MANDATORY = {"9.1", "13.6", "17.3", "17.4", "17.6", "19.1", "21.13", "21.17", "21.18", "21.19",
             "21.20", "22.2", "22.4", "22.5", "22.6"}  # fmt: skip
ADVISORY = {"2.3", "2.4", "2.5", "2.6", "2.7", "4.2", "5.9", "8.7", "8.9", "8.11", "8.13", "10.5",
            "11.4", "11.5", "12.1", "12.3", "12.4", "13.3", "13.4", "15.1", "15.4", "15.5", "17.5",
            "17.8", "18.4", "18.5", "19.2", "20.1", "20.5"}  # fmt: skip


Finding = tuple[str, int, str]


def run(sources: Sequence[Path], includes: Sequence[str | Path]) -> set[Finding]:
    """Return (file, line, rule) of each finding."""
    command = ["cppcheck", "--addon=misra", "--quiet", "--enable=style", "-j2", "--inline-suppr",
               "-DSLW_STATIC", "-DSLW_NO_THREADS", "-D__GNUC__=12", "--template={file}:{line}:{id}",
               *(f"-I{i}" for i in includes), *map(str, sources)]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = re.findall(r"^(.+?):(\d+):misra-c2012-([\d.]+)$", done.stderr, re.MULTILINE)
    return {(Path(name).name, int(line), rule) for name, line, rule in found}


def generated_models(folder: Path) -> list[Path]:
    """Write the test models' C into a folder and return the sources."""
    sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests" / "executor")]
    from aot_models import build, keyword_net, residual_net

    for name, make in (("keyword", keyword_net), ("residual", residual_net)):
        sources = build(make(), mod_name=name).sources
        (folder / sources.header_name).write_text(sources.header)
        (folder / sources.source_name).write_text(sources.source)
    return sorted(folder.glob("*.c"))


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
    write = parser.parse_args().write
    with tempfile.TemporaryDirectory() as folder:
        models = generated_models(Path(folder))
        runtime = run(sorted((CRT / "src").glob("*.c")), [CRT / "include", CRT / "src"])
        models_found = run(models, [folder])
    allowed = deviations()
    lines = ["| rule | category | runtime | generated | deviation |", "|---|---|---|---|---|"]
    counts = [Counter(rule for _, _, rule in found) for found in (runtime, models_found)]
    missing = []
    for rule in sorted({*counts[0], *counts[1]}, key=lambda r: tuple(map(int, r.split(".")))):
        reason = allowed.get(rule, "")
        kind = category(rule)
        if kind != "advisory" and not reason:
            missing.append(rule)
        lines.append(f"| {rule} | {kind} | {counts[0][rule]} | {counts[1][rule]} | {reason} |")
    print("\n".join(lines))
    if write:
        text = (CRT / "README.md").read_text()
        head = text.partition("<!-- misra -->")[0]
        (CRT / "README.md").write_text(head + "<!-- misra -->\n" + "\n".join(lines) + "\n")
    if missing:
        places = sorted((f, n, r) for f, n, r in runtime | models_found if r in missing)
        for name, line, rule in places[:40]:
            print(f"{name}:{line}: rule {rule}", file=sys.stderr)
        print(
            f"rules without a documented deviation: {', '.join(missing)} ({DEVIATIONS})",
            file=sys.stderr,
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
