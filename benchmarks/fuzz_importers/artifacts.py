"""Seeds for the fuzzer of artifacts, and the readers that get them: nothing of them is run."""

import io
import random
import tarfile
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.fuzz_importers.damage import mutate_bytes

SEEDS = {
    "tar": "an exported model, its sums made anew after the damage",
    "so": "the same as a shared library",
    "o": "an object", "a": "an archive of objects",
    "graph": "graph.bin", "json": "graph.json", "params": "params.bin",
    "mlf": "a Model Library Format archive",
}  # fmt: skip


def artifact_corpus():
    """Return (kind, bytes) of one small model in every form that it is exported in."""
    from slipway import micro, relay
    from slipway.ir.function import IRModule
    from slipway.toolchain.ar import write_archive

    x = relay.var("x", shape=(1, 4, 6, 6))
    weight = relay.const(np.arange(4 * 4 * 9, dtype="float32").reshape(4, 4, 3, 3) / 100)
    y = relay.nn.relu(relay.nn.conv2d(x, weight, padding=1))
    function = relay.Function([x], relay.Tuple([relay.reshape(y, (1, -1)), relay.mean(y, axis=1)]))
    module = IRModule.from_expr(function)
    built = relay.build(module, "llvm")
    aot = relay.build(
        module, "c", executor=relay.backend.Executor("aot"), runtime=relay.backend.Runtime("crt")
    )
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("tar", "so"):
            path = Path(folder, f"model.{kind}")
            built.export_library(path)
            found.append((kind, path.read_bytes()))
        path = Path(folder, "library.tar")
        micro.export_model_library_format(aot, path)
        found.append(("mlf", path.read_bytes()))
    code = built.compiled.object_bytes()
    return [
        *found,
        ("o", code),
        ("a", write_archive({"a.o": code, "one_with_a_long_name.o": code})),
        ("graph", built.tables.to_binary()),
        ("json", built.get_graph_json().encode()),
        ("params", bytes(built.param_bytes())),
    ]


def mutated_artifact(corpus, seed, number):
    """Return (kind, bytes) of case `number`."""
    rng = random.Random(f"artifact {seed} {number}")
    kind, data = rng.choice(corpus)
    if kind == "tar" and rng.random() < 0.7:
        return kind, _changed_member(data, rng)
    return kind, mutate_bytes(data, rng)


def _changed_member(data, rng):
    """Change one member of an artifact and its sum, so that what reads the member meets it."""
    import hashlib

    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        members = {m.name: archive.extractfile(m).read() for m in archive if m.isfile()}
    name = rng.choice([name for name in members if name != "SHA256SUMS"])
    members[name] = mutate_bytes(members[name], rng)
    members["SHA256SUMS"] = "".join(
        f"{hashlib.sha256(content).hexdigest()}  {member}\n"
        for member, content in members.items()
        if member != "SHA256SUMS"
    ).encode()
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for member, content in members.items():
            info = tarfile.TarInfo(member)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return out.getvalue()


def read(kind, data):
    """Read an artifact as far as it goes without running it, or raise what its reader raises."""
    from slipway.micro.model_library import only_model, unpack_model_library
    from slipway.runtime.artifact import read_artifact
    from slipway.runtime.graph.graph_format import GraphTables
    from slipway.runtime.params import load_param_dict
    from slipway.toolchain.ar import read_archive
    from slipway.toolchain.elf import ElfFile
    from slipway.toolchain.elf_rename import rename_symbols

    match kind:
        case "tar" | "so":
            found = read_artifact(data, f"model.{kind}", here=False)
            if found.graph is not None:
                GraphTables.from_binary(found.graph)
            if found.params is not None:
                load_param_dict(found.params)
        case "mlf":
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder, "library.tar")
                path.write_bytes(data)
                only_model(unpack_model_library(path, Path(folder, "out")))
        case "o":
            ElfFile(data, "a.o").undefined  # noqa: B018
            rename_symbols(data, lambda name: f"{name}_renamed")
        case "a":
            for name, content in read_archive(data, "a.a").items():
                ElfFile(content, name).exported  # noqa: B018
        case "graph":
            GraphTables.from_binary(data).functions()
        case "json":
            GraphTables.from_json(data.decode("utf-8", "surrogateescape")).to_binary()
        case _:
            load_param_dict(data)
