"""What one core's trials say about another: which choices are taken, and which are left."""

import json

import numpy as np
import pytest

import slipway as tvm
from slipway import relay
from slipway.target import Target
from slipway.tuning.database import Database
from slipway.tuning.measure import Measured
from slipway.tuning.task import extract_tasks
from slipway.tuning.transfer import foretold, records_foretold

SMALL = Target("llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a53")
LARGE = Target("llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72")


@pytest.fixture(scope="module")
def model():
    x, w = relay.var("x", shape=(21, 96)), relay.var("w", shape=(80, 96))
    module = tvm.IRModule.from_expr(relay.Function([x, w], relay.nn.dense(x, w)))
    return module, {"w": np.ones((80, 96), "float32")}


def dense_of(model, target):
    return next(t for t in extract_tasks(model[0], target, model[1]) if "dense" in t.op)


def test_the_fastest_there_that_is_legal_here_is_taken(model, tmp_path):
    there, here = dense_of(model, SMALL), dense_of(model, LARGE)
    assert there.key != here.key
    database = Database(tmp_path / "t.sqlite")
    legal = [c for c in there.space.neighbours(there.space.default)][:2]
    strange = there.space.with_values(legal[0], rows=77)
    database.add(there, "a", [Measured(legal[0], [0.5], 0.5)], verified=legal[0])
    database.add(there, "a", [Measured(legal[1], [0.1], 0.1)])  # fastest, but never verified
    database.add(there, "a", [Measured(strange, [0.1], 0.1)], verified=strange)
    found = foretold(here, database)
    assert found.candidate == legal[0]
    assert 0.25 <= found.score <= 0.97
    assert found.from_target == str(SMALL)
    assert foretold(there, database) is None  # its own trials foretell nothing: they are known


def test_what_is_not_clearly_faster_is_left(model, tmp_path):
    there, here = dense_of(model, SMALL), dense_of(model, LARGE)
    database = Database(tmp_path / "t.sqlite")
    default = there.space.default
    database.add(there, "a", [Measured(default, [1.0], 1.0)], verified=default)
    assert foretold(here, database) is None
    assert records_foretold(model[0], LARGE, model[1], database) == []


def test_records_are_of_the_new_target_and_compile(model, tmp_path):
    there = dense_of(model, SMALL)
    database = Database(tmp_path / "t.sqlite")
    better = next(iter(there.space.neighbours(there.space.default)))
    database.add(there, "a", [Measured(better, [0.4], 0.4)], verified=better)
    records = records_foretold(model[0], LARGE, model[1], database)
    assert [r["target"] for r in records] == [str(LARGE)]
    assert records[0]["strategy"] == better.strategy
    path = tmp_path / "m.records"
    path.write_text("".join(json.dumps(r) + "\n" for r in records))
    sources = []
    for config in ({}, {"schedules.records": str(path)}):
        with tvm.transform.PassContext(opt_level=3, config=config):
            sources.append(relay.build(model[0], LARGE, params=model[1]).get_source("ll"))
    assert sources[0] != sources[1]
