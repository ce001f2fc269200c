"""Operators in other layouts: the same numbers, and a transform only where a value needs two."""

import numpy as np
import pytest

import slipway as tvm
from slipway import relay
from slipway.errors import LoweringError
from slipway.relay.interpret import interpret
from slipway.relay.testing import TempOpAttr, count_ops


def constant(*shape):
    rng = np.random.default_rng(sum(shape))
    return relay.const(rng.normal(size=shape).astype("float32"))


def close(module, changed, *arrays):
    """Compare with the NumPy references of the module before, interpreted and compiled."""
    wanted = leaves(module, *arrays)
    runner = relay.create_executor("graph", mod=changed, device=tvm.cpu(), target="llvm")
    found = runner.evaluate()(*arrays)
    for a, b in zip(wanted, found if len(wanted) > 1 else [found], strict=True):
        np.testing.assert_allclose(b.numpy(), a, rtol=2e-4, atol=1e-5)


def leaves(module, given):
    found = interpret(module["main"], given)
    return found if isinstance(found, (tuple, list)) else [found]


def image(*shape):
    return np.random.default_rng(7).normal(size=shape).astype("float32")


def convert(module, data="NHWC", kernel="default"):
    changed = relay.transform.ConvertLayout({"nn.conv2d": [data, kernel]})(module)
    return changed, count_ops(changed["main"])


def module_of(x, *outputs):
    body = outputs[0] if len(outputs) == 1 else relay.Tuple(list(outputs))
    return relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([x], body)))


def test_a_chain_is_transformed_at_its_ends_only():
    x = relay.var("x", shape=(1, 6, 11, 9))
    y = relay.nn.conv2d(x, constant(8, 6, 3, 3), padding=(1, 2, 0, 1), strides=(2, 1))
    y = relay.nn.relu(relay.nn.bias_add(y, constant(8)))
    z = relay.nn.conv2d(y, constant(8, 1, 3, 3), padding=(1, 1), groups=8)
    y = relay.nn.max_pool2d(relay.concatenate([y, relay.tanh(z)], 1), (2, 2), (2, 2))
    module = module_of(x, relay.nn.pad(y, ((0, 0), (1, 0), (0, 2), (3, 0))))
    changed, counts = convert(module)
    assert counts["layout_transform"] == 4  # data, two kernels, the result
    assert "HWOI" in str(changed)
    close(module, changed, image(1, 6, 11, 9))


@pytest.mark.parametrize(
    "after",
    [
        lambda y: relay.mean(y, axis=[2, 3]),
        lambda y: relay.sum(y, axis=1, keepdims=True, exclude=True),
        lambda y: relay.argmax(y, axis=1),
        lambda y: relay.max(y, axis=-1),
        lambda y: relay.nn.softmax(y, axis=1),
        lambda y: relay.nn.softmax(y),
        lambda y: relay.nn.batch_norm(y, *[relay.abs(constant(6)) for _ in range(4)])[0],
        lambda y: relay.nn.prelu(y, constant(6)),
        lambda y: relay.nn.layer_norm(y, constant(7), constant(7)),
        lambda y: relay.nn.instance_norm(y, constant(6), constant(6)),
        lambda y: relay.nn.lrn(y),
        lambda y: relay.split(y, 2, axis=1)[1],
        lambda y: relay.transpose(y, [0, 3, 2, 1]),
        lambda y: relay.layout_transform(y, "NCHW", "NHWC"),
        lambda y: relay.squeeze(y, [0]),
        lambda y: relay.strided_slice(y, [0, 2, 1, 1], [1, 5, 4, 7], [1, 1, 2, 3]),
        lambda y: relay.image.resize2d(y, (9, 5)),
        lambda y: relay.nn.adaptive_avg_pool2d(y, (2, 3)),
        lambda y: relay.nn.batch_flatten(relay.nn.global_avg_pool2d(y)),
        lambda y: relay.multiply(y, constant(6, 1, 1)) + constant(7),
        lambda y: relay.where(relay.greater(y, relay.const(0.0)), y, constant(1, 6, 5, 7)),
        lambda y: relay.reshape(y, (6, -1)),
        lambda y: relay.cumsum(y, axis=2),
        lambda y: relay.stack([y, y], axis=1),
        lambda y: relay.Tuple([y, relay.nn.relu(y)]),
        lambda y: relay.add(y, relay.const(np.float32(2))),
    ],
)  # fmt: skip
@pytest.mark.parametrize("layout", ["NHWC", "CHWN"])
def test_what_follows_means_the_same(after, layout):
    x = relay.var("x", shape=(1, 3, 5, 7))
    y = relay.nn.conv2d(x, constant(6, 3, 3, 3), padding=(1, 1))
    module = module_of(x, after(y))
    changed, _ = convert(module, layout, "default" if layout == "NHWC" else "OHWI")
    assert f'data_layout="{layout}"' in str(changed)
    if layout == "NHWC":
        close(module, changed, image(1, 3, 5, 7))
    else:
        given = image(1, 3, 5, 7)
        for a, b in zip(leaves(module, given), leaves(changed, given), strict=True):
            np.testing.assert_allclose(b, a, rtol=2e-4, atol=1e-5)


