"""From which size on cores share loops that do little with each element.

A launch takes three microseconds, so that a second core helps from about six on.
"""

import pytest

import slipway as tvm
from slipway import relay
from slipway.backends.cpu.knobs import copied_elements
from slipway.target import Target

TARGET = Target("llvm -mcpu=znver4 -num-cores=2")


def var(*shape):
    return relay.var("x", shape=shape)


def shares(x, body):
    """Whether the kernel of a graph is launched on several cores."""
    library = relay.build(tvm.IRModule.from_expr(relay.Function([x], body)), target=TARGET)
    lines = library.get_lib().get_source("asm").splitlines()
    return any("__slipway_parallel_launch(%rip)" in line for line in lines)


def test_what_is_copied_counts_in_vectors():
    sizes = [copied_elements(Target(f"llvm -mcpu={cpu}")) for cpu in ("znver4", "haswell")]
    arm = Target("llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72")
    assert [*sizes, copied_elements(arm)] == [1 << 17, 1 << 16, 1 << 15]


@pytest.mark.parametrize(
    ("make", "few", "many"),
    [
        (relay.nn.relu, 100, 140),
        (lambda x: x + relay.nn.relu(x), 66, 90),
        (lambda x: relay.where(relay.less(x, relay.const(0.0)), x, x * x), 48, 66),
        (relay.exp, 30, 40),
        (lambda x: relay.sum(x, axis=2), 100, 140),
        (lambda x: relay.argmax(x, axis=1), 16, 40),
        (lambda x: relay.transpose(x, (0, 2, 1)), 40, 60),
        (relay.nn.softmax, 14, 20),
    ],
)
def test_cores_share_loops_that_take_longer_than_a_launch(make, few, many):
    for thousands, wanted in ((few, False), (many, True)):
        x = var(thousands, 16, 64)  # about a thousand elements each
        assert shares(x, make(x)) == wanted
