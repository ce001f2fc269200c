"""Every processor and feature that LLVM lists, with a small real and a small integer model.

    python -m benchmarks target_sweep [--triples x86_64-linux-gnu,...] [--json FILE] [--part 1/4]

Each target is a triple with one -mcpu, or with one feature turned on or off.  Each must give
objects, or be refused in words: an end of LLVM's process, or an error that is a defect of ours, is
a finding, and so is a refusal of a target as LLVM lists it.  Exit code 1 when anything was found.
"""

import argparse
import json
import os
import time
from collections import Counter
from pathlib import Path

import numpy as np

import slipway as tvm
from benchmarks.fuzz_graphs import campaign
from slipway import relay
from slipway.errors import SlipwayError, TargetError
from slipway.target import cpus
from slipway.target.triple import parse_triple

TRIPLES = (
    "x86_64-linux-gnu",
    "i686-linux-gnu",
    "aarch64-linux-gnu",
    "armv7a-linux-gnueabihf",
    "thumbv7em-none-eabi",
    "riscv32-unknown-none-elf",
    "riscv64-linux-gnu",
    "wasm32",
    "hexagon-unknown-linux-musl",
)
LIMIT_S = 300.0
# How an answer begins.
COMPILED, REFUSED, LLVM_REFUSED, FOUND = "compiled", "target refused", "code refused", "found"


def real_model() -> relay.Function:
    """Return a convolution, a pool, a dense layer and a softmax."""
    rng = np.random.default_rng(0)
    x = relay.var("x", shape=(1, 3, 9, 9))
    y = relay.nn.conv2d(x, rng.standard_normal((8, 3, 3, 3)).astype("float32"), padding=1)
    y = relay.nn.max_pool2d(relay.nn.relu(y), (2, 2), (2, 2))
    y = relay.nn.dense(relay.nn.batch_flatten(y), rng.standard_normal((5, 128)).astype("float32"))
    return relay.Function([x], relay.nn.softmax(relay.tanh(y)))


def integer_model() -> relay.Function:
    """Return a convolution and a dense layer of bytes, requantised."""
    rng = np.random.default_rng(0)

    def ints(*shape):
        return rng.integers(-90, 91, shape).astype(np.int8)

    def stored(total, count):
        factor = np.full(count, 1500000000, np.int32)
        scaled = relay.qnn.op.rescale(total, factor, np.full(count, -7, np.int32))
        return relay.cast(relay.clip(scaled, -128, 127), "int8")

    x = relay.var("x", shape=(1, 8, 8, 4), dtype="int8")
    y = relay.qnn.op.conv2d_nhwc(x, ints(3, 3, 4, 8), pad_value=0)
    y = relay.reshape(stored(y, 8), (1, 288))
    return relay.Function([x], stored(relay.nn.dense(y, ints(5, 288), out_dtype="int32"), 5))


def targets_of(triple: str) -> list[str]:
    """Return the triple with each of its CPUs, and with each feature on and off."""
    table = parse_triple(triple).table
    base = f"llvm -mtriple={triple}"
    named = [f"{base} -mcpu={cpu}" for cpu in cpus.known_cpus(table)]
    changed = [f"{base} -mattr={sign}{f}" for f in cpus.features_of(table) for sign in "+-"]
    return [base, *named, *changed]


def verdict(target: str) -> str:
    """Compile both models for a target; return how it ended, and why."""
    for name, model in (("real", real_model), ("integer", integer_model)):
        try:
            with tvm.transform.PassContext(opt_level=3):
                library = relay.build(model(), target=target)
            if not library.lib.compiled.objects:
                return f"{FOUND}: {name}: no object"
        except TargetError as error:
            return f"{REFUSED}: {error}"
        except SlipwayError as error:
            text = " ".join(str(error).split())
            ours = "defect" in text or "Assertion" in text or "signal" in text
            return f"{FOUND if ours else LLVM_REFUSED}: {name}: {text}"
        except Exception as error:  # whatever else it raises is found
            return f"{FOUND}: {name}: {type(error).__name__}: {error}"
    return COMPILED


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--triples", default=",".join(TRIPLES), help="with commas between")
    parser.add_argument("--json", type=Path, help="write every target's answer here")
    parser.add_argument("--part", default="1/1", help="I/N: every N-th target, from the I-th on")
    options = parser.parse_args()
    os.environ.setdefault("SLIPWAY_KERNEL_CACHE", "0")
    first, step = map(int, options.part.split("/"))
    answers: dict[str, str] = {}
    for triple in options.triples.split(","):
        start = time.monotonic()
        targets = targets_of(triple)[first - 1 :: step]
        for found in campaign.isolated(
            lambda n, t=targets: verdict(t[n]), range(len(targets)), LIMIT_S
        ):
            target = targets[found.seed]
            answers[target] = found.problem
            if found.problem != COMPILED:
                print(f"{target}: {found.problem}", flush=True)
        counts = Counter(answers[t].split(":")[0] for t in targets)
        listed = ", ".join(f"{n} {what}" for what, n in sorted(counts.items()))
        print(f"{triple}: {len(targets)}: {listed}, {time.monotonic() - start:.0f} s", flush=True)
    if options.json:
        options.json.write_text(json.dumps(answers, indent=1))
    fine = (COMPILED, REFUSED, LLVM_REFUSED)
    return 0 if all(a.split(":")[0] in fine for a in answers.values()) else 1
