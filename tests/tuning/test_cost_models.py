"""Cost models and feature extractors by the classic names, driven by a script and in a search."""

import random

import numpy as np
import pytest

from slipway import meta_schedule as ms
from slipway import te
from slipway.blocks.from_te import create_prim_func
from slipway.errors import NotAvailableError
from slipway.meta_schedule.runner.artifact import RunnerResult

a = te.placeholder((16, 24), name="a")
FUNC = create_prim_func([a, te.compute((16, 24), lambda i, j: a[i, j] * 2.0, name="b")])


def tiled(sch):
    i, j = sch.get_loops("b")
    sch.split(i, sch.sample_perfect_tile(i, 2))
    sch.split(j, sch.sample_perfect_tile(j, 2))


@ms.utils.derived_object
class Lengths(ms.feature_extractor.PyFeatureExtractor):
    """What was sampled, as a script may see it: one row."""

    def __init__(self):
        super().__init__()
        self.calls = 0

    def extract_from(self, context, candidates):
        from slipway.runtime.ndarray import array

        self.calls += 1
        rows = [list(map(float, dict(c.candidate.knobs).values())) for c in candidates]
        return [array(np.array([row])) for row in rows]


def context_and_candidates(count):
    context = ms.TuneContext(
        FUNC, target="llvm", space_generator=tiled, search_strategy="replay-trace", rand_state=3
    )
    context.pre_tuning(count, count)
    return context, context.generate_measure_candidates()


def test_a_model_learns_what_its_extractor_sees(tmp_path):
    context, candidates = context_and_candidates(24)
    seconds = [1e-3 * (1 + next(iter(dict(c.candidate.knobs).values()))) for c in candidates]
    results = [RunnerResult([s, 1.1 * s, s]) for s in seconds]
    model = ms.cost_model.XGBModel(extractor=Lengths(), num_warmup_samples=len(candidates))
    assert len(set(model.predict(context, candidates))) == len(candidates)  # knows nothing yet
    model.update(context, candidates, results)
    model.update(context, candidates[:1], [RunnerResult(None, "it did not run")])
    assert model.data_size == len(candidates)
    said = model.predict(context, candidates)
    assert np.corrcoef(said, -np.log(seconds))[0, 1] > 0.6
    model.save(str(tmp_path / "model"))
    again = ms.cost_model.XGBModel(extractor=Lengths(), num_warmup_samples=1)
    again.load(str(tmp_path / "model"))
    np.testing.assert_allclose(again.predict(context, candidates), said)


def test_a_model_without_trees_draws_a_line(monkeypatch):
    monkeypatch.setattr("slipway.meta_schedule.cost_model.tree_library", lambda: None)
    context, candidates = context_and_candidates(16)
    seconds = [1e-3 * (1 + next(iter(dict(c.candidate.knobs).values()))) for c in candidates]
    model = ms.cost_model.XGBModel(extractor=Lengths(), num_warmup_samples=1)
    model.update(context, candidates, [RunnerResult([s]) for s in seconds])
    assert np.corrcoef(model.predict(context, candidates), -np.log(seconds))[0, 1] > 0.6


def test_an_extractor_of_a_script_ranks_in_a_search(tmp_path):
    extractor = Lengths()
    ms.tune_tir(
        FUNC, "llvm", tmp_path, max_trials_global=6, num_trials_per_iter=3, space=tiled,
        cost_model=ms.cost_model.XGBModel(extractor=extractor, num_warmup_samples=2),
    )  # fmt: skip
    assert extractor.calls > 1


def test_random_numbers_are_those_of_the_seed(tmp_path):
    context, candidates = context_and_candidates(8)
    one, other = (ms.cost_model.RandomModel(seed=7) for _ in range(2))
    first = one.predict(context, candidates)
    assert (first == other.predict(context, candidates)).all()
    assert 0 <= min(first) <= max(first) <= one.max_range
    path = str(tmp_path / "numbers.npy")
    one.save(path)
    following = one.predict(context, candidates)
    one.load(path)
    assert (one.predict(context, candidates) == following).all()


def test_extractors_see_a_row_or_several():
    context, candidates = context_and_candidates(3)
    engine = ms.feature_extractor.PerStoreFeature().extract_from(context, candidates)
    assert len({one.shape for one in engine}) == 1
    assert all(one.numpy().max() > 0 for one in engine)
    rows = ms.feature_extractor.RandomFeatureExtractor(feature_size=5, max_block_num=2)
    assert all(one.shape[1] == 5 for one in rows.extract_from(context, candidates))
    with pytest.raises(NotAvailableError, match="extract_from"):
        ms.feature_extractor.PyFeatureExtractor().extract_from(context, candidates)


def test_threads_are_mutated_alone():
    context = ms.TuneContext(FUNC, target="opencl", space_generator="post-order-apply")
    (sch,) = context.generate_design_space()
    mutator, rng = ms.mutator.MutateThreadBinding(), random.Random(0)
    for _ in range(4):
        changed = mutator.apply(sch.trace, rng.randrange(1, 99))
        numbers = [
            number
            for number, (old, new) in enumerate(zip(sch.trace.insts, changed.insts, strict=False))
            if sch.trace.get_decision(old) != changed.get_decision(new)
        ]
        (number,) = numbers
        assert sch.trace.insts[number].kind.name == "SampleCategorical"
        assert 32 in sch.trace.insts[number].attrs[0]
    assert "MutateThreadBinding" in str(list(map(str, ms.mutator.create("opencl"))))


def test_tensor_infos_are_text_and_json():
    info = ms.arg_info.TensorInfo("float32", [1, 224, 3])
    assert str(info) == 'TensorInfo("float32", [1, 224, 3])'
    assert ms.arg_info.TensorInfo.from_json(info.as_json()).as_json() == info.as_json()
