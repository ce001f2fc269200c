"""Searches of functions of loops: generators, rules, strategies, and what a database has after."""

import random

import numpy as np
import pytest

import slipway as tvm
from slipway import meta_schedule as ms
from slipway import te, tir
from slipway.errors import ScheduleError, SlipwayError, TuningError
from slipway.script import tir as T
from slipway.tuning.schedules.block_schedules import legal_default

TARGET = "llvm -num-cores 2"


@tvm.script.ir_module
class Product:
    @T.prim_func
    def main(a: T.handle, b: T.handle, c: T.handle) -> None:
        T.func_attr({"global_symbol": "main"})
        A = T.match_buffer(a, (12, 20), "float32")
        B = T.match_buffer(b, (20, 24), "float32")
        C = T.match_buffer(c, (12, 24), "float32")
        for i, j, k in T.grid(12, 24, 20):
            with T.block("matmul"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = 0.0
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


@T.prim_func
def three(a: T.handle, d: T.handle) -> None:
    A = T.match_buffer(a, (64, 64), "float32")
    B = T.alloc_buffer((64, 64), "float32")
    C = T.alloc_buffer((64, 64), "float32")
    D = T.match_buffer(d, (64, 64), "float32")
    for i, j in T.grid(64, 64):
        with T.block("A"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * 2.0
    for i, j in T.grid(64, 64):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] + 3.0
    for i, j in T.grid(64, 64):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = C[vi, vj] * 5.0


def tiled(sch):
    block = sch.get_block("matmul")
    i, j, k = sch.get_loops(block=block)
    i_0, i_1 = sch.split(i, sch.sample_perfect_tile(i, n=2))
    j_0, j_1, j_2 = sch.split(j, sch.sample_perfect_tile(j, n=3))
    k_0, k_1 = sch.split(k, sch.sample_perfect_tile(k, n=2))
    sch.reorder(i_0, j_0, j_1, k_0, i_1, k_1, j_2)
    sch.annotate(i_0, "pragma_auto_unroll_max_step", sch.sample_categorical([0, 64], [0.5, 0.5]))


def product_of(module):
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(12, 20)).astype("float32"), rng.normal(size=(20, 24)).astype("float32")
    c = tvm.nd.array(np.zeros((12, 24), "float32"))
    tvm.build(module, target="llvm")(tvm.nd.array(a), tvm.nd.array(b), c)
    np.testing.assert_allclose(c.numpy(), a @ b, 1e-4, 1e-4)


SEARCHES = {
    "rules, by name": {},
    "a function": {"space": tiled, "strategy": "replay-trace"},
    "the function again and again": {
        "space": ms.space_generator.ScheduleFn(tiled),
        "strategy": ms.search_strategy.ReplayFunc(),
    },
}


@pytest.mark.parametrize("name", SEARCHES)
def test_a_search_leaves_a_verified_schedule(name, tmp_path):
    database = ms.tune_tir(
        Product, TARGET, str(tmp_path), max_trials_global=6, num_trials_per_iter=6,
        cost_model=ms.cost_model.XGBModel(extractor=ms.feature_extractor.PerStoreFeature()),
        **SEARCHES[name],
    )  # fmt: skip
    again = ms.database.JSONDatabase(work_dir=tmp_path)  # another process has no space generator
    schedule = ms.tir_integration.compile_tir(again, Product, TARGET)
    product_of(schedule.mod)
    assert again.has_workload(Product)
    assert not again.has_workload(three)
    records = again.get_top_k(again.commit_workload(Product), 2)
    assert [r.run_secs[0] > 0 for r in records] == [True] * len(records) != []
    other = tir.Schedule(Product)
    records[0].trace.apply_to_schedule(other, remove_postproc=False)
    product_of(other.mod)
    assert ms.tir_integration.compile_tir(again, Product, "llvm -mcpu=znver4") is None
    every = again.get_top_k(again.commit_workload(Product), 99)
    assert [r.run_secs for r in database.get_all_tuning_records()] == [r.run_secs for r in every]
    with database:  # schedules of functions are nothing that a model is compiled with
        assert not list(tmp_path.glob("*.records"))


