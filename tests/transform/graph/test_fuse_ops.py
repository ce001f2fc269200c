"""Fusion of long chains and wide tuples: what it looks at grows with them, not with a square."""

import numpy as np

from slipway import relay
from slipway.ir.function import IRModule
from slipway.relay.visit import post_order
from slipway.transform.graph import fuse_ops


def kept(layers):
    """Every value of a chain is read by the next one, and by a sum at the end."""
    x = relay.var("x", shape=(4, 16))
    values = [relay.tanh(x)]
    while len(values) < layers:
        values.append(relay.tanh(values[-1]))
    total = values[0]
    for value in values[1:]:
        total = total + value
    return IRModule.from_expr(total)["main"]


def test_values_that_are_read_at_the_end_of_a_chain(monkeypatch):
    root, counts = fuse_ops._Node.root, []

    def counted(node):
        counts[-1] += 1
        return root(node)

    monkeypatch.setattr(fuse_ops._Node, "root", counted)
    for layers in (600, 1800):
        counts.append(0)
        fuse_ops.fuse_ops(kept(layers))
    assert counts[1] < 4.5 * counts[0]  # nine times as much when every path is walked to its end


def test_a_kernel_takes_the_field_of_a_tuple_that_it_reads():
    """With the whole tuple each would be a kernel of its own, and read 40 tensors."""
    x = relay.var("x", shape=(4, 120))
    parts = relay.split(x, 40, axis=1)
    gates = [relay.sigmoid(parts[n]) * relay.tanh(parts[n + 20]) for n in range(20)]
    module = IRModule.from_expr(relay.Function([x], relay.Tuple(gates)))
    fused = fuse_ops.fuse_ops(module["main"])
    kernels = [e for e in post_order(fused) if isinstance(e, relay.Function) and e is not fused]
    kernels = [kernel for kernel in kernels if "split(" not in str(kernel)]
    assert len(kernels) == 20
    assert len({str(kernel) for kernel in kernels}) == 1
    assert [str(p.checked_type) for p in kernels[0].params] == ["Tensor[(4, 3), float32]"] * 2


def doubled(x):
    """An image of twice the rows, each element of it from two others."""
    rows = x.tensor_type.shape[0]
    first = relay.take(x, relay.const(np.arange(2 * rows, dtype=np.int32) // 2), axis=0)
    second = relay.take(x, relay.const(np.arange(1, 2 * rows + 1, dtype=np.int32) // 2), axis=0)
    return relay.multiply(first, relay.const(np.float32(0.75))) + relay.multiply(
        second, relay.const(np.float32(0.25))
    )


def kernels_of(body):
    module = relay.transform.InferType()(IRModule.from_expr(body))
    fused = fuse_ops.fuse_ops(module["main"])
    return [e for e in post_order(fused.body) if isinstance(e, relay.Function)]


def test_interpolations_of_interpolations_are_kernels_of_their_own():
    """In one kernel each of five evaluated what is before it twice as often: 32 times."""
    x = relay.var("x", shape=(8, 16))
    values = [x]
    for _ in range(5):
        value = relay.clip(values[-1] * relay.const(np.float32(2)), -9, 9)
        module = relay.transform.InferType()(IRModule.from_expr(value))
        values.append(doubled(module["main"].body))
    assert len(kernels_of(values[1])) == 1
    assert len(kernels_of(values[2])) == 1
    assert len(kernels_of(values[5])) > 1
