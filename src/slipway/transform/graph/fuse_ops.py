"""FuseOps: operators are grouped into kernels, each a Function with attribute Primitive = 1.

    %0 = nn.conv2d(%x, %w); %1 = add(%0, %b); nn.relu(%1)
        ->  fn(%p0, %p1, %p2, Primitive=1) { nn.relu(add(nn.conv2d(%p0, %p1), %p2)) }(%x, %w, %b)

The rule is classic TVM's, on post-dominators.  A node's post-dominator is where all paths from it
meet again; a node is fused into the kernel of its post-dominator when every path between is of a
kind that can follow it:

- a convolution (OUT_ELEMWISE_FUSABLE) takes elementwise and broadcast consumers of its shape;
- elementwise and broadcast operators go into injective consumers, reductions, and kernels of
  convolutions that they follow;
- injective ones go into injective consumers; tuples into the concatenation that reads them, unless
  that joins more than `wide` tensors, each of which had better be copied.

Where a consumer reads each element many times, as a broadcast does, what is costly and what follows
it up to there is a kernel of its own.

Scalar constants are written into the kernel; other constants become its parameters.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from slipway import dtypes
from slipway.relay import op_registry
from slipway.relay.dims import usual
from slipway.relay.expr import Call, Constant, Expr, Function, Op, Tuple, TupleGetItem, Var
from slipway.relay.op_registry import OpPattern
from slipway.relay.types import TensorType, flatten
from slipway.relay.visit import children, post_order, rebuild
from slipway.transform.graph.split_joins import MOST, WIDE, parts_of_join

# Deeper kernels would nest expressions beyond what recursive passes bear, and gain nothing.
MAX_DEPTH = 48

# Inside a kernel an operator is expanded for each of its readers, and again for each of theirs:
# where every value has two readers, that doubles with every step.
MAX_UNROLLED = 512

# Two interpolations of an image, each from four elements, evaluate what is before them 16 times:
# kernels in which operators are evaluated more often than this on average are cut, unless small.
MAX_EVALUATED, FEW_EVALUATED = 2, 64

# An operator this costly an element is not recomputed for each reader of a broadcast.
COSTLY_FLOPS = 4
REPEAT_LIMIT = 2


# Tensors that kernels of one fused reduction hand to each other, as softmax does: largest and sum.
HANDED_ON = 2


Ends = Callable[[Expr], bool]


def fuse_ops(
    function: Function, max_depth: int = MAX_DEPTH, ends: Ends | None = None, wide: int = WIDE,
    most_tensors: int | None = None,
) -> Function:  # fmt: skip
    """Return `function` whose body calls kernels of at most `max_depth` operators.

    With `max_depth` 1 every operator becomes a kernel of its own.  An operator for which `ends` is
    true is the last of its kernel; a join of more than `wide` tensors is a kernel by itself.
    Operators that would read and write more than `most_tensors` together stay apart.
    """
    graph = _Graph(function, wide)
    graph.ends, graph.most_tensors = ends, most_tensors
    if max_depth > 1:
        for phase in range(3):
            graph.fuse(phase, max_depth)
    return _Kernels(function, graph).build()


def is_inlined_constant(expr: Expr) -> bool:
    """Return whether a constant is written into the kernels that use it."""
    return isinstance(expr, Constant) and expr.array.size == 1


@dataclass(eq=False)
class _Node:
    """One expression of the graph, its readers, and its group (a union-find forest)."""

    expr: Expr
    index: int
    pattern: OpPattern
    readers: list[tuple[_Node, OpPattern]] = field(default_factory=list)
    escapes: bool = False
    dominator: _Node | None = None
    dominator_pattern: OpPattern = OpPattern.OPAQUE
    depth: int = 1
    parent: _Node | None = None
    group_pattern: OpPattern = OpPattern.OPAQUE
    members: list[_Node] = field(default_factory=list)  # of a root: the nodes of its group

    def __post_init__(self) -> None:
        self.members.append(self)

    def root(self) -> _Node:
        node = self
        while node.parent is not None:
            node = node.parent
        return node


class _Graph:
    ends: Ends | None = None
    most_tensors: int | None = None

    def __init__(self, function: Function, wide: int) -> None:
        self.nodes: list[_Node] = []
        self.of: dict[int, _Node] = {}
        for expr in post_order(function.body, into_functions=False):
            if isinstance(expr, (Op, Function)) or is_inlined_constant(expr):
                continue
            node = _Node(expr, len(self.nodes), _pattern(expr, wide))
            node.group_pattern = node.pattern
            self.nodes.append(node)
            self.of[id(expr)] = node
            for child in children(expr):
                source = self.of.get(id(child))
                if source is not None:
                    source.readers.append((node, _edge_pattern(expr, child, wide)))
        if id(function.body) in self.of:
            self.of[id(function.body)].escapes = True
        for node in reversed(self.nodes):
            self._find_dominator(node)

    # -- post-dominators -------------------------------------------------------------------------

    def _find_dominator(self, node: _Node) -> None:
        if node.escapes or not node.readers:
            return
        meet, pattern = node.readers[0]
        for reader, edge in node.readers[1:]:
            pattern = max(pattern, edge)
            common, on_the_way = _common_dominator(meet, reader)
            pattern = max(pattern, on_the_way)
            if common is None:
                return
            meet = common
        node.dominator, node.dominator_pattern = meet, OpPattern(pattern)
        node.depth = meet.depth + 1

    # -- fusion ----------------------------------------------------------------------------------

    def fuse(self, phase: int, max_depth: int) -> None:
        for node in self.nodes:
            sink = node.dominator
            if node.group_pattern == OpPattern.OPAQUE or sink is None:
                continue
            if node.root() is sink.root() or (self.ends is not None and self.ends(node.expr)):
                continue
            if len(node.root().members) + len(sink.root().members) > max_depth:
                continue
            if not self._may_fuse(node, sink, phase) or _repeats_work(node, sink):
                continue
            groups = {m.root().index: m.root() for m in (sink, *_between(node, sink))}
            members = [m for g in groups.values() for m in g.members]
            if (
                _joined(members) <= MOST
                and _unrolled_size(members) <= MAX_UNROLLED
                and _evaluated(members) <= max(FEW_EVALUATED, MAX_EVALUATED * len(members))
                and (self.most_tensors is None or self._tensors(members) <= self.most_tensors)
            ):
                self._commit(node, sink, sink)

    def _tensors(self, group: list[_Node]) -> int:
        """Count what the kernels of a group read and write; a reduction hands on what it gives."""
        inside = {id(node.expr) for node in group}
        read = {
            id(child): child
            for node in group
            for child in children(node.expr)
            if id(child) in self.of and id(child) not in inside
        }
        last = max(group, key=lambda node: node.index)
        reduces = any(node.pattern > OpPattern.INJECTIVE for node in group)
        counted = (*read.values(), last.expr)
        return sum(len(flatten(e.checked_type)) for e in counted) + (HANDED_ON if reduces else 0)

    def _may_fuse(self, node: _Node, sink: _Node, phase: int) -> bool:
        own = node.group_pattern
        if phase == 2:
            # Injective producers of a tuple that was fused into an injective operator.
            into_tuple = (
                own <= OpPattern.INJECTIVE
                and sink.group_pattern == OpPattern.TUPLE
                and sink.root().group_pattern <= OpPattern.INJECTIVE
            )
            return into_tuple and self._path(node, sink, lambda k, last: k <= OpPattern.INJECTIVE)
        if sink.group_pattern == OpPattern.TUPLE:
            return False
        if own == OpPattern.OUT_ELEMWISE_FUSABLE:
            return (
                phase == 0
                and node.dominator_pattern == OpPattern.ELEMWISE
                and self._path(node, sink, lambda k, last: k <= OpPattern.BROADCAST)
            )
        if own <= OpPattern.BROADCAST:
            if node.dominator_pattern > OpPattern.COMM_REDUCE:
                return False
            ends = (
                OpPattern.ELEMWISE, OpPattern.BROADCAST, OpPattern.INJECTIVE,
                OpPattern.COMM_REDUCE, OpPattern.OUT_ELEMWISE_FUSABLE,
            )  # fmt: skip
            return self._path(
                node, sink, lambda k, last: k in ends if last else k <= OpPattern.INJECTIVE
            )
        if own in (OpPattern.INJECTIVE, OpPattern.TUPLE):
            return phase == 1 and self._path(node, sink, lambda k, last: k <= OpPattern.INJECTIVE)
        return False  # a reduction takes no consumers

    def _path(self, source: _Node, sink: _Node, allowed: Callable[[OpPattern, bool], bool]) -> bool:
        """Return whether the group of every node on a path from `source` to `sink` is allowed.

        Paths of more nodes than a kernel may hold are not walked to their end: a chain whose every
        value is read at the end too has such a path from each node.
        """
        seen: set[int] = set()
        stack = [reader for reader, _ in source.readers]
        while stack:
            node = stack.pop()
            if node.index in seen:
                continue
            seen.add(node.index)
            if len(seen) > MAX_UNROLLED or not allowed(node.root().group_pattern, node is sink):
                return False
            if node is not sink:
                stack.extend(reader for reader, _ in node.readers)
        return True

    def _commit(self, source: _Node, sink: _Node, target: _Node) -> None:
        """Merge everything on the paths from `source` to `sink` into the group of `target`."""
        for node in _between(source, sink):
            _merge(node, target)


def _between(source: _Node, sink: _Node) -> list[_Node]:
    """Return the nodes on the paths from `source`, itself included, to `sink`, which is not."""
    seen: dict[int, _Node] = {}
    stack = [source]
    while stack:
        node = stack.pop()
        if node.index not in seen and node is not sink:
            seen[node.index] = node
            stack.extend(reader for reader, _ in node.readers)
    return list(seen.values())


def _joined(group: list[_Node]) -> int:
    """Count the tensors that the joins of a group put together: what SplitJoins divided stays so.

    One join may have as many as its operator takes; it is joins of joins that are counted.
    """
    counts = [len(node.expr.fields) for node in group if isinstance(node.expr, Tuple)]
    return sum(counts) if len(counts) > 1 else 0


def _unrolled_size(group: list[_Node]) -> int:
    """Count the operators in the expression of a group, each as often as it is written."""
    times = {node.index: 0 for node in group}
    for node in sorted(group, key=lambda n: n.index, reverse=True):
        inside = sum(times[reader.index] for reader, _ in node.readers if reader.index in times)
        times[node.index] = max(inside, 1)
    return sum(times.values())


def _evaluated(group: list[_Node]) -> int:
    """Count the operators of a group as often as they are evaluated for an element of its result.

    Readers of the same element share its value; each that moves elements reads another one.
    """
    times = {node.index: 1 for node in group}
    for node in sorted(group, key=lambda n: n.index, reverse=True):
        inside = [(times[r.index], edge) for r, edge in node.readers if r.index in times]
        same = [count for count, edge in inside if edge <= OpPattern.BROADCAST]
        moved = [count for count, edge in inside if edge > OpPattern.BROADCAST]
        times[node.index] = max([*same, 0]) + sum(moved) or 1
    return sum(times.values())


def _merge(node: _Node, target: _Node) -> None:
    child, parent = node.root(), target.root()
    if child is parent:
        return
    child.parent = parent
    parent.members += child.members
    if child.group_pattern == OpPattern.OUT_ELEMWISE_FUSABLE:
        parent.group_pattern = OpPattern(max(child.group_pattern, parent.group_pattern))


def _common_dominator(one: _Node, two: _Node) -> tuple[_Node | None, OpPattern]:
    """Return where two nodes' dominator chains meet, and the hardest edge passed on the way."""
    pattern = OpPattern.ELEMWISE
    left: _Node | None = one
    right: _Node | None = two
    while left is not right:
        if left is None or right is None:
            return None, OpPattern.OPAQUE
        depth = left.depth
        if depth >= right.depth:
            pattern, left = max(pattern, left.dominator_pattern), left.dominator
        if depth <= right.depth:
            pattern, right = max(pattern, right.dominator_pattern), right.dominator
    return left, OpPattern(pattern)


