"""Seeds for the fuzzer of tuning records: logs as lines of JSON, and the database of trials."""

import contextlib
import json
import sqlite3
import tempfile
from pathlib import Path

from benchmarks.fuzz_importers.damage import mutate_bytes, mutate_json

STEPS = [["SP", 0, 0, 4, [2, 1, 2], 1], ["RE", 0, [0, 1, 2, 3]], ["AN", 0, 0, 3]]


def _module():
    import numpy as np

    from slipway import relay
    from slipway.ir.function import IRModule

    x = relay.var("x", shape=(4, 16))
    weight = relay.const(np.ones((8, 16), "float32"))
    return IRModule.from_expr(relay.Function([x], relay.nn.relu(relay.nn.dense(x, weight))))


def record_corpus():
    """Return (kind, bytes) of every form in which trials are kept."""
    head = {"op": "nn.dense", "attrs": "", "inputs": ["float32[4, 16]", "float32[8, 16]"],
            "target": "llvm -keys=cpu"}  # fmt: skip
    record = {**head, "strategy": "dense.tile", "knobs": {"rows": 4}, "score": 0.5}
    trial = {**record, "result": [[0.001, 0.002], 0, 0.1, 1.0], "verified": True, "version": 0.2}
    template = {
        "input": ["llvm -keys=cpu", "test/matmul", [16, 16, 16], {}],
        "config": {"index": 1, "code_hash": None, "entity": [
            ["tile_y", "sp", [-1, 8]], ["vectorize", "ot", True], ["order", "re", [0, 1]]]},
        "result": [[0.3], 0, 1.0, 2.0], "version": 0.2,
    }  # fmt: skip
    schedule = {
        "i": [['["f", 1, 2]', "llvm -keys=cpu", [8, 64, 64, 0, 0, 0, 0, 0], "", 2, []],
              [[], STEPS]],
        "r": [[0.25, 0.75], 0, 0.3, 1607112214], "v": "v0.5", "candidate": ["dense.tile", {}],
    }  # fmt: skip
    lines = {"records": [record, {**record, "op": "nn.conv2d"}], "autotvm": [trial, template],
             "auto_scheduler": [schedule, trial]}  # fmt: skip
    found = [
        (kind, "".join(json.dumps(row) + "\n" for row in rows).encode())
        for kind, rows in lines.items()
    ]
    return [*found, ("database", _database(head, record))]


def _database(head, record):
    from slipway.tuning.database import Database

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "trials.db")
        Database(path).close()
        connection = sqlite3.connect(path)
        with connection:
            connection.execute(
                "insert into task values (?, ?, ?, ?, ?, ?)",
                ("k", head["op"], head["attrs"], json.dumps(head["inputs"]), head["target"], "w"),
            )
            connection.execute(
                "insert into trial (task, candidate, device, score, seconds, kind, verified) "
                "values ('k', ?, 'here', 0.5, '[0.1]', '', 1)",
                (json.dumps([record["strategy"], record["knobs"]]),),
            )
        connection.close()
        return path.read_bytes()


def mutate_records(name, data, rng):
    """Change bytes, one line as JSON, or one value of a table."""
    if name == "database":
        return _changed_table(data, rng) if rng.random() < 0.5 else mutate_bytes(data, rng)
    if rng.random() < 0.3:
        return mutate_bytes(data, rng)
    lines = data.decode().splitlines()
    number = rng.randrange(len(lines))
    lines[number] = json.dumps(mutate_json(json.loads(lines[number]), rng))
    return "".join(line + "\n" for line in lines).encode()


def _changed_table(data, rng):
    """Replace a value of the database by one of another kind."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "trials.db")
        path.write_bytes(data)
        connection = sqlite3.connect(path)
        table = rng.choice(("task", "trial"))
        columns = [row[1] for row in connection.execute(f"pragma table_info({table})")]
        value = rng.choice((None, -1, 2**62, 1e308, "", "x", "[]", "[1, 2]", '["a", {"b": []}]',
                            '["a", 3]', "[" * 2000, b"\xff\x00", "NaN", '{"a": 1}'))  # fmt: skip
        with connection:
            if rng.random() < 0.1:
                connection.execute(f"drop table {table}")
            else:
                with contextlib.suppress(sqlite3.IntegrityError):  # a key is what its type says
                    connection.execute(f"update {table} set {rng.choice(columns)} = ?", (value,))
        connection.close()
        return path.read_bytes()


def read_records(name, data):
    """Read a file of records and compile with it."""
    from slipway import auto_scheduler, autotvm, relay
    from slipway.auto_scheduler.records import load_best_record
    from slipway.transform.context import PassContext
    from slipway.tuning.database import Database

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "trials.json")
        path.write_bytes(data)
        if name == "records":
            with PassContext(opt_level=3, config={"schedules.records": str(path)}):
                relay.build(_module(), "llvm")
        elif name == "database":
            with Database(path) as database:
                relay.build(_module(), "llvm")
            database.close()
        elif name == "autotvm":
            autotvm.record.pick_best(str(path), str(path) + ".best")
            with autotvm.apply_history_best(str(path)):
                relay.build(_module(), "llvm")
        else:
            load_best_record(str(path))
            with auto_scheduler.ApplyHistoryBest(str(path)):
                relay.build(_module(), "llvm")
