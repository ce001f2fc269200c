"""A graph that Dynamo captured as a program of ``torch.export``: weights inside, sizes open."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from slipway.errors import ModelError, SlipwayError
from slipway.frontends.torch.program import apart, quiet

Output = Callable[
    [Sequence[Any], Sequence[Any]], Any
]  # of the arguments, and the program's results
LEAST_END = 16  # of an open size of which nothing is known: twice the first one, and at least this


@dataclass(eq=False)
class Captured:
    """A graph, and what its placeholders stand for."""

    graph: Any
    weights: dict[int, Any]  # by position: tensors of the model, which are constants
    versions: dict[int, Any]
    numbers: list[int]  # numbers of Python, which are constants of one variant
    tensors: list[int]
    sizes: dict[int, tuple[int, int]]  # numbers that are a size: of which argument, and which axis
    symbols: dict[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def has_open_sizes(self) -> bool:
        """Return whether Dynamo leaves a size of an input open."""
        return bool(self.symbols)

    def weights_changed(self, arguments: Sequence[Any]) -> bool:
        """Return whether a tensor of the model is another one, or was written to."""
        return any(
            arguments[i] is not held or _version(arguments[i]) != self.versions[i]
            for i, held in self.weights.items()
        )


def _version(tensor: Any) -> Any:
    return None if tensor.is_inference() else tensor._version


def _placeholders(graph: Any) -> list[Any]:
    return [node for node in graph.graph.nodes if node.op == "placeholder"]


def _expression(value: Any) -> Any:
    """Return torch's formula of a size, None for a number."""
    return getattr(getattr(value, "node", None), "expr", None)


def captured(graph: Any, arguments: Sequence[Any]) -> Captured:
    """Return what a graph's arguments are.  Raises ModelError for what no library can take."""
    import torch

    found = Captured(graph, {}, {}, [], [], {})
    nodes = _placeholders(graph)
    for i, (node, value) in enumerate(zip(nodes, arguments, strict=True)):
        if not isinstance(value, torch.Tensor):
            continue
        if value.device.type != "cpu":
            raise ModelError(
                f"{node.name} lies on {value.device}: Slipway takes tensors of the CPU"
            )
        if torch.is_grad_enabled() and value.requires_grad:
            raise ModelError(
                f"{node.name} needs a gradient, and compiled graphs have none: call the model "
                "under torch.no_grad()"
            )
        static = "_dynamo_static_input_type" in (node.meta.get("tensor_dict") or {})
        if static or isinstance(value, torch.nn.Parameter):
            found.weights[i], found.versions[i] = value, _version(value)
        elif getattr(node.meta.get("grapharg"), "pass_arg_as_tensor", False):
            found.numbers.append(i)
        else:
            found.tensors.append(i)
            for axis, size in enumerate(node.meta["example_value"].shape):
                formula = _expression(size)
                if formula is not None and formula.is_Symbol:
                    found.symbols.setdefault(str(formula), (i, axis))
    for i, node in enumerate(nodes):
        if isinstance(arguments[i], torch.Tensor):
            continue
        symbol = found.symbols.get(str(_expression(node.meta["example_value"])))
        if symbol is None:
            found.numbers.append(i)
        else:
            found.sizes[i] = symbol
    return found


@dataclass(eq=False)
class Exported:
    """A program for some numbers and ranges of sizes, and how its results become the graph's."""

    program: Any
    inputs: list[tuple[str, int]]  # the name of each input, and which argument it is
    numbers: list[tuple[int, Any]]
    bounds: list[tuple[int, list[tuple[int, int]]]]  # of each tensor's sizes
    outputs: list[Output]
    written: list[tuple[int, int]]  # which argument takes which result

    def takes(self, arguments: Sequence[Any]) -> bool:
        """Return whether the program is for these numbers and sizes."""
        return all(_number(arguments[i]) == value for i, value in self.numbers) and all(
            low <= size <= high
            for i, bounds in self.bounds
            for size, (low, high) in zip(arguments[i].shape, bounds, strict=True)
        )

    def results(self, arguments: Sequence[Any], found: Sequence[Any]) -> tuple[Any, ...]:
        """Return what the graph returns, from the program's results."""
        given = tuple(output(arguments, found) for output in self.outputs)
        for argument, result in self.written:
            arguments[argument].copy_(found[result])
        return given