def test_a_transpose_of_what_lies_so_costs_nothing():
    x = relay.var("x", shape=(1, 5, 5, 3))
    y = relay.nn.conv2d(relay.transpose(x, [0, 3, 1, 2]), constant(4, 3, 3, 3))
    module = module_of(x, relay.transpose(relay.nn.relu(y), [0, 2, 3, 1]))
    _, counts = convert(module)
    assert counts["transpose"] == 1
    assert counts["layout_transform"] == 2


def test_other_operators_have_layouts_too():
    x = relay.var("x", shape=(2, 3, 8))
    y = relay.nn.max_pool1d(relay.nn.conv1d(x, constant(4, 3, 3)), (2,), (2,))
    module = module_of(x, y)
    wanted = {"nn.conv1d": ["NWC", "default"], "nn.max_pool1d": ["NWC"]}
    changed = relay.transform.ConvertLayout(wanted)(module)
    assert count_ops(changed["main"])["layout_transform"] == 3
    close(module, changed, image(2, 3, 8))


def test_it_takes_classic_rules_for_altering():
    def alter(attrs, inputs, tinfos, out_type):
        assert tinfos[0].shape == (1, 16, 6, 6)
        assert out_type.shape == (1, 32, 6, 6)
        data, weight = inputs
        return relay.nn.conv2d(data, weight, **dict(attrs, data_layout="NCHW8c"))

    x = relay.var("x", shape=(1, 16, 6, 6))
    y = relay.nn.bias_add(relay.nn.conv2d(x, constant(32, 16, 3, 3), padding=(1, 1)), constant(32))
    module = module_of(x, relay.nn.max_pool2d(relay.nn.relu(y), (2, 2)))
    with TempOpAttr("nn.conv2d", "FTVMAlterOpLayout", alter):
        changed = relay.transform.AlterOpLayout()(module)
    counts = count_ops(changed["main"])
    assert counts["nn.contrib_conv2d_nchwc"] == 1
    assert counts["layout_transform"] == 3  # data, kernel, result
    close(module, changed, image(1, 16, 6, 6))


def test_a_rule_may_take_three_arguments_and_decline():
    seen = []
    with TempOpAttr("nn.conv2d", "FTVMAlterOpLayout", lambda a, i, t: seen.append(t)):
        x = relay.var("x", shape=(1, 16, 6, 6))
        module = module_of(x, relay.nn.conv2d(x, constant(32, 16, 3, 3)))
        assert relay.transform.AlterOpLayout()(module)["main"] is module["main"]
    assert len(seen) == 1


def test_legalize_applies_rules_of_any_kind():
    def legal(attrs, inputs, types):
        assert types[1].dtype == "float32"
        return relay.maximum(inputs[0], relay.const(0.0))

    x = relay.var("x", shape=(3,))
    module = module_of(x, relay.nn.relu(x))
    with TempOpAttr("nn.relu", "FTVMTestLegalize", legal):
        changed = relay.transform.Legalize("FTVMTestLegalize")(module)
    assert count_ops(changed["main"]) == {"maximum": 1}
    close(module, changed, image(3))


