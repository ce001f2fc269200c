"""The parser reads what the printer writes."""

import numpy as np
import pytest

from slipway import relay
from slipway.errors import ModelError, SlipwayError
from slipway.ir.function import IRModule
from slipway.ir.structural import structural_equal
from slipway.relay.interpret import interpret

RNG = np.random.default_rng(0)


def network():
    x = relay.var("data", shape=(1, 3, 8, 8))
    weight = relay.const(RNG.standard_normal((4, 3, 3, 3)).astype(np.float32))
    y = relay.nn.relu(relay.nn.conv2d(x, weight, padding=1) * 0.5)
    a, b = relay.split(y, 2, axis=1)
    return relay.nn.softmax(relay.nn.batch_flatten(relay.concatenate([b, a], 1)))


def lets():
    x, flag = relay.var("x", shape=(3,)), relay.var("flag", shape=(), dtype="bool")
    v = relay.Var("v", x.type)
    choice = relay.If(flag, relay.exp(v), v - relay.const(np.float32(-1.5)))
    return relay.Function((x, flag), relay.Let(v, relay.abs(x), relay.Tuple((choice, v))))


@pytest.mark.parametrize("build", [network, lets])
def test_round_trip(build):
    mod = IRModule.from_expr(build())
    again = relay.fromtext(relay.astext(mod, show_meta_data=True))
    assert structural_equal(again, mod)
    assert relay.astext(again) == relay.astext(mod)


def test_fused_kernels_come_back():
    mod = relay.transform.optimize(IRModule.from_expr(network()), opt_level=3)
    again = relay.fromtext(relay.astext(mod, show_meta_data=True))
    data = RNG.standard_normal((1, 3, 8, 8)).astype(np.float32)
    np.testing.assert_array_equal(interpret(again, data), interpret(mod, data))


def test_a_function_written_by_hand():
    function = relay.fromtext(
        """
        fn (%x: Tensor[(2, 3), float32], %w: Tensor[(4, 3), float32]) {
          %0 = nn.dense(%x, %w, units=4);  /* the attributes left out have their defaults */
          add(%0, 1.0f)
        }
        """
    )
    assert function.checked_type.ret_type == relay.TensorType((2, 4))


@pytest.mark.parametrize("line", ['#[version = "0.0.5"]\n', '#[version="0.0.4"] ', "v0.0.4\n"])
def test_the_version_that_classic_tvm_writes_is_passed_over(line):
    text = "fn (%x: Tensor[(2, 3), float32]) { nn.relu(%x) }"
    assert structural_equal(relay.fromtext(line + text), relay.fromtext(text))
    module = f"def @main{text[3:]}"
    assert structural_equal(relay.fromtext(line + module), relay.fromtext(module))
    with pytest.raises(ModelError, match="'#' begins nothing"):
        relay.fromtext("#[other]" + text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            '\n#[version = "0.0.6"]\nfn () { 1 }',
            "line 2, column 1: .*version '0.0.6'.*0.0.1 to 0.0.5",
        ),
        ('#[version = ""] fn () { 1 }', "of version ''"),
        ("v0.1.0\nfn () { 1 }", "of version '0.1.0'"),
        ('fn () {\n  #[version = "0.0.5"] 1 }', "line 2, column 3"),
        ('#[version = "0.0.5"] v0.0.4 fn () { 1 }', "line 1, column 22"),
    ],
)
def test_other_versions_and_those_that_do_not_begin_the_text_are_refused(text, words):
    with pytest.raises(ModelError, match=words):
        relay.fromtext(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("fn (%x: Tensor[(2,), float32]) { nn.relo(%x) }", r"line 1.*nn\.relu"),
        ("fn (%x: Tensor[(2,), float32]) {\n  exp(%y)\n}", "line 2, column 7: %y is not defined"),
        ("fn (%x: Tensor[(2,), float32]) { exp(%x)", "expected '}'"),
        ("fn () { meta[relay.Constant][0] }", "show_meta_data"),
        ("def @main () { ! }", "'!' begins nothing"),
    ],
)
def test_errors_say_where(text, words):
    with pytest.raises(ModelError, match=words):
        relay.fromtext(text)


@pytest.mark.parametrize("short", ["[2, 2]", "[2]"])
@pytest.mark.parametrize("call", ["nn.conv2d(%x, %w, kernel_size=[5, 5], ", "nn.max_pool2d(%x, "])
def test_padding_may_name_each_axis_once(call, short):
    head = "fn (%x: Tensor[(1, 3, 8, 8), float32], %w: Tensor[(4, 3, 5, 5), float32]) {"
    found = relay.fromtext(f"{head} {call}padding={short}) }}")
    assert structural_equal(found, relay.fromtext(f"{head} {call}padding=[2, 2, 2, 2]) }}"))


@pytest.mark.parametrize(
    "root", ["null", "[]", "1", '["l", 1]', '["l", ["a", 1]]', '["l", null]'], ids=str
)
def test_metadata_that_are_no_arrays_are_refused(root):
    text = str(relay.Function([], relay.const(np.arange(50.0))))
    data = f'{{"slipway_ir": 1, "root": {root}, "nodes": [], "arrays": []}}'
    with pytest.raises(SlipwayError, match=r"metadata|damaged|list|array|json|JSON"):
        relay.parse(f"{text}\n#[metadata]\n{data}")