def _number(value: Any) -> Any:
    """Return a number of Python, which Dynamo gives as it is, as a symbol or in a tensor."""
    if hasattr(value, "item"):
        return value.item()
    node = getattr(value, "node", None)
    return value if node is None else node.hint


def export(piece: Captured, arguments: Sequence[Any], opens: bool) -> Exported:
    """Return the program of a graph for these arguments' numbers and sizes.

    With `opens` sizes that Dynamo leaves open have a range around these.
    What the graph writes to in place is among the program's results.  Raises ModelError for what
    torch.export or its results do not allow.
    """
    moving: list[int] = []
    while True:
        module, kept, outputs = _module(piece, arguments, moving)
        program = _program(piece, module, kept, arguments, opens)
        signature = program.graph_signature
        names = [n.name for n in program.graph.nodes if n.op == "placeholder"]
        kinds = [spec.kind.name for spec in signature.input_specs]
        own = [n for n, kind in zip(names, kinds, strict=True) if kind == "USER_INPUT"]
        inputs = list(zip(own, kept, strict=True))
        written = {dict(inputs)[name] for name in signature.user_inputs_to_mutate.values()}
        written |= {int(name.rpartition("_")[2]) for name in signature.buffers_to_mutate.values()}
        if written <= set(moving):
            break
        moving = sorted({*moving, *written})
    first = len(program.graph_signature.user_outputs) - len(moving)
    return Exported(
        program,
        inputs,
        [(i, _number(arguments[i])) for i in piece.numbers],
        _bounds(program, inputs),
        outputs,
        [(argument, first + k) for k, argument in enumerate(moving)],
    )


def _module(
    piece: Captured, arguments: Sequence[Any], moving: list[int]
) -> tuple[Any, list[int], list[Any]]:
    """Return a module whose inputs are the graph's tensors alone, which these are, and its outputs.

    Tensors that are written to, `moving`, are inputs, and their new values further results.
    """
    import torch

    copy = torch.fx.GraphModule(piece.graph, _copied(piece.graph.graph))
    graph, nodes = copy.graph, _placeholders(copy)
    kept = sorted({*piece.tensors, *moving})
    with graph.inserting_after(nodes[-1]):
        for i in reversed(range(len(nodes))):
            if i in piece.sizes:
                tensor, axis = piece.sizes[i]
                size = graph.call_function(torch.ops.aten.sym_size.int, (nodes[tensor], axis))
                nodes[i].replace_all_uses_with(size)
            elif i in piece.numbers:
                _put_number(nodes[i], _number(arguments[i]))
            elif i not in kept:
                copy.register_buffer(f"weight_{i}", arguments[i].detach())
                nodes[i].replace_all_uses_with(graph.get_attr(f"weight_{i}"))
    (output,) = graph.find_nodes(op="output")
    tensors, outputs = _outputs(piece, output, nodes, moving)
    with graph.inserting_before(output):  # copies: torch takes the tensor itself for its old value
        new = [graph.call_function(torch.ops.aten.clone.default, (nodes[i],)) for i in moving]
    output.args = ((*tensors, *new),)
    for i, node in enumerate(nodes):
        if i not in kept:
            graph.erase_node(node)
    graph.lint()
    copy.recompile()
    return copy.eval(), kept, outputs


def _copied(graph: Any) -> Any:
    import torch

    made = torch.fx.Graph()
    made.output(made.graph_copy(graph, {}))
    return made


def _put_number(node: Any, value: Any) -> None:
    """Write a number in place of a placeholder, and of what reads it from a tensor."""
    import torch

    for user in list(node.users):
        if user.op == "call_method" and user.target == "item":
            _put_number(user, value)
            user.graph.erase_node(user)
        else:
            user.args, user.kwargs = torch.fx.node.map_arg(
                (user.args, user.kwargs), lambda n: value if n is node else n
            )


def _outputs(
    piece: Captured, output: Any, nodes: list[Any], moving: list[int]
) -> tuple[list[Any], list[Any]]:
    """Return the nodes that the program computes, and how each result of the graph is made."""
    import torch

    tensors: list[Any] = []
    made: list[Output] = []
    for value in output.args[0]:
        if not isinstance(value, torch.fx.Node):
            made.append(_constant(value))
            continue
        if value in nodes:
            made.append(_argument(nodes.index(value)))
            continue
        meaning = value.meta.get("example_value")
        if isinstance(meaning, torch.Tensor):
            made.append(_result(len(tensors)))
            tensors.append(value)
        else:
            made.append(_formula(piece, value.name, meaning))
    if not tensors and not moving:
        raise ModelError("the graph computes no tensor")
    return tensors, made