def test_errors_say_what_to_do():
    x = relay.var("x", shape=(1, 12, 6, 6))
    module = module_of(x, relay.nn.conv2d(x, constant(32, 12, 3, 3)))
    convert_layout = relay.transform.ConvertLayout
    with pytest.raises(LoweringError, match="takes a table such as"):
        convert_layout("NHWC")
    with pytest.raises(LoweringError, match="needs a list of layouts"):
        convert_layout({"nn.conv2d": "NHWC"})(module)
    with pytest.raises(LoweringError, match="which 'NHWD' does not order"):
        convert_layout({"nn.conv2d": ["NHWD", "default"]})(module)
    with pytest.raises(LoweringError, match="there is no operator 'conv2d'"):
        convert_layout({"conv2d": ["NHWC", "default"]})(module)
    with pytest.raises(LoweringError, match=r'\["CHWN", "OIHW"\]'):
        convert_layout({"nn.conv2d": ["CHWN", "default"]})(module)
    with pytest.warns(UserWarning, match="has one layout only"):
        convert_layout({"nn.dense": ["NC"]})(module)

    def alter(attrs, inputs, tinfos, out_type):
        return relay.nn.conv2d(*inputs, **dict(attrs, data_layout="NCHW16c"))

    with (
        TempOpAttr("nn.conv2d", "FTVMAlterOpLayout", alter),
        pytest.raises(tvm.TVMError, match="NCHW16c cuts axis C into blocks of 16"),
    ):
        relay.transform.AlterOpLayout()(module)


def nhwc_model():
    x = relay.var("x", shape=(1, 6, 6, 8))
    y = relay.nn.conv2d(
        x, constant(3, 3, 8, 16), padding=(1, 1), kernel_size=(3, 3), channels=16,
        data_layout="NHWC", kernel_layout="HWIO",
    )  # fmt: skip
    return tvm.IRModule.from_expr(relay.Function([x], relay.nn.relu(y)))


def test_a_registered_rule_says_what_convert_layout_makes():
    seen = []

    def rule(attrs, inputs, tinfos, desired):
        seen.append((tinfos[0].shape, desired))
        return relay.nn.conv2d(*inputs, **dict(attrs, data_layout=desired[0], kernel_layout="OIHW"))

    module = nhwc_model()
    with (
        TempOpAttr("nn.conv2d", "FTVMConvertOpLayout", rule),
        tvm.transform.PassContext(opt_level=3),
    ):
        changed, counts = convert(module, "NCHW", "default")
    assert seen == [((1, 6, 6, 8), ["NCHW", "default"])]
    assert counts == {"layout_transform": 3, "nn.conv2d": 1, "nn.relu": 1}
    close(module, changed, image(1, 6, 6, 8))


@pytest.mark.parametrize(("level", "calls"), [(2, 0), (3, 1)])
def test_build_applies_registered_layouts_at_level_3(level, calls):
    seen = []

    def rule(attrs, inputs, tinfos, out_type):
        seen.append(out_type.shape)
        return relay.nn.conv2d(*inputs, **dict(attrs, data_layout="NCHW", kernel_layout="OIHW"))

    module = nhwc_model()
    with (
        TempOpAttr("nn.conv2d", "FTVMAlterOpLayout", rule),
        tvm.transform.PassContext(opt_level=level),
    ):
        close(module, module, image(1, 6, 6, 8))
    assert seen == [(1, 6, 6, 16)] * calls


def test_build_applies_registered_legalizations():
    def rule(attrs, inputs, types):
        return relay.maximum(inputs[0], relay.const(1.0))

    module = nhwc_model()
    runner = relay.create_executor("graph", mod=module, device=tvm.cpu(), target="llvm")
    x = image(1, 6, 6, 8)
    with TempOpAttr("nn.relu", "FTVMLegalize", rule):
        found = runner.evaluate()(x).numpy()
    (wanted,) = leaves(module, x)
    np.testing.assert_allclose(found, np.maximum(wanted, 1), rtol=1e-4)
    assert found.min() == 1