def _pattern(expr: Expr, wide: int) -> OpPattern:
    if parts_of_join(expr) > wide:
        return OpPattern.OPAQUE
    if isinstance(expr, Call) and isinstance(expr.op, Op):
        return op_registry.get(expr.op.name).pattern
    if isinstance(expr, Tuple):
        return OpPattern.TUPLE
    if isinstance(expr, TupleGetItem) and len(flatten(expr.tuple_value.checked_type)) > 0:
        return OpPattern.INJECTIVE
    return OpPattern.OPAQUE


def _edge_pattern(reader: Expr, source: Expr, wide: int) -> OpPattern:
    """How `reader` reads `source`: a broadcast between equal shapes is elementwise."""
    if isinstance(reader, Tuple):
        return OpPattern.INJECTIVE
    pattern = _pattern(reader, wide)
    if pattern == OpPattern.BROADCAST and isinstance(source.type, TensorType):
        out = reader.type
        if isinstance(out, TensorType) and out.shape == source.type.shape:
            return OpPattern.ELEMWISE
    return pattern


def _repeats_work(node: _Node, sink: _Node) -> bool:
    """Return whether fusing would compute something costly many times for one element.

    All that is fused with `node` would be computed where `sink` reads it.
    """
    whole = sink.expr.type
    if not isinstance(whole, TensorType) or sink.group_pattern == OpPattern.COMM_REDUCE:
        return False
    return any(
        _is_costly(member.expr)
        and isinstance(member.expr.type, TensorType)
        and usual(whole.size) > REPEAT_LIMIT * usual(member.expr.type.size)
        for member in node.root().members
    )


