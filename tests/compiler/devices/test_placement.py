"""Where the operators of a model are, and which are compiled together: the rules by themselves."""

import pytest

import slipway as tvm
from slipway import relay
from slipway.compiler.several_devices.placement import place, regions
from slipway.relay.expr import Call, Function, Tuple
from slipway.relay.visit import post_order
from slipway.transform.graph.infer_type import infer_type

CPU, OPENCL, VULKAN = 1, 4, 7


def placed(expr, default=None, **options):
    """Return {operator: device} of an expression, whose operators differ, and its regions."""
    body = infer_type(Function(tuple(relay.analysis.free_vars(expr)), expr)).body
    found = place(body, default, OPENCL, **options)
    calls = [e for e in post_order(body, into_functions=False) if id(e) in found]
    assert len(calls) == len(found)
    cut = [
        (part.device, [getattr(call.op, "name", "function") for call in part.calls])
        for part in regions(body, found)
    ]
    return {getattr(c.op, "name", "function"): found[id(c)] for c in calls}, cut


def x():
    return relay.var("x", shape=(4, 4))


def test_without_marks_all_is_on_the_accelerator_but_what_threads_cannot_share():
    where, cut = placed(relay.exp(relay.sort(relay.tanh(x()))))
    assert where == {"tanh": OPENCL, "topk": CPU, "exp": OPENCL}
    assert cut == [(OPENCL, ["tanh"]), (CPU, ["topk"]), (OPENCL, ["exp"])]


def test_control_alone():
    where, _ = placed(relay.exp(relay.sort(x())), control_only=True)
    assert where == {"topk": OPENCL, "exp": OPENCL}
    where, _ = placed(relay.exp(relay.sort(x())), default=VULKAN)
    assert where == {"topk": VULKAN, "exp": VULKAN}


def test_a_mark_holds_for_what_it_alone_reads():
    value = x()
    shared = relay.tanh(value)
    marked = relay.annotation.on_device(relay.exp(relay.abs(shared)), tvm.vulkan(0))
    where, cut = placed(relay.Tuple([relay.sqrt(marked), relay.ceil(shared)]))
    assert where == {"tanh": CPU, "abs": VULKAN, "exp": VULKAN, "sqrt": CPU, "ceil": CPU}
    assert cut == [(CPU, ["tanh", "ceil"]), (VULKAN, ["abs", "exp"]), (CPU, ["sqrt"])]


@pytest.mark.parametrize("source", [OPENCL, VULKAN])
def test_what_is_copied_is_computed_where_it_is_copied_from(source):
    made = relay.exp(x())
    copy = relay.device_copy(made, tvm.device(source, 0), tvm.cpu(0))
    where, cut = placed(relay.sqrt(copy))
    assert where == {"exp": source, "sqrt": CPU}
    assert cut == [(source, ["exp"]), (CPU, ["sqrt"])]


def test_what_a_function_computes_is_placed_with_its_call():
    y = relay.var("y", shape=(4, 4))
    inner = Function((y,), relay.exp(relay.tanh(y)))
    where, cut = placed(Call(inner, (relay.abs(x()),)), default=VULKAN)
    assert where == {"abs": VULKAN, "function": VULKAN}
    assert cut == [(VULKAN, ["abs", "function"])]


def test_a_tuple_hands_on_what_is_asked_of_it():
    halves = relay.split(relay.exp(x()), 2, axis=0)
    joined = relay.concatenate([halves[0], halves[1]], 0)
    where, _ = placed(relay.annotation.on_device(joined, "vulkan"), default=OPENCL)
    assert set(where.values()) == {VULKAN}
    pair = Tuple((relay.exp(x()), relay.tanh(x())))
    where, _ = placed(relay.annotation.on_device(relay.sqrt(pair.fields[0]), "vulkan"), OPENCL)
    assert where == {"exp": VULKAN, "sqrt": VULKAN}
