"""torch.linalg on small matrices; distances between rows; products of three tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from slipway import relay
from slipway.frontends.linear_algebra import cholesky, determinant, inverse, solution
from slipway.frontends.torch.converters import NodeView, cast, converter, like
from slipway.relay.expr import Expr
from slipway.relay.op_registry import const


@converter("linalg_inv_ex", "_linalg_det", "linalg_cholesky_ex", "_linalg_slogdet")
def of_one(node: NodeView) -> Any:
    """Inverse, determinant and Cholesky factor; the code of an error is that of none."""
    x = node.input("A" if "A" in node.arguments else "self")
    if node.kind == "_linalg_det":
        return [determinant(x), None, None]
    if node.kind == "_linalg_slogdet":
        found = determinant(x)
        return [relay.sign(found), relay.log(relay.abs(found)), None, None]
    if node.kind == "linalg_inv_ex":
        return [inverse(x), _no_error(node, 1)]
    lower = cholesky(x)
    if node.arg("upper", False):
        rank = node.rank()
        lower = relay.transpose(lower, (*range(rank - 2), rank - 1, rank - 2))
    return [lower, _no_error(node, 1)]


def _no_error(node: NodeView, number: int) -> Any:
    kind = node.outputs[number]
    assert kind is not None
    return relay.zeros(kind.shape, kind.dtype)


@converter("_linalg_solve_ex")
def solve(node: NodeView) -> Any:
    """A system of linear equations, of a matrix or a vector on the right."""
    if not node.arg("left", True):
        raise node.unsupported("left=False")
    a, b, out = node.input("A"), node.input("B"), node.out.shape
    lead = a.tensor_type.shape[:-2]
    vector = b.tensor_type.rank == 1 or b.tensor_type.shape == (*lead, a.tensor_type.shape[-1])
    if vector:
        b = relay.expand_dims(b, -1)
    batch = out[:-1] if vector else out[:-2]
    a, b = (
        x if x.tensor_type.shape[:-2] == batch
        else relay.broadcast_to(x, (*batch, *x.tensor_type.shape[-2:]))
        for x in (a, b)
    )  # fmt: skip
    return [relay.reshape(solution(a, b), out), None, None, _no_error(node, 3)]


@converter("linalg_solve_triangular")
def solve_triangular(node: NodeView) -> Any:
    """A system whose matrix is one triangle of what is given, on the left or on the right."""
    a, b, shape = node.input(), node.input("B"), node.shape()
    mask = np.tri(shape[-1], dtype=bool, k=-1 if node.arg("unitriangular", False) else 0)
    mask = mask.T if node.arg("upper") else mask
    kept = relay.where(const(mask), a, relay.zeros_like(a))
    if node.arg("unitriangular", False):
        kept = relay.add(kept, const(np.eye(shape[-1], dtype=a.tensor_type.dtype)))
    batch = node.out.shape[:-2]

    def transposed(x: Expr) -> Expr:
        rank = x.tensor_type.rank
        made: Expr = relay.transpose(x, (*range(rank - 2), rank - 1, rank - 2))
        return made

    left = node.arg("left", True)
    kept, b = (
        relay.broadcast_to(x, (*batch, *x.tensor_type.shape[-2:]))
        for x in ((kept, b) if left else (transposed(kept), transposed(b)))
    )
    found = solution(kept, b)
    return found if left else transposed(found)


@converter("_pdist_forward")
def pdist(node: NodeView) -> Any:
    """The distance of each row to every later one."""
    x, power = node.input(), float(node.arg("p", 2))
    one, two = np.triu_indices(node.shape()[0], 1)
    gap = relay.abs(relay.subtract(*(relay.take(x, const(i), 0, mode="fast") for i in (one, two))))
    if power == np.inf:
        return relay.max(gap, 1)
    if power == 0:
        return relay.sum(relay.cast(relay.not_equal(gap, like(0, gap)), node.out.dtype), 1)
    if power == 1:
        return relay.sum(gap, 1)
    if power == 2:
        return relay.sqrt(relay.sum(relay.multiply(gap, gap), 1))
    return relay.power(relay.sum(relay.power(gap, like(power, gap)), 1), like(1 / power, gap))


@converter("_trilinear")
def trilinear(node: NodeView) -> Any:
    """The product of three tensors, each with new axes, summed over some."""
    rank = node.rank("i1") + len(node.ints("expand1"))
    factors = []
    for number in "123":
        x = node.input(f"i{number}")
        for axis in sorted(a % rank for a in node.ints(f"expand{number}")):
            x = relay.expand_dims(x, axis)
        factors.append(x)
    product = relay.multiply(relay.multiply(factors[0], factors[2]), factors[1])
    summed = tuple(a % rank for a in node.ints("sumdim"))
    return relay.sum(product, summed) if summed else product


@converter("_embedding_bag", "_embedding_bag_forward_only")
def embedding_bag(node: NodeView) -> Any:
    """Sums, means or maxima of rows of a table, for bags that begin at given offsets."""
    table, indices = node.input("weight"), node.input("indices")
    bags, width = node.out.shape
    mode, padding = int(node.arg("mode", 0)), int(node.arg("padding_idx", -1))
    offsets = relay.strided_slice(cast(node.input("offsets"), "int64"), [0], [bags])
    total = indices.tensor_type.shape[0]
    # A position is in the last bag that begins at it or before.
    begun = relay.searchsorted(offsets, relay.arange(0, total, 1, "int64"), True, "int64")
    bag = relay.subtract(begun, const(np.int64(1)))
    rows = relay.take(table, indices, 0, mode="fast")
    weights = node.optional("per_sample_weights")
    if weights is not None:
        rows = relay.multiply(rows, relay.reshape(weights, (total, 1)))
    there: Any = relay.ones((total,), node.out.dtype)
    if padding >= 0:
        there = cast(relay.not_equal(indices, like(padding, indices)), node.out.dtype)
    own = relay.expand_dims(there, 1)
    empty, into = relay.zeros((bags, width), node.out.dtype), relay.expand_dims(bag, 1)
    into = relay.broadcast_to(into, (total, width))
    counted: Any = relay.zeros((bags,), node.out.dtype)
    counted = relay.expand_dims(relay.scatter_elements(counted, bag, there, 0, "add"), 1)
    if mode == 2:
        lowest = like(-np.inf, rows)
        kept = relay.where(relay.greater(own, like(0, rows)), rows, lowest)
        first = relay.broadcast_to(lowest, (bags, width))
        found = relay.scatter_elements(first, into, kept, 0, "max")
        return [relay.where(relay.greater(counted, like(0, rows)), found, empty), None, None, None]
    rows = relay.multiply(rows, own) if padding >= 0 else rows
    summed = relay.scatter_elements(empty, into, rows, 0, "add")
    if mode == 1:
        summed = relay.divide(summed, relay.maximum(counted, like(1, rows)))
    return [summed, None, None, None]