def _is_costly(expr: Expr) -> bool:
    """Return whether an operator takes many instructions for an element."""
    definition = op_registry.call_definition(expr) if isinstance(expr, Call) else None
    if definition is None:
        return False
    is_whole = definition.name == "divide" and not dtypes.is_float(expr.tensor_type.dtype)
    return is_whole or definition.flops_per_element >= COSTLY_FLOPS


class _Kernels:
    """Builds the function whose body calls one Function per group."""

    def __init__(self, function: Function, graph: _Graph) -> None:
        self.function = function
        self.graph = graph
        self.inner: dict[int, Expr] = {}  # the expression inside its kernel
        self.outer: dict[int, Expr] = {}  # the expression in the new body
        self.params: dict[int, dict[int, tuple[Var, Expr]]] = {}  # by group: source -> parameter

    def build(self) -> Function:
        for node in self.graph.nodes:
            root = node.root()
            if len(root.members) == 1 and not _is_operator(node.expr):
                self.outer[id(node.expr)] = rebuild(node.expr, self._outside)
                continue
            if self._is_field_from_outside(node):
                self.outer[id(node.expr)] = rebuild(node.expr, self._outside)
                self.inner[id(node.expr)] = self._parameter(root, node.expr)
                continue
            self.inner[id(node.expr)] = rebuild(node.expr, partial(self._inside, root))
            if node is root:
                self.outer[id(node.expr)] = self._kernel(root)
        body = self._outside(self.function.body)
        return Function(self.function.params, body, None, self.function.attrs)

    def _outside(self, expr: Expr) -> Expr:
        return self.outer.get(id(expr), expr)

    def _inside(self, root: _Node, child: Expr) -> Expr:
        """Return `child` as seen inside the kernel of `root`: computed there, or a parameter."""
        source = self.graph.of.get(id(child))
        if source is None:
            return child  # a scalar constant
        if source.root() is root:
            return self.inner[id(child)]
        return self._parameter(root, child)

    def _is_field_from_outside(self, node: _Node) -> bool:
        """Return whether a kernel would take a tuple for the sake of one of its tensors.

        It takes the tensor: kernels of different fields are one kernel then, and the tensors
        that it does not read need not be kept for it.
        """
        field = node.expr
        if not isinstance(field, TupleGetItem) or node is node.root():
            return False
        source = self.graph.of.get(id(field.tuple_value))
        return source is None or source.root() is not node.root()

    def _parameter(self, root: _Node, child: Expr) -> Expr:
        params = self.params.setdefault(root.index, {})
        if id(child) not in params:
            params[id(child)] = (Var(f"p{len(params)}", child.checked_type), child)
        return params[id(child)][0]

    def _kernel(self, root: _Node) -> Expr:
        params = list(self.params.get(root.index, {}).values())
        kernel = Function(
            tuple(var for var, _ in params), self.inner[id(root.expr)], None, (("Primitive", 1),)
        )
        return Call(kernel, tuple(self._outside(source) for _, source in params))


def _is_operator(expr: Expr) -> bool:
    return isinstance(expr, Call) and isinstance(expr.op, Op)
