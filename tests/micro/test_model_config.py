"""The macros that tell a template's programs of the model they run."""

from slipway.micro.model_config import model_config


def config(**tensors):
    main = {"inputs": tensors, "outputs": {"y": {"dtype": "int8", "size": 6, "shape": [2, 3]}}}
    memory = {"functions": {"main": [main]}}
    return model_config({"model_name": "m", "memory": memory}, {})


def test_a_tensor_has_its_shape_and_a_scalar_none():
    text = config(x={"dtype": "float32", "size": 4, "shape": []})
    assert "static int64_t shape_in_x[] = {1};" in text  # C has no array without elements
    assert '{"x", {memory_in_x, {1, 0}, 0, {2, 32, 1}, shape_in_x, 0, 0}, 0}' in text
    assert "static int64_t shape_out_y[] = {2, 3};" in text
    assert '{"y", {memory_out_y, {1, 0}, 2, {0, 8, 1}, shape_out_y, 0, 0}, 0}' in text


def test_an_archive_without_shapes_has_flat_tensors():
    text = config(x={"dtype": "float32", "size": 40})
    assert "static int64_t shape_in_x[] = {10};" in text
    assert '{"x", {memory_in_x, {1, 0}, 1, {2, 32, 1}, shape_in_x, 0, 0}, 0}' in text


def test_a_tensor_may_be_called_as_the_macros_parameter():
    """An input "X", which every model of skl2onnx has, was replaced: no firmware compiled."""
    one = {"dtype": "float32", "size": 4}
    assert '#define MODEL_FOR_EACH_INPUT(X) X(x, 4, "float32")' in config(x=one)
    text = config(X=one, X_=one)
    assert "#define MODEL_FOR_EACH_INPUT(X__) X__(X, 4, " in text
    assert 'X__(X_, 4, "float32")' in text
