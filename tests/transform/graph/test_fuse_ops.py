"""Fusion of long chains: what it looks at grows with the chain, not with its square."""

from slipway import relay
from slipway.ir.function import IRModule
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
