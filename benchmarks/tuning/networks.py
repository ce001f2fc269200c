"""What ``slipway tune`` gains of whole networks, timed apart from the search.

    python -m benchmarks.tuning.networks [--seconds 90] [--models NAME_OR_FILE ...] [--rounds 31]
                                         [--target TARGET] [--json FILE]

Each network is searched by the command for so many seconds, in a database of its own, and then
compiled with the records and without: both run interleaved, one thread, and the ratio is the
median of the rounds', with the middle half of them.  MobileNetV2, ResNet-18 and BERT are those of
``../shared/models/make_models.py``; MobileViT-S is made by the packages torch and transformers,
and left out, with a word, where they are not.  With --json FILE the rows are kept there, and the
trials beside it: the same command goes on with the networks that have none.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

os.environ["SLIPWAY_NUM_THREADS"] = "1"

from benchmarks.tuning.kept import Kept
from slipway import relay
from slipway.backends.choices import using_records
from slipway.target import Target
from slipway.toolchain.native import cache_dir
from slipway.transform.context import PassContext
from slipway.tuning.model_bench import ModelBench
from slipway.tuning.runner import LocalRunner
from slipway.tuning.space import candidate_of

MAKER = Path(__file__).parents[2].parent / "shared" / "models" / "make_models.py"
NETWORKS = ("mobilenet_v2", "resnet18", "mobilevit_s", "bert")
WITHOUT, TUNED = candidate_of("without", {}), candidate_of("tuned", {})


def make_mobilevit(path):
    """Write MobileViT-S with random weights as an ONNX file, for images of 256x256."""
    import torch
    import transformers

    torch.manual_seed(0)

    class Logits(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.network = transformers.MobileViTForImageClassification(
                transformers.MobileViTConfig()
            ).eval()

        def forward(self, image):
            return self.network(image, return_dict=False)[0]

    torch.onnx.export(Logits(), (torch.rand(1, 3, 256, 256),), str(path), dynamo=False)


def network_file(name):
    """Return the ONNX file of a network, made at the first use; None where it cannot be."""
    if name.endswith(".onnx"):
        return Path(name)
    folder = cache_dir() / "models"
    path = folder / f"{name}.onnx"
    if path.is_file():
        return path
    folder.mkdir(parents=True, exist_ok=True)
    if name != "mobilevit_s":
        subprocess.run([sys.executable, str(MAKER), str(folder), name], check=True)
        return path
    try:
        make_mobilevit(path)
    except ImportError as error:
        print(f"{name} skipped: {error}")
        return None
    return path


def searched(path, target, seconds, folder, database):
    """Search a network by the command; return the records, what it printed and the time it took."""
    records, start = folder / f"{path.stem}.records", time.monotonic()
    command = [
        sys.executable, "-m", "slipway", "tune", str(path), "--target", target, "--json",
        "--seconds", str(seconds), "-o", str(records), "--database", str(database),
    ]  # fmt: skip
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return records, json.loads(done.stdout), time.monotonic() - start


def compared(path, target, records, rounds, folder):
    """Return the times of a run without tuning and the ratios with it, round by round."""
    module, params = relay.frontend.from_onnx(str(path))
    target = Target(target)
    with ModelBench(module, target, params, LocalRunner(), folder) as bench:
        paths = {WITHOUT: bench.build([]), TUNED: folder / f"tuned{target.upload_suffix}"}
        with using_records(str(records)):
            relay.build(module, target, params=params).export_library(str(paths[TUNED]))
        times = bench.times(paths, rounds)
        wrong = bench.verify(paths[TUNED])
    pairs = zip(times[TUNED], times[WITHOUT], strict=True)
    return times[WITHOUT], sorted(after / before for after, before in pairs), wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=90.0, help="of search, for each")
    parser.add_argument(
        "--models", nargs="+", default=NETWORKS, metavar="NAME", help="or FILE.onnx"
    )
    parser.add_argument("--rounds", type=int, default=31, help="of the comparison")
    parser.add_argument("--target", default="llvm -mcpu=native")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    kept = Kept(options.json, options)
    print(
        "| network | untuned ms | tuned / untuned | middle half | of its last word | choices | s |"
    )
    print("| --- | ---: | ---: | --- | ---: | ---: | ---: |", flush=True)
    for path in filter(None, map(network_file, options.models)):
        row = kept.row(path.stem)
        if row is None:
            row = row_of(path, options, kept.database(path.stem))
            kept.add(row)
        print(
            f"| {row['name']} | {row['ms']:.2f} | {row['ratio']:.3f} | {row['low']:.3f}.."
            f"{row['high']:.3f} | {row['said']:.3f} | {row['choices']} | {row['seconds']:.0f} |"
            f"{' WRONG: ' + row['wrong'] if row['wrong'] else ''}",
            flush=True,
        )


def row_of(path, options, database):
    """Search a network, and compare it with itself without tuning."""
    with tempfile.TemporaryDirectory() as name, PassContext(opt_level=3):
        folder = Path(name)
        trials = database or folder / "trials.sqlite"
        records, said, took = searched(path, options.target, options.seconds, folder, trials)
        before, ratios, wrong = compared(path, options.target, records, options.rounds, folder)
        choices = len(records.read_text().splitlines())
    quarter, whole = len(ratios) // 4, said.get("model", {"score": 1.0})
    return {
        "name": path.stem, "ms": statistics.median(before) * 1e3,
        "ratio": statistics.median(ratios),
        "low": ratios[quarter], "high": ratios[-1 - quarter],
        "said": whole["score"], "choices": choices, "seconds": took, "wrong": wrong,
    }  # fmt: skip


if __name__ == "__main__":
    main()
