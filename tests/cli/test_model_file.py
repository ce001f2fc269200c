import pytest

from slipway.cli.model_file import parse_shapes, read_model
from slipway.errors import ModelError


@pytest.mark.parametrize(
    ("text", "shapes"),
    [
        (None, None),
        ("image:[1,3,224,224]", {"image": (1, 3, 224, 224)}),
        ("ids:[1, 128] mask:[1]", {"ids": (1, 128), "mask": (1,)}),
        ("ids:[1,128],scalar:[]", {"ids": (1, 128), "scalar": ()}),
    ],
)
def test_input_shapes(text, shapes):
    assert parse_shapes(text) == shapes


@pytest.mark.parametrize("text", ["image", "image:1,3", "image:[1,x]", "a:[1] b"])
def test_bad_input_shapes_say_how_to_write_them(text):
    with pytest.raises(ModelError, match=r"--input-shapes: cannot read .*image:\[1,3,224,224\]"):
        parse_shapes(text)


def test_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere\.onnx"):
        read_model(tmp_path / "nowhere.onnx")


def test_unknown_format_is_named(tmp_path):
    with pytest.raises(ModelError, match=r"'.onx' .*Did you mean '.onnx'\?"):
        read_model(tmp_path / "model.onx")
