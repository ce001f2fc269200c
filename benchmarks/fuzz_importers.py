"""Feed damaged model files to the importers: each ends as a compiled module or one SlipwayError.

    python -m benchmarks fuzz_importers onnx --cases 100000 --jobs 2
    python -m benchmarks fuzz_importers tflite --cases 100000 --seed 7
    python -m benchmarks fuzz_importers onnx --only 1234           # one case again, with its error
    python -m benchmarks fuzz_importers tflite --corpus FOLDER     # own seed files

Case N of seed S is always the same file: a seed model with some of its fields or bytes changed.
Cases run in worker processes with an address-space limit.  What counts as found: another exception
than SlipwayError (`MemoryError` included), a worker that dies, a case that takes longer than
LIMIT_S, a worker that grows by more than GROWTH_BYTES.  Every file that is read goes through type
inference; one in `--build-every` is also compiled.  Exit code 1 when anything was found; `--save
FOLDER` keeps the files.
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

LIMIT_S = 10.0  # of processor time, for one case
MEMORY_BYTES = 6 << 30  # address space of a worker; an idle one maps about 1.5 GB
GROWTH_BYTES = 1 << 30  # of a worker's peak memory, over that before the first case
MAX_SEED_BYTES = 60_000
INTERESTING = (0, 1, 2, 3, 7, 8, 127, 128, 255, 256, 65535, 2**31 - 1, 2**31, 2**40, 2**62,
               2**63 - 1, -1, -2, -8, -128, -(2**31), -(2**63))  # fmt: skip


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
    sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "frontends" / "tflite"))
    from corpus import files

    return files()


def folder_corpus(folder):
    return [
        (p.name, p.read_bytes())
        for p in sorted(Path(folder).iterdir())
        if p.is_file() and p.stat().st_size <= 20 * MAX_SEED_BYTES
    ]


# -- mutations -------------------------------------------------------------------------------------


def mutate_bytes(data, rng):
    """Change, insert, remove, repeat or cut bytes, or overwrite aligned little-endian integers."""
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 4, 8, 16))):
        if not data:
            break
        place = rng.randrange(len(data))
        match rng.randrange(8):
            case 0:
                data[place] = rng.randrange(256)
            case 1:
                data[place] ^= 1 << rng.randrange(8)
            case 2:
                del data[place : place + rng.randrange(1, 20)]
            case 3:
                data[place:place] = bytes(rng.randrange(256) for _ in range(rng.randrange(1, 10)))
            case 4:
                width = rng.choice((2, 4, 4, 8))
                place -= place % width
                value = rng.choice(INTERESTING) % (1 << (8 * width))
                data[place : place + width] = value.to_bytes(width, "little")
            case 5:
                other = rng.randrange(len(data))
                length = rng.randrange(1, 32)
                data[place : place + length] = data[other : other + length]
            case 6:
                width = rng.choice((1, 2, 4))
                value = int.from_bytes(data[place : place + width], "little")
                value = (value + rng.choice((-4, -1, 1, 4, 16))) % (1 << (8 * width))
                data[place : place + width] = value.to_bytes(width, "little")
            case _:
                if rng.random() < 0.2:
                    del data[place:]
    return bytes(data)


def _messages(message, depth=0):
    """Yield a protobuf message and those inside it."""
    yield message
    if depth > 12:
        return
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        for inner in value if hasattr(value, "add") else [value]:
            yield from _messages(inner, depth + 1)


def _other_value(field, old, names, rng):
    if field.cpp_type == field.CPPTYPE_STRING:
        new = rng.choice([*names, "", "NOTSET", "Add", "Loop", "../../etc/passwd"])
        return new.encode() if isinstance(old, bytes) else new
    if field.cpp_type in (field.CPPTYPE_FLOAT, field.CPPTYPE_DOUBLE):
        return rng.choice((0.0, -1.0, 1e30, float("nan"), float("inf"), 0.5, -0.0))
    if field.cpp_type == field.CPPTYPE_ENUM:
        return rng.choice([v.number for v in field.enum_type.values])
    low, high = -(2**63), 2**63 - 1
    if field.cpp_type in (field.CPPTYPE_INT32, field.CPPTYPE_UINT32):
        low, high = -(2**31), 2**31 - 1
    new = rng.choice((*INTERESTING, *(old + d for d in (-1, 1, 2, -2)), rng.randrange(1, 40)))
    return min(max(new, low), high)


def mutate_fields(data, rng):
    """Change fields of an ONNX model: sizes, codes, names, attributes, order and count of parts."""
    import onnx

    model = onnx.ModelProto()
    model.ParseFromString(data)
    for _ in range(rng.choice((1, 1, 2, 3, 6))):
        messages = [m for m in _messages(model) if m.ListFields()]
        message = rng.choice(messages)
        names = [n for node in model.graph.node for n in (*node.input, *node.output, node.op_type)]
        names += [i.name for i in model.graph.input]
        field, value = rng.choice(message.ListFields())
        repeated = hasattr(value, "extend")
        action = rng.randrange(8)
        try:
            if action == 0:
                message.ClearField(field.name)
            elif repeated and action in (1, 2) and len(value):
                del value[rng.randrange(len(value))]
            elif repeated and action in (3, 4) and len(value):
                value.append(value[rng.randrange(len(value))])
            elif repeated and field.message_type is None and len(value):
                place = rng.randrange(len(value))
                value[place] = _other_value(field, value[place], names, rng)
            elif repeated and len(value) > 1:
                parts = list(value)
                rng.shuffle(parts)
                copies = [type(p).FromString(p.SerializeToString()) for p in parts]
                del value[:]
                value.extend(copies)
            elif not repeated and field.message_type is None:
                if isinstance(value, bytes) and action > 4:
                    setattr(message, field.name, mutate_bytes(value, rng))
                else:
                    setattr(message, field.name, _other_value(field, value, names, rng))
        except (TypeError, ValueError, UnicodeDecodeError):
            continue
    return model.SerializeToString()


def mutated(kind, corpus, seed, number):
    """Return (seed file's name, bytes) of case `number`."""
    rng = random.Random(f"{kind} {seed} {number}")
    name, data = rng.choice(corpus)
    if kind == "onnx" and rng.random() < 0.6:
        return name, mutate_fields(data, rng)
    return name, mutate_bytes(data, rng)


# -- running ---------------------------------------------------------------------------------------


class _TooLong(BaseException):
    """The processor time of one case is used up."""


def attempt(kind, data, build):
    """Import, and perhaps compile, one file; return what became of it."""
    from slipway import relay
    from slipway.errors import SlipwayError

    reader = relay.frontend.from_onnx if kind == "onnx" else relay.frontend.from_tflite
    try:
        mod, params = reader(data)
    except SlipwayError:
        return "refused"
    if not build:
        return "read"
    try:
        relay.build(mod, target="llvm", params=params)
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
        name, data = mutated(kind, corpus, seed, number)
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
    steps = [s for s in traceback.extract_tb(error.__traceback__) if "slipway" in s.filename]
    place = f"{Path(steps[-1].filename).name}:{steps[-1].lineno}" if steps else "?"
    text = (str(error).splitlines() or [""])[0][:160]
    return f"{type(error).__name__}: {text} ({place})"


def load_corpus(kind, folder):
    if folder:
        return folder_corpus(folder)
    return onnx_corpus() if kind == "onnx" else tflite_corpus()


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


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kind", choices=["onnx", "tflite"])
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
        name, data = mutated(args.kind, load_corpus(args.kind, args.corpus), args.seed, args.only)
        if args.save:
            Path(args.save, f"{args.kind}_{args.only}").write_bytes(data)
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
            _, data = mutated(args.kind, corpus, args.seed, number)
            Path(args.save, f"{args.kind}_{number}").write_bytes(data)
        if not args.json:
            print(f"case {number}: {what}")
    if args.json:
        print(json.dumps({"counts": counts, "found": sorted(found)}))
    else:
        print(", ".join(f"{n} {k}" for k, n in sorted(counts.items())))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
