"""Feed damaged files to what reads them: each is read, or ends in one SlipwayError.

    python -m benchmarks fuzz_importers onnx --cases 100000 --jobs 2
    python -m benchmarks fuzz_importers tflite --cases 100000 --seed 7
    python -m benchmarks fuzz_importers artifacts --cases 100000   # what export writes, not run
    python -m benchmarks fuzz_importers relay --cases 100000       # functions as text
    python -m benchmarks fuzz_importers programs --cases 5000      # .pt2 files of torch.export
    python -m benchmarks fuzz_importers records --cases 20000      # logs and databases of trials
    python -m benchmarks fuzz_importers language --cases 20000     # GGUF, transformers' folders
    python -m benchmarks fuzz_importers onnx --only 1234           # one case again, with its error
    python -m benchmarks fuzz_importers tflite --corpus FOLDER     # own seed files

Case N of seed S is always the same file: a seed model with some of its fields or bytes changed.
Cases run in worker processes with an address-space limit.  What counts as found: another exception
than SlipwayError (`MemoryError` included), an InternalError, a worker that dies, a case that takes
longer than LIMIT_S, a worker that grows by more than GROWTH_BYTES.  Every model that is read goes
through type inference; one in `--build-every` is also compiled.  Exit code 1 when anything was
found; `--save FOLDER` keeps the files.
"""

import argparse
import collections
import json
import multiprocessing
import multiprocessing.connection
import random
import resource
import signal
import sys
import time
import traceback
import warnings
from pathlib import Path

from benchmarks.fuzz_importers import artifacts, language_models, programs, records
from benchmarks.fuzz_importers.damage import mutated

LIMIT_S = 10.0  # of processor time, for one case
MEMORY_BYTES = 6 << 30  # address space of a worker; an idle one maps about 1.5 GB
GROWTH_BYTES = 1 << 30  # of a worker's peak memory, over that before the first case
MAX_SEED_BYTES = 60_000


# -- corpora ---------------------------------------------------------------------------------------


def onnx_corpus():
    """Return (name, bytes) of small models: the conformance cases of the onnx package."""
    from benchmarks.conformance import collect

    found = []
    for case in collect():
        data = case.model.SerializeToString()
        if len(data) <= MAX_SEED_BYTES:
            found.append((case.name, data))
    return found


def tflite_corpus():
    """Return (name, bytes) of one small model per operator and form: the operator tests' own."""
    sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "frontends" / "tflite"))
    from corpus import files

    return files()


def relay_corpus():
    """Return (name, bytes) of random graphs as text, with their constants."""
    from benchmarks.fuzz_graphs.draw import draw
    from benchmarks.fuzz_graphs.graph import relay_function
    from slipway.relay import astext

    found = []
    for seed in range(80):
        text = astext(relay_function(draw(seed, (1, 5))), show_meta_data=True).encode()
        if len(text) <= MAX_SEED_BYTES:
            found.append((f"graph {seed}", text))
    return found


def relay_module(data):
    """Parse text, as a program reads it from a file."""
    from slipway import relay
    from slipway.ir.function import IRModule

    found = relay.parse(data.decode(errors="replace"))
    return found if isinstance(found, IRModule) else IRModule.from_expr(found), {}


def folder_corpus(folder):
    return [
        (p.name, p.read_bytes())
        for p in sorted(Path(folder).iterdir())
        if p.is_file() and p.stat().st_size <= 20 * MAX_SEED_BYTES
    ]


# -- running ---------------------------------------------------------------------------------------


class _TooLong(BaseException):
    """The processor time of one case is used up."""


def attempt(kind, data, build):
    """Import, and perhaps compile, one file; return what became of it."""
    from slipway import relay
    from slipway.errors import InternalError, SlipwayError

    if kind in ("artifacts", "records"):
        name, content = data
        try:
            (artifacts.read if kind == "artifacts" else records.read_records)(name, content)
        except InternalError:
            raise
        except SlipwayError:
            return "refused"
        return "read"
    readers = {
        "onnx": relay.frontend.from_onnx,
        "tflite": relay.frontend.from_tflite,
        "relay": relay_module,
        "programs": programs.read_program,
        "language": language_models.read_language,
    }
    reader = readers[kind]
    try:
        mod, params = reader(data)
    except InternalError:  # an exception that nobody raised on purpose
        raise
    except SlipwayError:
        return "refused"
    if not build:
        return "read"
    try:
        relay.build(mod, target="llvm", params=params)
    except InternalError:
        raise
    except SlipwayError:
        return "refused by the compiler"
    return "compiled"


def _alarm(signum, frame):
    raise _TooLong


