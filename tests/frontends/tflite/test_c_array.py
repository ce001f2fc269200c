"""Models in C source, as projects of TensorFlow Lite Micro hold them."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import slipway
from slipway.cli.app import app
from slipway.errors import ModelError, SlipwayError
from slipway.frontends.tflite.c_array import file_bytes, holds_model


@pytest.fixture(scope="module")
def model(shared):
    path = shared / "models/tflite/hello_world_int8.tflite"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    return path.read_bytes()


def xxd(data, name="hello_tflite"):
    rows = [data[i : i + 12] for i in range(0, len(data), 12)]
    body = ",\n".join("  " + ", ".join(f"0x{byte:02x}" for byte in row) for row in rows)
    return f"unsigned char {name}[] = {{\n{body}\n}};\nunsigned int {name}_len = {len(data)};\n"


def tflm(data):
    body = "".join(f"{byte:#x}," + ("\n    " if i % 9 == 8 else "") for i, byte in enumerate(data))
    return (
        '#include "hello_model_data.h"\n/* made by a script { 1, 2 }; */\n'
        "static const int sizes[] = {1, 2, 3, 4, 5, 6, 7, 8, 9};\n"
        f"alignas(16) const unsigned char g_hello_model_data[] __attribute__((aligned(4))) = {{\n"
        f"    // the bytes\n    {body}}};\nconst int g_hello_model_data_size = {len(data)};\n"
    )


def decimal(data):
    return f"const uint8_t model[{len(data)}] PROGMEM = {{{','.join(map(str, data))}}};"


@pytest.mark.parametrize(
    ("write", "suffix"), [(xxd, ".c"), (xxd, ".h"), (tflm, ".cc"), (decimal, ".ino")]
)
def test_the_bytes_are_those_of_the_file(model, tmp_path, write, suffix):
    path = tmp_path / f"model_data{suffix}"
    path.write_text(write(model))
    assert holds_model(path)
    assert file_bytes(path) == model


def test_it_compiles_checks_and_runs_as_the_file_does(model, tmp_path):
    source, plain = tmp_path / "hello_model_data.cc", tmp_path / "hello.tflite"
    source.write_text(tflm(model))
    plain.write_bytes(model)
    ours, theirs = (slipway.compile(path, quiet=True) for path in (source, plain))
    x = np.arange(-128, 127, 51, dtype="int8")
    for value in x:
        np.testing.assert_array_equal(ours(value.reshape(1, 1)), theirs(value.reshape(1, 1)))
    pytest.importorskip("ai_edge_litert")
    assert ours.check()


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def test_commands_take_it(model, tmp_path):
    source = tmp_path / "hello_model_data.cc"
    source.write_text(tflm(model))
    done = run("check", source, "--json")
    assert done.exit_code == 0
    assert json.loads(done.stdout)
    done = run("micro", "create", source, tmp_path / "firmware", "--board", "mps2-an386")
    assert done.exit_code == 0, done.output


def test_what_is_no_such_source_is_told(model, tmp_path):
    other, two, cut = tmp_path / "main.c", tmp_path / "two.h", tmp_path / "cut.cc"
    other.write_text("int main(void) { int x[] = {1, 2, 3}; return x[0]; }\n")
    two.write_text(xxd(model, "one") + xxd(model, "other"))
    cut.write_text(tflm(model).replace("0x0,", "ZERO,"))
    assert not holds_model(other)
    with pytest.raises(SlipwayError, match=r"cannot tell the model's format from '\.c'"):
        slipway.compile(other)
    with pytest.raises(ModelError, match=r"several models \(one, other\); give the .tflite"):
        slipway.compile(two)
    assert not holds_model(cut)
    cut.write_text(xxd(model).replace("0x54, 0x46", "0x54,0x46").replace("};", ", 0x1ff };", 1))
    with pytest.raises(ModelError, match=r"hello_tflite begins as.*'0x1ff', which is no byte"):
        slipway.compile(cut)
    cut.write_text(xxd(model[: len(model) // 2]))
    with pytest.raises(ModelError, match=r"cut\.cc"):
        slipway.compile(cut)
