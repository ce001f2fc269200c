"""Databases by the classic names: of scripts, of several, of functions that write schedules."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import slipway as tvm
from slipway import meta_schedule as ms
from slipway import relay, tir
from slipway.backends.choices import records_path
from slipway.errors import ArgumentValueError, NotAvailableError
from slipway.script import tir as T
from slipway.tuning.measure import Measured
from slipway.tuning.task import extract_tasks

LLVM = tvm.target.Target("llvm")


@tvm.script.ir_module
class Product:
    @T.prim_func
    def main(a: T.handle, b: T.handle, c: T.handle) -> None:
        T.func_attr({"global_symbol": "main"})
        A = T.match_buffer(a, (16, 16), "float32")
        B = T.match_buffer(b, (16, 16), "float32")
        C = T.match_buffer(c, (16, 16), "float32")
        for i, j, k in T.grid(16, 16, 16):
            with T.block("matmul"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = 0.0
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


def tiled(sch):
    i, j, k = sch.get_loops(sch.get_block("matmul"))
    i_0, i_1 = sch.split(i, sch.sample_perfect_tile(i, n=2, decision=[4, 4]))
    sch.reorder(i_0, j, k, i_1)
    return True


def schedule(tile=True):
    sch = tir.Schedule(Product)
    if tile:
        tiled(sch)
    return sch


def record(database, seconds, tile=True, target=LLVM):
    workload = database.commit_workload(Product)
    infos = ms.arg_info.ArgInfo.from_prim_func(Product["main"])
    made = ms.database.TuningRecord(schedule(tile).trace, workload, seconds, target, infos)
    database.commit_tuning_record(made)
    return made


@ms.utils.derived_object
class Listed(ms.database.PyDatabase):
    """A script's: lists, as classic TVM's tests have it."""

    def __init__(self):
        super().__init__()
        self.workloads, self.records = [], []

    def has_workload(self, mod):
        return any(tvm.ir.structural_equal(w.mod, mod) for w in self.workloads)

    def commit_workload(self, mod):
        if not self.has_workload(mod):
            self.workloads.append(ms.database.Workload(mod))
        return next(w for w in self.workloads if tvm.ir.structural_equal(w.mod, mod))

    def commit_tuning_record(self, record):
        self.records.append(record)

    def get_all_tuning_records(self):
        return list(self.records)

    def get_top_k(self, workload, top_k):
        mine = [r for r in self.records if tvm.ir.structural_equal(r.workload.mod, workload.mod)]
        return sorted(mine, key=lambda r: np.mean([float(s) for s in r.run_secs]))[:top_k]

    def __len__(self):
        return len(self.records)


def test_records_and_functions_survive_json():
    made = record(ms.database.MemoryDatabase(), [1.5, 2.5])
    function = ms.database.Workload.from_json(made.workload.as_json())
    assert tvm.ir.structural_equal(function.mod, Product)
    again = ms.database.TuningRecord.from_json(made.as_json(), function)
    assert again.run_secs == [1.5, 2.5]
    assert again.run_secs[0].value == 1.5  # as classic scripts read it
    assert (again.target, again.args_info) == (LLVM, made.args_info)
    assert tvm.ir.structural_equal(again.schedule().mod, schedule().mod)
    candidate = again.as_measure_candidate()
    assert tvm.ir.structural_equal(candidate.sch.mod, schedule().mod)
    assert candidate.args_info == made.args_info


@pytest.mark.parametrize("make", [ms.database.MemoryDatabase, Listed])
def test_a_database_is_asked_for_the_fastest(make):
    database = make()
    assert not database.has_workload(Product)
    assert database.query(Product, LLVM, workload_name="main") is None
    record(database, [2.0, 2.2])
    record(database, [0.1], target=tvm.target.Target("llvm -mcpu=znver4"))
    assert database.query_tuning_record(Product, "llvm", "main").run_secs == [2.0, 2.2]
    record(database, [1.0], tile=False)
    assert database.query(Product, LLVM, kind="record").run_secs == [1.0]
    found = database.query(Product, LLVM, kind="ir_module")
    assert tvm.ir.structural_equal(found, schedule(tile=False).mod)
    assert len(database) == 3
    assert len(database.get_all_tuning_records()) == 3
    assert [r.run_secs for r in database.get_top_k(database.commit_workload(Product), 2)] == [
        [0.1],
        [1.0],
    ]
    with database:
        assert ms.database.Database.current() is database
    assert ms.database.Database.current() is None


def test_a_union_has_the_best_and_an_ordered_one_the_first():
    one, other, empty = (ms.database.create("memory") for _ in range(3))
    record(one, [1.0])
    record(other, [0.5], tile=False)
    union = ms.database.create("union", empty, one, other)
    ordered = ms.database.create("ordered_union", empty, one, other)
    assert union.query_tuning_record(Product, LLVM).run_secs == [0.5]
    assert ordered.query_tuning_record(Product, LLVM).run_secs == [1.0]
    assert tvm.ir.structural_equal(ordered.query_ir_module(Product, LLVM), schedule().mod)
    mixed = ms.database.UnionDatabase(empty, ms.database.OrderedUnionDatabase(one, other))
    assert mixed.query_tuning_record(Product, LLVM).run_secs == [1.0]
    assert ms.database.UnionDatabase(empty).query_schedule(Product, LLVM) is None


def test_a_function_writes_the_schedule():
    database = ms.database.create(tiled)
    assert tvm.ir.structural_equal(database.query_schedule(Product, LLVM).mod, schedule().mod)
    assert ms.database.create(lambda sch: False).query_schedule(Product, LLVM) is None
    found = ms.database.MemoryDatabase().query(Product, LLVM, kind=tiled)
    assert tvm.ir.structural_equal(found.mod, schedule().mod)


def test_a_pruned_database_has_the_fastest_of_each_function():
    database, pruned = ms.database.MemoryDatabase(), Listed()
    for seconds in ([3.0], [1.0], [2.0]):
        record(database, seconds)
    database.dump_pruned(pruned)
    assert [r.run_secs for r in pruned.records] == [[1.0]]


def test_a_search_commits_to_a_scripts_database(tmp_path):
    database = Listed()

    def space(sch):
        tiled(sch)

    found = ms.tune_tir(
        Product, "llvm", tmp_path, max_trials_global=6, space=space, database=database
    )
    assert found is database
    assert all(r.run_secs and str(r.target) == str(LLVM) for r in database.records)
    assert ms.tir_integration.compile_tir(database, Product, "llvm") is not None


def a_model():
    x, w = relay.var("x", shape=(8, 64)), relay.var("w", shape=(48, 64))
    return tvm.IRModule.from_expr(relay.Function([x, w], relay.nn.dense(x, w)))


def test_choices_for_models_come_from_any_database(tmp_path):
    (task,) = [t for t in extract_tasks(a_model(), LLVM) if t.op == "nn.dense"]
    choices = [next(iter(task.space.defaults.values())), task.space.default]
    databases = []
    for number, (candidate, score) in enumerate(zip(choices, (0.5, 0.7), strict=True)):
        one = ms.database.JSONDatabase(work_dir=tmp_path / str(number))
        measured = Measured(candidate, [score], score)
        one.add(task, "local", [measured], verified=candidate)
        databases.append(one)
    script = Listed()
    for choice in databases[0].choices():
        script.commit_tuning_record(choice)
    for database, score in (
        (ms.database.UnionDatabase(*databases[::-1]), 0.5),
        (ms.database.OrderedUnionDatabase(*databases[::-1]), 0.7),
        (script, 0.5),
    ):
        assert [choice.score for choice in database.choices()] == [score]
        with database:
            assert f'"score": {score}' in Path(records_path()).read_text()
    assert not records_path()


@pytest.mark.parametrize(
    ("doing", "error", "words"),
    [
        (lambda d: ms.tune_tir(Product, "llvm", d, max_trials_global=1,
                               database=ms.database.UnionDatabase()),
         ArgumentValueError, "cannot write to"),
        (lambda _: ms.database.UnionDatabase().commit_workload(Product), NotAvailableError,
         "UnionDatabase has no commit_workload"),
        (lambda _: ms.database.create("sql"), ValueError, "one of json, memory, union"),
        (lambda _: ms.database.MemoryDatabase().query(Product, LLVM, kind="text"), ValueError,
         "schedule, record"),
        (lambda _: ms.database.Workload.from_json(["x"]), ArgumentValueError, "Workload.as_json"),
        (lambda _: ms.database.TuningRecord.from_json([1], None), ArgumentValueError, "as_json"),
        (lambda _: record(ms.database.MemoryDatabase(), [1], target=None), ArgumentValueError,
         "no target"),
    ],
)  # fmt: skip
def test_what_a_database_refuses(doing, error, words, tmp_path):
    with pytest.raises(error, match=words):
        doing(tmp_path)


def test_a_thread_begins_outside_of_all_databases_and_profilers():
    database, profiler = ms.database.MemoryDatabase(), ms.Profiler()
    with ThreadPoolExecutor(1) as pool, database, profiler:
        elsewhere = pool.submit(lambda: (ms.database.Database.current(), ms.Profiler.current()))
        assert elsewhere.result() == (None, None)
        assert ms.database.Database.current() is database
        assert ms.Profiler.current() is profiler
    assert ms.database.Database.current() is None
    assert ms.Profiler.current() is None


@pytest.mark.parametrize("failed", [[], None, [1e10]])
def test_a_record_of_a_failure_is_kept_and_never_the_best(failed):
    """Scripts commit what a runner returned: no seconds, or classic TVM's 1e10."""
    database = ms.database.MemoryDatabase()
    record(database, failed)
    made = record(database, [0.5, 1.5])
    record(database, failed, tile=False)
    workload = database.commit_workload(Product)
    (found,) = database.get_top_k(workload, 4)
    assert [s.value for s in found.run_secs] == [s.value for s in made.run_secs]
