"""Models one after the other, each in a thread of its own."""

import threading

import numpy as np
import pytest

import slipway
from slipway import nd, relay
from slipway.contrib import pipeline_executor, pipeline_executor_build
from slipway.errors import ArgumentValueError, ArtifactError, ExecutionError, SlipwayError


def model(make, *names):
    variables = [relay.var(name, shape=(2, 3)) for name in names]
    return slipway.IRModule.from_expr(relay.Function(variables, make(*variables)))


FIRST = model(lambda x: relay.Tuple([x + relay.const(1.0), x * relay.const(2.0)]), "x")
SECOND = model(lambda a, w: a * w, "a", "w")
LAST = model(lambda p, q: p - q, "p", "q")


def config():
    """y = (x + 1) * w - 2 x, and x + 1."""
    made = pipeline_executor_build.PipelineConfig()
    made["input"]["data"].connect(made[FIRST]["input"]["x"])
    made[FIRST]["output"][0].connect(made[SECOND]["input"]["a"])
    made[SECOND]["output"][0].connect(made[LAST]["input"]["p"])
    made[FIRST]["output"][1].connect(made[LAST]["input"]["q"])
    made[LAST]["output"][0].connect(made["output"]["0"])
    made[FIRST]["output"][0].connect(made["output"]["1"])
    made["param_group"]["weights"].connect(made[SECOND]["param"])
    return made


@pytest.fixture(scope="module")
def factory():
    return pipeline_executor_build.build(config())


X = np.arange(6, dtype=np.float32).reshape(2, 3)


def check(pipeline):
    pipeline.set_params("weights", {"w": np.full((2, 3), 3, np.float32)})
    for number in range(5):
        pipeline.set_input("data", nd.array(X + number))
        pipeline.run()
    for number in range(5):
        y, first = pipeline.get_output()
        np.testing.assert_array_equal(first.numpy(), X + number + 1)
        np.testing.assert_array_equal(y.numpy(), (X + number + 1) * 3 - 2 * (X + number))


def test_runs_overlap_and_come_out_in_order(factory):
    pipeline = pipeline_executor.PipelineModule(factory)
    check(pipeline)
    assert pipeline.num_executing_pipeline == 5
    assert (pipeline.num_inputs, pipeline.num_outputs) == (1, 2)
    assert pipeline.get_input_pipeline_map("data") == ["0", "x"]
    assert pipeline.get_params_group_pipeline_map("weights") == "1"
    np.testing.assert_array_equal(pipeline.get_input("data").numpy(), X + 4)


def test_second_model_works_while_the_first_does(factory):
    pipeline = pipeline_executor.PipelineModule(factory)
    pipeline.set_params("weights", {"w": np.ones((2, 3), np.float32)})
    first, last = pipeline._models[0].run, pipeline._models[2].run
    begun, second_begun = [], threading.Event()

    def first_run(**given):
        begun.append(1)
        if len(begun) == 2:
            second_begun.set()
        first(**given)

    def last_run(**given):
        assert second_begun.wait(20), "the second run waits for the end of the first"
        last(**given)

    pipeline._models[0].run, pipeline._models[2].run = first_run, last_run
    pipeline.set_input("data", X)
    pipeline.run()
    pipeline.run()
    for _ in range(2):
        np.testing.assert_array_equal(pipeline.get_output()[1].numpy(), X + 1)


def test_exported_and_loaded(factory, tmp_path):
    path = factory.export_library(tmp_path)
    check(pipeline_executor.PipelineModule.load_library(path))
    with pytest.raises(ArtifactError, match="there is no folder"):
        factory.export_library(tmp_path / "nowhere")
    with pytest.raises(ArtifactError, match="describes no pipeline"):
        pipeline_executor.PipelineModule.load_library(tmp_path / "lib0.tar")


def test_text_of_a_pipeline():
    assert str(config()) == (
        "Params\n  |weights: mod1.param\n\nInputs\n  |data: mod0.x\n\n"
        "output\n  |mod2.output(0) -> output(0)\n  |mod0.output(0) -> output(1)\n\n"
        "connections\n  |mod0.output(0) -> mod1.a\n  |mod1.output(0) -> mod2.p\n"
        "  |mod0.output(1) -> mod2.q"
    )


def test_what_goes_wrong_is_told_by_its_own_run(factory):
    pipeline = pipeline_executor.PipelineModule(factory)
    with pytest.raises(ExecutionError, match="data were not given"):
        pipeline.run()
    with pytest.raises(SlipwayError, match=r"no input 'dat'; there are data\. Did you mean"):
        pipeline.set_input("dat", X)
    pipeline.set_params("weights", {"w": np.ones((2, 3), np.float32)})
    pipeline.set_input("data", np.zeros((3, 3), np.float32))
    pipeline.run()
    pipeline.set_input("data", X)
    pipeline.run()
    with pytest.raises(ExecutionError, match="shape"):
        pipeline.get_output()
    np.testing.assert_array_equal(pipeline.get_output()[1].numpy(), X + 1)
    assert pipeline.get_output(synchronize=False) == []
    with pytest.raises(ExecutionError, match=r"run\(\) first"):
        pipeline.get_output()


def test_connections_that_make_no_sense():
    made = config()
    with pytest.raises(ArgumentValueError, match="in a circle"):
        made[LAST]["output"][0].connect(made[FIRST]["input"]["y"])
    with pytest.raises(ArgumentValueError, match="'a' is connected already"):
        made[LAST]["output"][0].connect(made[SECOND]["input"]["a"])
    with pytest.raises(ArgumentValueError, match="input of a model does not go to input"):
        made[FIRST]["input"]["x"].connect(made[SECOND]["input"]["b"])
    with pytest.raises(SlipwayError, match="not 'inputs'"):
        made["inputs"]
    empty = pipeline_executor_build.PipelineConfig()
    empty["input"]["data"].connect(empty[FIRST]["input"]["x"])
    with pytest.raises(ArgumentValueError, match="they count from 0"):
        pipeline_executor_build.build(empty)