def worker(kind, folder, seed, numbers, build_every, results):
    """Run cases; put (number, outcome, detail) of each, after (number, None, "") at its start."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGPROF, _alarm)
    corpus = load_corpus(kind, folder)
    allowed = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 + GROWTH_BYTES
    for number in numbers:
        results.send((number, None, ""))
        name, data = case(kind, corpus, seed, number)
        signal.setitimer(signal.ITIMER_PROF, LIMIT_S)
        try:
            outcome = attempt(kind, data, build_every and number % build_every == 0)
            detail = name
        except _TooLong:
            outcome, detail = "FOUND", f"{name}: longer than {LIMIT_S:g} s"
        except Exception as error:
            outcome, detail = "FOUND", f"{name}: {_where(error)}"
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        if peak > allowed and outcome != "FOUND":
            outcome, detail = "FOUND", f"{name}: memory rose to {peak >> 20} MB"
        allowed = max(allowed, peak)  # a peak counts once
        results.send((number, outcome, detail))
    results.send((-1, None, ""))


def _where(error):
    error = error.__cause__ if error.__cause__ and "InternalError" in repr(error) else error
    steps = [s for s in traceback.extract_tb(error.__traceback__) if "slipway" in s.filename]
    location = f"{Path(steps[-1].filename).name}:{steps[-1].lineno}" if steps else "?"
    text = (str(error).splitlines() or [""])[0][:160]
    return f"{type(error).__name__}: {text} ({location})"


CORPORA = {
    "onnx": onnx_corpus,
    "tflite": tflite_corpus,
    "relay": relay_corpus,
    "artifacts": artifacts.artifact_corpus,
    "programs": programs.program_corpus,
    "records": records.record_corpus,
    "language": language_models.language_corpus,
}


def load_corpus(kind, folder):
    return folder_corpus(folder) if folder else CORPORA[kind]()


def case(kind, corpus, seed, number):
    """Return (name, what `attempt` takes) of case `number`."""
    if kind in ("onnx", "tflite", "relay"):
        return mutated(kind, corpus, seed, number)
    if kind == "artifacts":
        name, data = artifacts.mutated_artifact(corpus, seed, number)
        return name, (name, data)
    rng = random.Random(f"{kind} {seed} {number}")
    name, data = rng.choice(corpus)
    if kind == "records":
        return name, (name, records.mutate_records(name, data, rng))
    mutate = programs.mutate_program if kind == "programs" else language_models.mutate_language
    return name, mutate(data, rng)


def run_cases(kind, cases, seed=0, folder="", build_every=0, jobs=1, report=None):
    """Run cases 0 to `cases` - 1; return (counts by outcome, [(number, what was found)])."""
    context = multiprocessing.get_context("spawn")
    counts, found, waiting = collections.Counter(), [], []
    share = [list(range(job, cases, jobs)) for job in range(jobs)]

    def start(numbers):
        receiver, sender = context.Pipe(duplex=False)
        process = context.Process(
            target=worker, args=(kind, folder, seed, numbers, build_every, sender), daemon=True
        )
        process.start()
        sender.close()
        waiting.append([process, receiver, numbers, None, time.monotonic()])

    for numbers in share:
        if numbers:
            start(numbers)
    while waiting:
        ready = multiprocessing.connection.wait([w[1] for w in waiting], timeout=5)
        for entry in list(waiting):
            process, receiver, numbers, current, since = entry
            ended = False
            if receiver in ready:
                try:
                    number, outcome, detail = receiver.recv()
                except EOFError:
                    ended = True
                else:
                    entry[4] = time.monotonic()
                    if number < 0:
                        waiting.remove(entry)
                        process.join()
                        continue
                    entry[3] = number if outcome is None else None
                    if outcome is not None:
                        counts[outcome] += 1
                        if outcome == "FOUND":
                            found.append((number, detail))
                        if report is not None:
                            report(counts, found)
            # Code that never returns to Python ignores the timer, so the parent has one too.
            elif current is not None and time.monotonic() - since > 12 * LIMIT_S:
                process.kill()
                ended = True
            if ended:
                process.join()
                waiting.remove(entry)
                if current is None:
                    raise RuntimeError(f"a worker ended by itself ({process.exitcode})")
                counts["FOUND"] += 1
                found.append((current, f"the process ended with {process.exitcode}"))
                rest = numbers[numbers.index(current) + 1 :]
                if rest:
                    start(rest)
    return counts, found


def save(args, number, data):
    """Keep the file of a case."""
    Path(args.save).mkdir(parents=True, exist_ok=True)
    content = data[1] if isinstance(data, tuple) else data
    Path(args.save, f"{args.kind}_{number}").write_bytes(content)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kind", choices=list(CORPORA))
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--corpus", default="", help="a folder of seed files")
    parser.add_argument("--build-every", type=int, default=10, help="compile one case in so many")
    parser.add_argument("--only", type=int, help="run one case in this process")
    parser.add_argument("--save", default="", help="a folder for the files of what is found")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    if args.only is not None:
        name, data = case(args.kind, load_corpus(args.kind, args.corpus), args.seed, args.only)
        if args.save:
            save(args, args.only, data)
        print(name, attempt(args.kind, data, args.build_every and True))
        return 0
    began, last, told = time.monotonic(), 0.0, 0

    def report(counts, found):
        nonlocal last, told
        for number, what in found[told:]:
            print(f"case {number}: {what}", file=sys.stderr)
        told = len(found)
        if time.monotonic() - last > 30:
            last = time.monotonic()
            done = sum(counts.values())
            print(f"{done} cases, {len(found)} found, {last - began:.0f} s", file=sys.stderr)

    counts, found = run_cases(
        args.kind, args.cases, args.seed, args.corpus, args.build_every, args.jobs, report
    )
    corpus = load_corpus(args.kind, args.corpus) if args.save and found else []
    for number, what in sorted(found):
        if corpus:
            save(args, number, case(args.kind, corpus, args.seed, number)[1])
        if not args.json:
            print(f"case {number}: {what}")
    if args.json:
        print(json.dumps({"counts": counts, "found": sorted(found)}))
    else:
        print(", ".join(f"{n} {k}" for k, n in sorted(counts.items())))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
