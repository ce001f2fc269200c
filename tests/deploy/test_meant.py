"""Names of other tools, in Python: what is answered says what to write instead."""

import copy
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

import slipway
from slipway.deploy import meant
from slipway.deploy.model import Model
from slipway.errors import ArgumentTypeError

DIGITS = Path(str(files("slipway"))) / "models" / "digits" / "digits.onnx"


@pytest.fixture(scope="module")
def model():
    return slipway.compile(DIGITS, quiet=True)


@pytest.mark.parametrize(
    ("argument", "told"),
    [
        ("providers", "target= says what it is compiled for"),
        ("input_shape", "write shapes={'image'"),
        ("batch_size", "dims={'batch': (1, 8)}"),
        ("fp16", "`slipway compile --precision float16`"),
        ("num_threads", "slipway.runtime.set_num_threads(n)"),
        ("board", "`slipway micro create"),
        ("output", ".save('model.tar')"),
        ("targt", "Did you mean 'target'"),
        ("nonsense", "has no argument 'nonsense'."),
    ],
)
def test_an_argument_that_compile_has_not(argument, told):
    with pytest.raises(ArgumentTypeError) as raised:
        slipway.compile(DIGITS, **{argument: 1})
    assert told in str(raised.value)


def test_what_stands_behind_the_target_has_a_name():
    with pytest.raises(TypeError, match="takes model and target without a name"):
        slipway.compile(DIGITS, "llvm", {"image": (1, 1, 8, 8)})


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("predict", "call it: model(x)"),
        ("get_inputs", "model.inputs has name, shape and dtype"),
        ("export_library", "model.save('model.tar')"),
        ("to", "model.on('HOST:PORT')"),
        ("set_input", "model.executor is the GraphModule"),
        ("profil", "Did you mean 'profile'"),
        ("nonsense", "a Model has no attribute 'nonsense'."),
    ],
)
def test_an_attribute_that_a_model_has_not(model, name, told):
    with pytest.raises(AttributeError) as raised:
        getattr(model, name)
    assert told in str(raised.value)
    assert not hasattr(model, name)


def test_onnxruntimes_way_to_run_is_answered(model):
    x = np.zeros((1, 1, 8, 8), "float32")
    with pytest.raises(TypeError, match=r"list\(model\.run\(feeds\)\.values\(\)\)"):
        model.run(None, {"image": x})
    (first,) = model.run({"image": x}).values()
    np.testing.assert_array_equal(first, model(x))
    np.testing.assert_array_equal(first, next(iter(model.run(inputs={"image": x}).values())))


def test_an_error_inside_of_a_property_is_its_own(model, monkeypatch):
    def broken(self):
        return self.artifact.no_such_thing

    monkeypatch.setattr(Model, "size", property(broken))
    with pytest.raises(AttributeError, match="no_such_thing"):
        _ = model.size


def test_a_model_is_copied_as_before(model):
    assert copy.copy(model).name == model.name


def test_no_row_hides_what_there_is(model):
    there = {one for one in dir(model) if not one.startswith("_")}
    for words, _ in meant._ATTRIBUTES:
        assert not set(words.split()) & there
    parameters = set(slipway.compile.__wrapped__.__code__.co_varnames)
    for words, _ in meant._ARGUMENTS:
        assert not set(words.split()) & (parameters - {"folder", "chosen", "library", "module"})


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("InferenceSession", "slipway.compile('model.onnx') returns what can be called"),
        ("load_model", "slipway.load('model.tar') opens an artifact"),
        ("from_onnx", "in relay.frontend"),
        ("connect", "slipway.rpc has it"),
    ],
)
def test_a_name_that_the_package_has_not(name, told):
    with pytest.raises(AttributeError) as raised:
        getattr(slipway, name)
    assert told in str(raised.value)


@pytest.mark.parametrize("inputs", [np.zeros((1, 4), "float32"), (np.zeros(4, "float32"),)])
def test_inputs_of_a_module_are_no_target(inputs):
    """The target's error told of a kind 'tensor([[0.'."""
    with pytest.raises(ArgumentTypeError, match=r"slipway\.compile\(module, example=x\)"):
        slipway.compile(DIGITS, inputs)


def test_a_model_file_is_not_built():
    with pytest.raises(ArgumentTypeError, match=r"slipway\.compile reads model files"):
        slipway.build("model.onnx")