def test_the_words_of_older_scripts(tmp_path):
    config = ms.TuneConfig(
        strategy="replay_trace", num_trials_per_iter=4, max_trials_per_task=4, max_trials_global=4
    )
    schedule = ms.tune_tir(mod=Product, target=TARGET, config=config, work_dir=str(tmp_path))
    product_of(schedule.mod)
    a, b = te.placeholder((8, 16), name="A"), te.placeholder((16, 8), name="B")
    k = te.reduce_axis((0, 16), name="k")
    c = te.compute((8, 8), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    assert isinstance(ms.tune_te([a, b, c], TARGET, config, str(tmp_path)), tir.Schedule)


@pytest.mark.parametrize("kind", ["ReplayTrace", "ReplayFunc", "EvolutionarySearch"])
def test_a_script_asks_a_strategy_itself(kind):
    strategy = getattr(ms.search_strategy, kind)()
    context = ms.TuneContext(
        mod=Product, target="llvm", search_strategy=strategy,
        space_generator=ms.space_generator.ScheduleFn(tiled),
    )  # fmt: skip
    context.pre_tuning(20, 7, context.generate_design_space())
    sizes, texts = [], set()
    while (candidates := context.generate_measure_candidates()) is not None:
        sizes.append(len(candidates))
        texts |= {str(candidate.sch.trace) for candidate in candidates}
        result = ms.runner.RunnerResult(run_secs=[0.11, 0.41, 0.54])
        context.notify_runner_results(candidates, [result] * len(candidates))
    context.post_tuning()
    assert sizes == [7, 7, 6]
    assert len(texts) == 20
    assert candidates is None
    with pytest.raises(TuningError, match="call pre_tuning first"):
        context.generate_measure_candidates()


class Doubled(ms.schedule_rule.PyScheduleRule):
    def apply(self, sch, block):
        if sch.get_sref(block).parent is None:
            return [sch]
        made = []
        for outer in (16, 2):
            made.append(sch.copy())
            i, _ = made[-1].get_loops(block=block)
            made[-1].split(loop=i, factors=[outer, 64 // outer])
        return made


class WithoutB(ms.schedule_rule.PyScheduleRule):
    def apply(self, sch, block):
        copy = sch.copy()
        if sch.get(block).name_hint == "B":
            copy.compute_inline(block)
        return [copy]


@pytest.mark.parametrize(
    ("blocks", "rules", "count"),
    [
        (None, [Doubled()], 8),
        (["B"], [Doubled()], 2),
        (["A", "C"], [Doubled()], 4),
        (None, [WithoutB(), Doubled()], 4),
    ],
)
def test_rules_of_a_script_are_applied_in_order(blocks, rules, count):
    chosen = None if blocks is None else lambda block: block.name_hint in blocks
    generator = ms.space_generator.PostOrderApply(chosen, sch_rules=rules)
    context = ms.TuneContext(three, target="llvm", space_generator=generator)
    designs = context.generate_design_space()
    assert len(designs) == count
    assert len({str(design.trace) for design in designs}) == count
    union = ms.space_generator.SpaceGeneratorUnion([generator, generator])
    assert len(union.generate_design_space(three)) == 2 * count


def _softmax():
    return tvm.topi.nn.softmax(te.placeholder((6, 40), name="A"), axis=1)


def _convolution():
    data, weight = te.placeholder((1, 3, 9, 9), name="d"), te.placeholder((5, 3, 3, 3), name="w")
    return tvm.topi.nn.relu(tvm.topi.nn.conv2d_nchw(data, weight, 2, 1, 1))


def _total():
    a = te.placeholder((3, 4096), name="A")
    return tvm.topi.sum(a * 2.0, axis=1)


def _two_products():
    a = tvm.topi.nn.dense(te.placeholder((7, 12), name="A"), te.placeholder((30, 12), name="B"))
    return tvm.topi.nn.dense(tvm.topi.tanh(a), te.placeholder((10, 30), name="C"))


def prim_func_of(result):
    found, stack = [], [result]
    while stack:
        tensor = stack.pop()
        if isinstance(tensor.op, te.PlaceholderOp) and tensor not in found:
            found.append(tensor)
        stack += tensor.op.input_tensors
    return te.create_prim_func([*found, result])


@pytest.mark.parametrize("make", [_softmax, _convolution, _total, _two_products])
def test_what_rules_make_computes_the_same(make):
    func = prim_func_of(make())
    context = ms.TuneContext(func, target=TARGET, space_generator="post-order-apply")
    task = context.task()
    rng = random.Random(make.__name__)
    inputs = [rng_array(t, n) for n, t in enumerate(task.inputs())]
    (wanted,) = task.reference(inputs)
    candidates = [*task.space.defaults.values()][:3] + [task.space.sample(rng) for _ in range(2)]
    tried = 0
    for candidate in candidates:
        try:
            function = task.lowered(candidate)
        except ScheduleError:
            continue  # a place that other numbers rule out
        result = tvm.nd.array(np.zeros(wanted.shape, wanted.dtype))
        built = tvm.build(tvm.IRModule.from_functions({"main": function}), target="llvm")
        built(*map(tvm.nd.array, inputs), result)
        np.testing.assert_allclose(result.numpy(), wanted, 1e-4, 1e-4, err_msg=str(candidate))
        tried += 1
    assert tried >= 2


def rng_array(type_, seed):
    return np.random.default_rng(seed).normal(size=type_.shape).astype(type_.dtype)


def test_a_block_names_its_rule():
    @tvm.register_func("tests.tune_tir.halved")
    def halved(sch, block):
        made = sch.copy()
        made.split(made.get_loops(block)[0], [2, None])
        return [made]

    sch = tir.Schedule(three)
    sch.annotate(sch.get_block("B"), "schedule_rule", "tests.tune_tir.halved")
    generator = ms.space_generator.PostOrderApply(sch_rules=[ms.schedule_rule.ApplyCustomRule()])
    (design,) = generator.generate_design_space(sch.mod)
    assert len(design.get_loops(design.get_block("B"))) == 3
    sch.annotate(sch.get_block("B"), "schedule_rule", "tests.tune_tir.none")
    with pytest.raises(TuningError, match=r"rule 'tests\.tune_tir\.none': register_func"):
        generator.generate_design_space(sch.mod)


class Refusing(ms.postproc.PyPostproc):
    def apply(self, sch):
        return len(sch.get_loops(sch.get_block("matmul"))) == 7


def test_a_postprocessor_of_a_script_is_asked(tmp_path):
    def small(sch):
        i, _, _ = sch.get_loops(sch.get_block("matmul"))
        sch.split(i, sch.sample_perfect_tile(i, n=2))

    spaces = [ms.space_generator.ScheduleFn(f, postprocs=[Refusing()]) for f in (tiled, small)]
    database = ms.tune_tir(
        Product, TARGET, str(tmp_path), 2, space=spaces[0], strategy="replay-func", seed=1
    )
    with pytest.raises(ScheduleError, match="a postprocessor\\): call tune_tir with the same"):
        ms.tir_integration.compile_tir(database, Product, TARGET)
    with pytest.raises(ScheduleError, match="a postprocessor refuses this schedule"):
        ms.tune_tir(Product, TARGET, str(tmp_path), 2, space=spaces[1])


@T.prim_func
def adding(a: T.handle, c: T.handle) -> None:
    A = T.match_buffer(a, (4, 8), "float32")
    C = T.match_buffer(c, (4,), "float32")
    for i, k in T.grid(4, 8):
        with T.block("sum"):
            vi, vk = T.axis.remap("SR", [i, k])
            C[vi] = C[vi] + A[vi, vk]


def untouched(sch):
    del sch


REFUSED = {
    "a function that returns a number": (
        lambda: ms.tune_tir(Product, "llvm", "", 1, space=lambda sch: 5), "ScheduleFn returned 5",
    ),
    "a schedule that cannot be": (
        lambda: ms.tune_tir(Product, "llvm", "", 1, space=lambda sch: sch.get_block("mine")),
        "there is no block 'mine'",
    ),
    "a result that is read first": (
        lambda: ms.tune_tir(adding, "llvm", "", 1, space=untouched), "reads a result before",
    ),
    "no number of trials": (lambda: ms.tune_tir(Product, "llvm"), "max_trials_global"),
    "a model": (lambda: ms.tune_tir(tvm.IRModule(), "llvm", "", 1), "no function of loops"),
    "rules for a kind without any": (
        lambda: ms.schedule_rule.create("hexagon"), "no schedule rules for 'hexagon'",
    ),
    "a structure": (lambda: ms.schedule_rule.MultiLevelTiling("SSX"), "letters S and R"),
    "no target": (lambda: ms.TuneContext(Product, space_generator=tiled).task(), "no target"),
    "no generator": (lambda: ms.TuneContext(Product).generate_design_space(), "space_generator="),
    "no rules": (
        lambda: ms.space_generator.PostOrderApply().generate_design_space(Product), "no rules",
    ),
    "an unknown strategy": (
        lambda: ms.tune_tir(Product, "llvm", "", 1, strategy="best"), "evolutionary, replay-trace",
    ),
    "an unknown space": (lambda: ms.tune_tir(Product, "llvm", "", 1, space="all"), "'union'"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    call, words = REFUSED[name]
    with pytest.raises((SlipwayError, ValueError), match=words):
        call()


def test_a_map_of_indices_is_no_record():
    def laid_out(sch):
        sch.transform_layout("matmul", ("read", 1), lambda k, j: (j, k))

    context = ms.TuneContext(Product, target="llvm", space_generator=laid_out)
    space = context.space()
    assert list(space.values) == ["design 0"]
    legal_default("main", space)
    assert space.schedule(space.default)
