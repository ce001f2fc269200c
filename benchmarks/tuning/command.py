"""What a search of two minutes gains on layers that no schedule was fitted to.

    python -m benchmarks tuning [--seconds 120] [--only NAME ...] [--rounds 41] [--json FILE]
                                [--database FILE] [--target TARGET] [--layouts-only]
                                [--core cortex-a53] [--transfer FILE] [--processor-time] [--write]
    python -m benchmarks tuning --from "llvm -mcpu=znver3" --target "llvm -mcpu=znver4" --json FILE
    python -m benchmarks tuning --beside metaschedule --peer PYTHON [--population 512]
    python -m benchmarks tuning --sample 48 --core cortex-a53 --database FILE
    python -m benchmarks tuning --learned FILE
    python -m benchmarks tuning --few 64 --many 2000 --core cortex-a53 [--only small_1 ...]
                                [--database FILE] [--json FILE]

Thirty layers of odd channels, skinny products, depthwise and grouped convolutions, each a model of
one layer with plain inputs and outputs, share the seconds: first their layouts, then the kernels
that come of them.  Then each model compiled with what was found and without tuning run interleaved,
in a process of their own; the ratio is the median of the rounds', with the middle half of them.
Outputs are held against the operators' NumPy definitions before a candidate may win, and once more
at the end.  One thread.  --from searches on another target of this machine first, and times what
follows from that without a trial beside what a search of as many seconds on this one finds.
--sample measures candidates of sixty small layers drawn at random, and
--learned says how well trees rank those of a kernel that they have seen no trial of, and --few
what so many trials of a search find beside the best of --many candidates.  With --core
all is timed by the clock of a modelled core, without noise.

Beside each layer stands what this machine could do at best, by its multiply-adds and by its bytes
(`limits.py`), and which part of that it does; --write puts that table into docs/tuning.md.  On a
machine with other work --processor-time measures what a run takes of the processor, not how long.

With --json FILE everything is kept in FILE and databases beside it, and the same command goes on
where it was: the seconds that are left, the layers that have no row.

--beside metaschedule gives MetaSchedule the same layers and seconds, and times its winners and
onnxruntime in the same rounds.  --peer (or SLIPWAY_TVM_PYTHON) is the Python of an environment
with apache-tvm==0.27.*, apache-tvm-ffi==0.1.14.post0, xgboost-cpu, psutil and cloudpickle; without
one MetaSchedule is left out, and the output says so.
"""

import argparse
import os
import tempfile
from pathlib import Path

os.environ["SLIPWAY_NUM_THREADS"] = "1"