def _constant(value: Any) -> Output:
    return lambda arguments, found: value


def _argument(position: int) -> Output:
    return lambda arguments, found: arguments[position]


def _result(position: int) -> Output:
    return lambda arguments, found: found[position]


def _formula(piece: Captured, name: str, meaning: Any) -> Output:
    """Return how a result that is a number follows from the sizes of arguments."""
    formula = _expression(meaning)
    nodes = _placeholders(piece.graph)
    given = {str(_expression(nodes[i].meta["example_value"])): i for i in piece.numbers}
    if formula is None or not {str(s) for s in formula.free_symbols} <= {*piece.symbols, *given}:
        raise ModelError(f"the result {name} is a number that no size of an input gives")

    def value(symbol: str, arguments: Sequence[Any]) -> int:
        if symbol in given:
            return int(_number(arguments[given[symbol]]))
        argument, axis = piece.symbols[symbol]
        return int(arguments[argument].shape[axis])

    def computed(arguments: Sequence[Any], found: Sequence[Any]) -> int:
        del found
        return int(formula.subs({s: value(str(s), arguments) for s in formula.free_symbols}))

    return computed


def _program(
    piece: Captured, module: Any, kept: list[int], arguments: Sequence[Any], opens: bool
) -> Any:
    """Export a module, with the sizes of its inputs open that Dynamo leaves open."""
    import torch

    nodes = _placeholders(piece.graph)
    sizes = tuple(_open_sizes(nodes[i], arguments[i]) for i in kept) if opens else None
    examples = tuple(arguments[i].detach().clone() for i in kept)
    try:
        with torch.no_grad(), quiet(), apart(torch):
            program = torch.export.export(module, examples, dynamic_shapes=sizes)
            # What is written in place is told by a program without such operators.
            return program.run_decompositions({}) if _writes(program) else program
    except SlipwayError:
        raise
    except Exception as error:
        why = str(error).strip().splitlines()[0] if str(error).strip() else ""
        raise ModelError(f"torch.export refuses it: {type(error).__name__}: {why}") from error


def _writes(program: Any) -> bool:
    schemas = (getattr(node.target, "_schema", None) for node in program.graph.nodes)
    return any(schema is not None and schema.is_mutable for schema in schemas)


def _open_sizes(node: Any, value: Any) -> dict[int, Any]:
    """Return how each axis is exported: with a range where Dynamo leaves it open."""
    import torch

    made: dict[int, Any] = {}
    for axis, size in enumerate(node.meta["example_value"].shape):
        formula = _expression(size)
        if formula is None or formula.is_Integer:
            continue
        if not formula.is_Symbol:
            made[axis] = torch.export.Dim.AUTO
            continue
        low, high = _known_range(size, formula)
        extent = int(value.shape[axis])
        if high is None:
            high = max(LEAST_END, 1 << (2 * extent - 1).bit_length())
        made[axis] = torch.export.Dim.AUTO(min=min(low, extent), max=max(high, extent))
    return made


def _known_range(size: Any, symbol: Any) -> tuple[int, int | None]:
    """Return the ends of a size that Dynamo knows: no upper one where nobody gave it."""
    bounds = size.node.shape_env.var_to_range.get(symbol)
    if bounds is None:
        return 2, None
    high = int(bounds.upper) if bounds.upper.is_Integer and bounds.upper < 1 << 31 else None
    return max(2, int(bounds.lower)), high


def _bounds(program: Any, inputs: list[tuple[str, int]]) -> list[tuple[int, list[tuple[int, int]]]]:
    """Return the range of each size of the inputs that a program takes."""
    values = {n.name: n.meta["val"] for n in program.graph.nodes if n.op == "placeholder"}
    found = []
    for name, argument in inputs:
        ends = []
        for size in values[name].shape:
            formula = _expression(size)
            bounds = program.range_constraints.get(formula)
            if formula is None or formula.is_Integer:
                ends.append((int(size), int(size)))
            elif bounds is None:
                ends.append((0, 1 << 62))  # a formula of sizes, which are checked where they are
            else:
                ends.append((int(bounds.lower), int(bounds.upper)))
        found.append((argument, ends))
    return found
