"""Fusion of long chains and wide tuples: what it looks at grows with them, not with a square."""

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