from benchmarks.tuning.beside import (
    PEER,
    MetaSchedule,
    PeerError,
    compare_beside,
    print_beside,
)
from benchmarks.tuning.few import FEW_LAYERS, compare_few
from benchmarks.tuning.kept import Kept
from benchmarks.tuning.layers import LAYERS, small_layers
from benchmarks.tuning.layers_tuned import compare, search, take_over
from benchmarks.tuning.learned import print_learned, sample
from benchmarks.tuning.limits import write_table
from benchmarks.tuning.processor_clock import use_processor_time
from slipway.target import Target
from slipway.transform.context import PassContext
from slipway.tuning.database import Database
from slipway.tuning.runner import LocalRunner, ModelledRunner, NodeRunner


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=120.0, help="of search, in all")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these layers")
    parser.add_argument("--rounds", type=int, default=41, help="of the comparison")
    parser.add_argument("--target", help="default: this machine, or the core")
    parser.add_argument("--core", help="a modelled core: cortex-a53, -a72, -a76; or node")
    parser.add_argument("--database", help="keep the trials here, and go on with what it has")
    parser.add_argument("--transfer", metavar="FILE", help="no search: trials of another target")
    parser.add_argument("--layouts-only", action="store_true", help="search no kernels")
    parser.add_argument("--sample", type=int, metavar="N", help="of each small layer's kernels")
    parser.add_argument("--learned", metavar="FILE", help="no search: what its trials teach")
    parser.add_argument("--few", type=int, metavar="N", help="trials, beside the best of --many")
    parser.add_argument("--many", type=int, metavar="N", default=2000, help="candidates for --few")
    parser.add_argument("--beside", choices=["metaschedule"], help="searches as long, by another")
    parser.add_argument(
        "--peer", metavar="PYTHON", default=os.environ.get(PEER), help="of --beside"
    )
    parser.add_argument("--population", type=int, default=512, help="of MetaSchedule's search")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--from", dest="from_target", metavar="TARGET", help="search there first")
    parser.add_argument("--processor-time", action="store_true", help="for a busy machine")
    parser.add_argument("--write", action="store_true", help="the limits, into docs/tuning.md")
    options = parser.parse_args()
    if options.learned:
        print_learned(Database(options.learned))
        return
    there = small_layers() if options.few else LAYERS
    unknown = sorted(set(options.only or ()) - set(there))
    if unknown:
        parser.error(f"no layer {', '.join(unknown)}; there are {', '.join(there)}")
    layers = {name: there[name] for name in options.only or (FEW_LAYERS if options.few else there)}
    runner = LocalRunner()
    if options.core:
        runner = NodeRunner() if options.core == "node" else ModelledRunner(options.core)
    target = Target(options.target or (runner.target if options.core else "llvm -mcpu=native"))
    with PassContext(opt_level=3), tempfile.TemporaryDirectory() as folder:
        if options.processor_time:
            use_processor_time(Path(folder))
        if options.sample:
            if not options.database:
                parser.error("--sample needs --database FILE, which gets the trials")
            sample(options.sample, target, Database(options.database), runner)
        elif options.few:
            if not options.core or options.core == "node":
                parser.error("--few needs the clock without noise of a modelled --core")
            kept = Kept(options.json, options)
            counts = options.few, options.many
            compare_few(*counts, layers, target, options.database, runner, kept)
        else:
            tuned(layers, target, runner, options, Path(folder))


def tuned(layers, target, runner, options, folder):
    """Search the layers, and compare what was found with the default."""
    kept = Kept(options.json, options)

    def kept_at(name):
        return Database(kept.database(name) or folder / f"{name}.sqlite")

    def searched(name, where, database):
        left = kept.left(name, options.seconds)
        if left:
            search(
                layers, where, database, runner, left, lambda seconds: kept.spent(name, seconds),
                layouts_only=options.layouts_only,
            )  # fmt: skip
        return database

    databases = {}
    if options.transfer or options.from_target:
        known = (
            Database(options.transfer)
            if options.transfer
            else searched("there", Target(options.from_target), kept_at("there"))
        )
        databases["transferred"] = Database(folder / "transferred.sqlite")
        take_over(layers, target, known, databases["transferred"])
    if not options.transfer:
        kept_here = Database(options.database) if options.database else kept_at("tuned")
        databases = {"tuned": searched("tuned", target, kept_here), **databases}
    if options.beside:
        found = (target, databases["tuned"], runner, options.rounds)
        ours = len(databases["tuned"]), kept.seconds.get("tuned", 0.0)
        for row in beside(layers, options, found, ours, folder):
            kept.add({"name": row["layer"], **row})
        return
    compare(layers, target, databases, runner, options.rounds, kept, folder)
    if options.write:
        write_table([kept.row(name) for name in layers])


def beside(layers, options, found, ours, folder):
    """Have MetaSchedule search as long, time the winners of both, and return the rows."""
    searched, peer = {"slipway": ours}, None
    if options.peer:
        peer = MetaSchedule(options.peer)
        try:
            done = peer.search(layers, options.seconds, options.population)
            searched["metaschedule"] = done["trials"], done["seconds"]
        except PeerError as error:
            print(f"MetaSchedule: {error}")
            peer.close()
            peer = None
    else:
        print(f"MetaSchedule skipped: name a Python that has apache-tvm by --peer or {PEER}")
    try:
        rows = compare_beside(layers, *found, peer, folder)
    finally:
        if peer is not None:
            peer.close()
    print_beside(rows, searched)
    return rows


if __name__ == "__main__":
    main()
