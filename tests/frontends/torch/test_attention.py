"""PyTorch's attentions become one nn.attention each, with torch's values."""

import pytest
import torch
import torch.nn.functional as F
from compare import assert_same, expected, infos_of
from torch import nn

import slipway as tvm
from slipway import relay
from slipway.compiler.optimize import optimize
from slipway.contrib import graph_executor
from slipway.frontends.torch.attention import grouped_product
from slipway.relay.interpret import interpret
from slipway.relay.visit import post_order
from slipway.target import Target
from slipway.transform.graph.attention.layouts import ATTENTIONS

RNG = torch.Generator().manual_seed(0)
SDPA = F.scaled_dot_product_attention


class Ways(nn.Module):
    """Several ways to write attention, each with a query of its own."""

    def forward(self, q, k, mask):
        keep = mask > 0
        wide = torch.tril(torch.ones(24, 30)) > 0
        by_hand = (q @ k.transpose(-2, -1) / 4).masked_fill(~wide, -torch.inf).softmax(-1) @ k
        turned = (q + 4).transpose(1, 2).contiguous().transpose(1, 2)
        return (
            by_hand,
            SDPA(q + 1, k, k, is_causal=True),
            SDPA(q + 2, k, k, mask, scale=0.3),
            SDPA(q + 3, k[:, :2], k[:, :2], keep[:1], enable_gqa=True),
            SDPA(turned, k, k).transpose(1, 2).flatten(2),
            SDPA(q[0] + 5, k[0], k[0]),
        )


class Several(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads = nn.MultiheadAttention(64, 4)

    def forward(self, x):
        return self.heads(x, x, x, need_weights=False)[0]


def randn(*shape):
    return torch.randn(*shape, generator=RNG)


@pytest.mark.parametrize(
    ("module", "shapes", "count"),
    [
        (Ways(), [(2, 4, 24, 16), (2, 4, 30, 16), (24, 30)], 6),
        pytest.param(Several().eval(), [(20, 2, 64)], 1, marks=pytest.mark.long),
    ],
)
def test_each_is_one_operator_with_the_values_of_torch(module, shapes, count):
    inputs = [randn(*shape) for shape in shapes]
    mod, params = relay.frontend.from_pytorch(module, infos_of(inputs))
    with tvm.transform.PassContext(opt_level=3):
        done = optimize(mod, params, Target("llvm"), layout_lanes=8)["main"]
        lib = relay.build(mod, target="llvm", params=params)
    found = [
        c.op.name
        for c in post_order(done.body)
        if isinstance(c, relay.Call) and isinstance(c.op, relay.Op)
    ]
    assert len([n for n in found if n in ATTENTIONS]) == count
    assert not set(found) & {"nn.softmax", "nn.batch_matmul", "repeat"}
    run = graph_executor.GraphModule(lib["default"](tvm.cpu(0)))
    run.run(**{f"x{i}": x.numpy() for i, x in enumerate(inputs)})
    results = [run.get_output(i).numpy() for i in range(run.get_num_outputs())]
    assert_same(results, expected(module, inputs))


@torch.library.custom_op("slipwaytests::grouped_mm", mutates_args=())
def grouped_mm(input: torch.Tensor, weight: torch.Tensor, offs: torch.Tensor) -> torch.Tensor:
    """As transformers defines the products of its layers of experts."""
    made = torch.zeros(input.shape[0], weight.shape[2])
    start = 0
    for group, end in enumerate(offs.tolist()):
        made[start:end] = input[start:end] @ weight[group]
        start = end
    return made


@grouped_mm.register_fake
def _(input, weight, offs):
    return input.new_empty(input.shape[0], weight.shape[2])


@pytest.mark.parametrize("ends", [(1, 1, 3), (0, 1, 2), (0, 5, 6), (2, 4, 7), (1, 2, 9)])
def test_rows_sorted_by_group_have_the_matrix_of_their_group(ends):
    """Groups may be empty, and rows after the last stay zero."""
    rows = 3 if ends[-1] <= 3 else 9

    class Experts(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.linspace(-1, 1, 3 * 4 * 5).reshape(3, 4, 5))

        def forward(self, x, ends):
            return grouped_mm(x, self.weight, ends)

    module = Experts().eval()
    inputs = [torch.linspace(-2, 2, rows * 4).reshape(rows, 4), torch.tensor(ends)]
    converters = {"slipwaytests::grouped_mm": grouped_product}
    mod, _ = relay.frontend.from_pytorch(module, infos_of(inputs), converters)
    found = interpret(mod, *(x.numpy() for x in inputs))
    assert_same([found], expected(module, inputs), 1e-5)


def test_as_many_rows_as_a_run_has():
    class Experts(nn.Module):
        def forward(self, x, weight, ends):
            return grouped_mm(x, weight, ends)

    inputs = [torch.rand(5, 4), torch.rand(3, 4, 5), torch.tensor([1, 3, 5])]
    dims = ({0: torch.export.Dim("rows", min=2, max=9)}, None, None)
    program = torch.export.export(Experts(), tuple(inputs), dynamic_shapes=dims)
    converters = {"slipwaytests::grouped_mm": grouped_product}
    mod, _ = relay.frontend.from_pytorch(program, None, converters)
    made = graph_executor.GraphModule(relay.build(mod, "llvm")["default"](tvm.cpu()))
    for ends in ([1, 3, 5], [0, 9, 9], [0, 0, 2]):
        inputs[0], inputs[2] = torch.rand(ends[-1], 4), torch.tensor(ends)
        names = [param.name_hint for param in mod["main"].params]
        made.run(**{name: x.numpy() for name, x in zip(names, inputs, strict=True)})
        assert_same([made.get_output(0).numpy()], [grouped_mm(*inputs).numpy()], 1e-5)
