"""The header of a program: names, scales, conversions and labels, for C and for C++."""

import ctypes
import shutil
import subprocess

import numpy as np
import pytest
from aot_models import build, keyword_net
from onnx import TensorProto, helper, numpy_helper

from slipway import relay
from slipway.compiler.aot.emit_converters import c_string

STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror", "-O1"]
SCALE, ZERO = 0.0123, 7
LABELS = ["cat", 'a "dog"', "what??!", "Bär\\n"]


def integer_model(properties=None, dtype=np.int8):
    """Integers to integers over a product of real numbers, with names that C cannot have."""

    def scalar(name, value, kind):
        return numpy_helper.from_array(np.array(value, kind), name)

    weights = np.random.default_rng(0).standard_normal((8, 4)).astype("float32")
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    graph = helper.make_graph(
        [
            helper.make_node("DequantizeLinear", ["class", "s", "z"], ["real"]),
            helper.make_node("MatMul", ["real", "w"], ["product"]),
            helper.make_node("QuantizeLinear", ["product", "t", "u"], ["scores:0"]),
        ],
        "g",
        [
            helper.make_tensor_value_info("class", kind, [1, 8]),
            helper.make_tensor_value_info("output", TensorProto.FLOAT, [2]),
            helper.make_tensor_value_info("Output", TensorProto.FLOAT, [2]),
            helper.make_tensor_value_info("workspace", TensorProto.FLOAT, [3]),
        ],
        [helper.make_tensor_value_info("scores:0", kind, [1, 4])],
        [
            scalar("s", SCALE, "float32"),
            scalar("z", ZERO, dtype),
            scalar("t", 0.5, "float32"),
            scalar("u", 0, dtype),
            numpy_helper.from_array(weights, "w"),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 9
    helper.set_model_props(model, properties or {})
    return model


def header_of(model, name="net"):
    mod, params = relay.frontend.from_onnx(model)
    return build((mod, params), mod_name=name).sources.header


def compiled(folder, header, text, language):
    compiler, standard, suffix = {
        "c": ("gcc", "-std=c99", ".c"),
        "c++": ("g++", "-std=c++11", ".cc"),
    }[language]
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    (folder / "tvmgen_net.h").write_text(header)
    source = folder / f"user{suffix}"
    source.write_text('#include "tvmgen_net.h"\n' + text)
    command = [compiler, standard, *STRICT, "-shared", "-fPIC", "-o", folder / "user.so", source]
    subprocess.run([*map(str, command)], check=True)
    return ctypes.CDLL(str(folder / "user.so"))


USER = """
#ifdef __cplusplus
extern "C" {
#endif
int to_integer(float value);
int to_integer(float value) { return tvmgen_net_quantize_input(value); }
float to_real(int value);
float to_real(int value) { return tvmgen_net_dequantize_output((KIND)value); }
const char *label(unsigned at);
const char *label(unsigned at) { return tvmgen_net_output_label(at); }
const char *name(void);
const char *name(void) { return TVMGEN_NET_OUTPUT_NAME; }
#ifdef __cplusplus
}
#endif
"""


@pytest.mark.parametrize(("language", "dtype"), [("c", np.int8), ("c++", np.int8), ("c", np.uint8)])
def test_conversions_are_those_of_onnx(language, dtype, tmp_path):
    ort = pytest.importorskip("onnxruntime")
    header = header_of(integer_model({"names": str(dict(enumerate(LABELS)))}, dtype))
    kind = f"{np.dtype(dtype).name}_t"
    user = compiled(tmp_path, header, USER.replace("KIND", kind), language)
    user.to_integer.argtypes, user.to_real.restype = [ctypes.c_float], ctypes.c_float
    user.label.restype = user.name.restype = ctypes.c_char_p
    assert [user.label(i) for i in range(5)] == [*(s.encode() for s in LABELS), None]
    assert user.name() == b"scores:0"
    rng = np.random.default_rng(1)
    halves = (np.arange(-300, 300) + np.float32(0.5)) * np.float32(SCALE)
    values = np.concatenate(
        [halves, np.nextafter(halves, 9), rng.uniform(-4, 4, 500), [1e30, -1e30, np.inf, -np.inf]]
    ).astype("float32")
    node = helper.make_node("QuantizeLinear", ["x", "s", "z"], ["y"])
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [None])],
        [
            helper.make_tensor_value_info(
                "y", helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), [None]
            )
        ],
        [
            numpy_helper.from_array(np.float32(SCALE), "s"),
            numpy_helper.from_array(np.array(ZERO, dtype), "z"),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 9
    wanted = ort.InferenceSession(model.SerializeToString()).run(None, {"x": values})[0]
    got = [user.to_integer(float(v)) for v in values]
    np.testing.assert_array_equal(got, wanted)
    lowest = np.iinfo(dtype).min
    assert [user.to_real(lowest + i) for i in (0, 3)] == [(lowest + i) * 0.5 for i in (0, 3)]
    assert user.to_integer(float("nan")) == lowest


def test_a_zero_point_of_zero_is_no_step():
    """`value - 0` is dead code to MISRA's rule 2.2; files of 16 bits have no other zero points."""
    header = header_of(integer_model())  # its output's is 0, its input's is not
    assert "centred = (int32_t)value;" in header
    assert f"whole += {ZERO};" in header
    assert "- 0;" not in header
    assert "+= 0;" not in header


def test_names_that_collide_in_capitals_or_are_words_of_cpp(tmp_path):
    header = header_of(integer_model())
    names = [line.split()[1] for line in header.splitlines() if line.startswith("#define")]
    assert len(names) == len(set(names))
    for language in ("c", "c++"):
        folder = tmp_path / language
        folder.mkdir()
        text = "int fields(const struct tvmgen_net_inputs *i);\n"
        text += (
            "int fields(const struct tvmgen_net_inputs *i) { return i->class_1 == i->output_1 && "
        )
        text += "i->Output_2 == i->workspace_1; }\n"
        compiled(folder, header, text, language)
    assert "const void *class_1" in header
    assert "#define TVMGEN_NET_SCORES" not in header


@pytest.mark.parametrize(
    "text",
    [
        '["a", "b", "c", "d"]', "{'0': 'a', '1': 'b', '2': 'c', '3': 'd'}", "a,b,c,d", "a\nb\nc\nd",
        "{10: 'd', 2: 'b', 1: 'a', 3: 'c'}",
    ],
)  # fmt: skip
def test_labels_as_tools_write_them(text):
    mod, _ = relay.frontend.from_onnx(integer_model({"labels": text}))
    assert mod["main"].attr("meanings")[-1][-1] == ("a", "b", "c", "d")


@pytest.mark.parametrize("text", ["a,b,c", "[[", "{'x': 1}", "{" * 9000, "7", '["a"]'])
def test_labels_that_say_nothing_are_left_out(text):
    mod, _ = relay.frontend.from_onnx(integer_model({"labels": text}))
    assert [row[0] for row in mod["main"].attr("meanings")] == ["in", "out"]
    assert mod["main"].attr("meanings")[-1][-1] == ()


def test_a_model_of_real_numbers_has_no_conversions(tmp_path):
    header = build(keyword_net(), mod_name="net").sources.header
    assert "quantize" not in header
    assert "_SCALE" not in header
    assert "const void *data;" in header
    for language in ("c", "c++"):
        folder = tmp_path / language
        folder.mkdir()
        compiled(folder, header, "", language)


@pytest.mark.parametrize("language", ["c", "c++"])
def test_a_text_that_an_input_takes_has_a_number(language, tmp_path):
    words = ["catalogue", "cat", "", "Bär"]
    node = helper.make_node("LabelEncoder", ["animal"], ["y"], domain="ai.onnx.ml",
                            keys_strings=words, values_floats=[1.0, 2.0, 3.0, 4.0])  # fmt: skip
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 2)]
    model = helper.make_model(helper.make_graph(
        [node], "g", [helper.make_tensor_value_info("animal", TensorProto.STRING, [1])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])],
    ), opset_imports=opsets)  # fmt: skip
    text = "int number(const char *t);\n"
    text += "int number(const char *t) { return (int)tvmgen_net_animal_of_text(t); }\n"
    if language == "c++":
        text = f'extern "C" {{\n{text}}}\n'
    user = compiled(tmp_path, header_of(model), text, language)
    known = relay.frontend.from_onnx(model)[0]["main"].attr("meanings")[0][-1]
    assert {*known} == {*words}
    assert [user.number(word.encode()) for word in known] == [0, 1, 2, 3]
    assert [user.number(word) for word in (b"ca", b"cats", b"B", b"x")] == [-1] * 4


def test_strings_of_c():
    assert c_string('a"b\\c\n?') == '"a\\"b\\\\c\\012\\?"'
