"""A model as a straight program: kernel calls whose arguments have fixed locations.

A tensor lies in the workspace at a planned offset, in memory of the caller (inputs and outputs), or
among the constants.  The plan counts a kernel's own temporaries too, as blocks that live for one
step, and lets an output take over an input's bytes where `overlap` has proven that safe.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from slipway.backends.in_place import Overlap
from slipway.compiler.aot.sizes import ProgramSize, program_sizes
from slipway.compiler.memory_plan import Block, Plan, Pool, Share, check_plan, plan
from slipway.compiler.model_graph import NOP, ModelGraph, TensorRef
from slipway.compiler.open_sizes import largest_bytes, sizes_of
from slipway.errors import LoweringError
from slipway.relay.meaning import UNKNOWN, Meaning
from slipway.relay.types import TensorType

Planner = Callable[[Sequence[Block], Sequence[Pool]], Plan]  # of the caller: it shares no bytes
OwnConstants = Mapping[tuple[int, int], str]  # of a node's input: what it reads for the constant


@dataclass(frozen=True)
class Location:
    """Where a tensor lies: `space` is "workspace", "input", "output" or "constant".

    `index` is the pool of the workspace, or the number of the input or output; `offset` (bytes)
    counts in the workspace only; `name` is the constant's.
    """

    space: str
    index: int = 0
    offset: int = 0
    name: str = ""


@dataclass(frozen=True)
class Argument:
    """One operand of a call."""

    location: Location
    type: TensorType


@dataclass(frozen=True)
class SizeRead:
    """A size that a value decides is read before call number `before`: one integer."""

    size: ProgramSize
    value: Argument
    before: int


@dataclass(frozen=True)
class KernelCall:
    """One step: a kernel with its operands, inputs first; `kernel` empty copies one tensor."""

    kernel: str
    arguments: tuple[Argument, ...]
    name: str
    layer: str = ""
    workspace: Location | None = None


@dataclass(frozen=True)
class Port:
    """An input or output of the model; `location` is in the workspace if that is where it lives.

    A state is an input whose memory a run writes; the constant of its name, if there is one, is
    what it holds at first, else zeros.
    """

    name: str
    c_name: str
    type: TensorType
    location: Location | None = None
    is_state: bool = False
    meaning: Meaning = UNKNOWN


@dataclass(frozen=True)
class AotProgram:
    """The whole program, its plan, and what it keeps as constants."""

    name: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    calls: tuple[KernelCall, ...]
    constants: tuple[str, ...]
    plan: Plan
    sizes: tuple[ProgramSize, ...] = ()
    reads: tuple[SizeRead, ...] = ()  # of the sizes that values decide

    def reads_before(self, call: int) -> list[SizeRead]:
        """Return the sizes that are known when call number `call` begins, and not before."""
        return [read for read in self.reads if read.before == call]

    @property
    def workspace_io(self) -> bool:
        """Whether inputs and outputs lie in the workspace instead of in memory of the caller."""
        return any(port.location is not None for port in (*self.inputs, *self.outputs))

    @property
    def states(self) -> tuple[Port, ...]:
        """The inputs that a run writes."""
        return tuple(port for port in self.inputs if port.is_state)

    @property
    def workspace_bytes(self) -> int:
        """Bytes of the workspace, all pools together."""
        return self.plan.size_bytes

    def overlapping_kernels(self) -> set[str]:
        """Return the kernels that have an operand on top of another in some call.

        Two in one input are a state and its update.
        """

        def meet(a: Argument, b: Argument) -> bool:
            if a.location.space != "workspace":
                written = a.location.space == "input" and self.inputs[a.location.index].is_state
                return written and a.location == b.location
            return (
                b.location.space == "workspace"
                and a.location.index == b.location.index
                and a.location.offset < b.location.offset + largest_bytes(b.type)
                and b.location.offset < a.location.offset + largest_bytes(a.type)
            )

        return {
            call.kernel
            for call in self.calls
            for i, a in enumerate(call.arguments)
            for b in call.arguments[:i]
            if meet(a, b)
        }

    @property
    def io_bytes(self) -> int:
        """Bytes of the inputs and outputs that lie outside the workspace, at most."""
        ports = (*self.inputs, *self.outputs)
        return sum(largest_bytes(p.type) for p in ports if p.location is None)


def _output_fields(graph: ModelGraph, taken: set[str]) -> list[str]:
    """Return what the outputs are called in C, and add it to `taken`."""
    many = len(graph.outputs) > 1
    named = graph.output_names if graph.names_fields else ()
    plain = [f"output{i}" if many else "output" for i in range(len(graph.outputs))]
    return [c_name(name, taken) for name in named or plain]


def c_name(name: str, taken: set[str]) -> str:
    """Return `name` as an identifier of C and C++ that is not among `taken`, and add it there.

    `taken` holds names in capitals, since macros are made of them.
    """
    base = re.sub(r"[^A-Za-z0-9_]", "_", name) or "tensor"
    base = f"_{base}" if base[0].isdigit() else base
    found, number = base, 0
    while found.upper() in taken or found in _RESERVED:
        number += 1
        found = f"{base}_{number}"
    taken.add(found.upper())
    return found


_RESERVED = frozenset(
    [
        *("auto", "break", "case", "char", "const", "continue", "default", "do", "double", "else"),
        *("enum", "extern", "float", "for", "goto", "if", "inline", "int", "long", "register"),
        *("restrict", "return", "short", "signed", "sizeof", "static", "struct", "switch"),
        *("typedef", "union", "unsigned", "void", "volatile", "while", "main"),
        # of C++ alone, whose compilers read the headers too
        *("alignas", "alignof", "and", "and_eq", "asm", "bitand", "bitor", "bool", "catch"),
        *("char8_t", "char16_t", "char32_t", "class", "co_await", "co_return", "co_yield"),
        *("compl", "concept", "const_cast", "consteval", "constexpr", "constinit", "decltype"),
        *("delete", "dynamic_cast", "explicit", "export", "false", "friend", "mutable"),
        *("namespace", "new", "noexcept", "not", "not_eq", "nullptr", "operator", "or", "or_eq"),
        *("private", "protected", "public", "reinterpret_cast", "requires", "static_assert"),
        *("static_cast", "template", "this", "thread_local", "throw", "true", "try", "typeid"),
        *("typename", "using", "virtual", "wchar_t", "xor", "xor_eq"),
    ]
)


def make_program(
    graph: ModelGraph,
    *,
    workspaces: Mapping[str, int] | None = None,
    overlaps: Mapping[str, Sequence[Overlap]] | None = None,
    pools: Sequence[Pool] = (Pool("workspace"),),
    algorithm: str | Planner = "best",
    alignment_bytes: int = 16,
    name: str = "default",
    workspace_io: bool = False,
    own_constants: OwnConstants = MappingProxyType({}),
) -> AotProgram:
    """Plan a model's memory and write down its calls.

    `workspace_io`: inputs and outputs are planned with the other tensors; an input's bytes may be
    used for something else after its last use, so that inputs must be written for each run.

    `workspaces`: bytes of temporaries per kernel; `overlaps`: what outputs may take over;
    `own_constants`: where an input is another arrangement of the constant than its name tells.
    Raises LoweringError when the tensors do not fit into `pools`.
    """
    if workspace_io and graph.states:
        raise LoweringError(
            f"the state {graph.states[0]!r} is kept between runs, and the workspace is not: build "
            "without tir.usmp.use_workspace_io"
        )
    planner = _Planner(graph, workspaces or {}, overlaps or {}, workspace_io, own_constants)
    return planner.build(pools, algorithm, alignment_bytes, name)


class _Planner:
    def __init__(
        self,
        graph: ModelGraph,
        workspaces: Mapping[str, int],
        overlaps: Mapping[str, Sequence[Overlap]],
        workspace_io: bool,
        own_constants: OwnConstants,
    ) -> None:
        self.graph = graph
        self.own_constants = own_constants
        self.workspace_io = workspace_io
        self.output_of: dict[int, TensorRef] = {}  # where an output is in the workspace
        self.workspaces = workspaces
        self.overlaps = overlaps
        self.root: dict[TensorRef, TensorRef] = {}
        self.last_use: dict[TensorRef, int] = {}
        self.fixed: dict[TensorRef, Location] = {}
        self.copies: list[tuple[TensorRef, int]] = []

    def _ports(
        self, inputs: Sequence[tuple[str, TensorRef]], location: Callable[[TensorRef], Location]
    ) -> tuple[tuple[Port, ...], tuple[Port, ...]]:
        """Return the program's inputs and outputs, with names that C can have."""
        graph = self.graph
        # In capitals they are parts of macros' names, beside outputs, pools and sizes of the whole.
        taken = {"WORKSPACE", "CONSTANTS"}
        fields = _output_fields(graph, taken)
        meanings = graph.meanings
        ports_in = tuple(
            Port(
                n,
                c_name(n, taken),
                graph.type_of(r),
                location(r) if self.workspace_io else None,
                n in graph.states,
                meanings.inputs.get(n, UNKNOWN),
            )
            for n, r in inputs
        )
        ports_out = tuple(
            Port(
                graph.output_names[i] if graph.output_names else fields[i],
                fields[i],
                graph.type_of(ref),
                self._output_location(i, location) if self.workspace_io else None,
                meaning=(meanings.outputs[i] if meanings.outputs else None) or UNKNOWN,
            )
            for i, ref in enumerate(graph.outputs)
        )
        return ports_in, ports_out

    def build(
        self, pools: Sequence[Pool], algorithm: str | Planner, alignment: int, name: str
    ) -> AotProgram:
        graph = self.graph
        inputs, constants = self._follow()
        constants += sorted(set(self.own_constants.values()))
        self._bind_outputs()
        blocks, index_of, scratch = self._blocks(alignment)
        if isinstance(algorithm, str):
            result = plan(blocks, algorithm, shares=self._shares(index_of), pools=pools)
            check_plan(result)
        else:
            result = algorithm(blocks, pools)

        def location(ref: TensorRef) -> Location:
            base = self.root[ref]
            if base in self.fixed:
                return self.fixed[base]
            block = index_of[base]
            return Location("workspace", result.pool_index(block), result.offsets[block])

        calls: list[KernelCall] = []
        calls_until: list[int] = []  # of each node, the calls that have run when it has
        for number, node in enumerate(graph.nodes):
            calls_until.append(len(calls))
            if node.function in ("", NOP):
                continue
            calls_until[-1] += 1
            refs = [*node.inputs, *(TensorRef(number, i) for i in range(len(node.types)))]
            operands = tuple(
                Argument(self._own_constant(number, i) or location(r), graph.type_of(r))
                for i, r in enumerate(refs)
            )
            own = None
            if number in scratch:
                block = scratch[number]
                own = Location("workspace", result.pool_index(block), result.offsets[block])
            calls.append(KernelCall(node.function, operands, node.name, node.layer, own))
        for ref, output in self.copies:
            type_ = graph.type_of(ref)
            to = Argument(self._output_location(output, location), type_)
            calls.append(KernelCall("", (Argument(location(ref), type_), to), f"copy_{output}"))
        ports_in, ports_out = self._ports(inputs, location)
        constants += graph.initial
        taken: set[str] = set()
        sizes = program_sizes(
            sizes_of(graph),
            (port.type for port in ports_in),
            lambda size: c_name(size, taken),
            graph.tellers,
        )
        reads = tuple(
            SizeRead(
                size,
                Argument(location(ref), graph.type_of(ref)),
                calls_until[self.root[ref].node],
            )
            for size in sizes
            if size.is_found
            for ref in (graph.tellers[size.name],)
        )
        return AotProgram(
            name, ports_in, ports_out, tuple(calls), tuple(constants), result, sizes, reads
        )

    def _own_constant(self, node: int, operand: int) -> Location | None:
        name = self.own_constants.get((node, operand))
        return None if name is None else Location("constant", name=name)

    def _output_location(self, output: int, location: Callable[[TensorRef], Location]) -> Location:
        """Return where an output goes: to the caller, or into the workspace."""
        return location(self.output_of[output]) if self.workspace_io else Location("output", output)

    def _follow(self) -> tuple[list[tuple[str, TensorRef]], list[str]]:
        """Find who owns each tensor's bytes, and the last step that reads them."""
        inputs: list[tuple[str, TensorRef]] = []
        constants: list[str] = []
        for number, node in enumerate(self.graph.nodes):
            for ref in node.inputs:
                self.last_use[self.root[ref]] = number
            for position in range(len(node.types)):
                ref = TensorRef(number, position)
                self.root[ref] = self.graph.memory_of(ref, self.root)
            if node.function:
                continue
            ref = TensorRef(number)
            if node.name in self.graph.params:
                self.fixed[ref] = Location("constant", name=node.name)
                constants.append(node.name)
            else:
                if not self.workspace_io:
                    self.fixed[ref] = Location("input", len(inputs))
                inputs.append((node.name, ref))
        return inputs, constants

    def _bind_outputs(self) -> None:
        """Let kernels write outputs where the caller wants them; copy what nobody computes."""
        taken: set[TensorRef] = set()
        for position, ref in enumerate(self.graph.outputs):
            base = self.root[ref]
            if self.workspace_io:
                if base in self.fixed or base in taken or not self.graph.nodes[base.node].function:
                    self.copies.append((ref, position))
                    self.last_use[base] = len(self.graph.nodes)
                    base = TensorRef(len(self.graph.nodes) + position)
                    self.root[base] = base
                else:
                    self.last_use[base] = len(self.graph.nodes)
                taken.add(base)
                self.output_of[position] = base
            elif base in self.fixed:
                self.copies.append((ref, position))
            else:
                self.fixed[base] = Location("output", position)

    def _blocks(self, alignment: int) -> tuple[list[Block], dict[TensorRef, int], dict[int, int]]:
        blocks: list[Block] = []
        index_of: dict[TensorRef, int] = {}
        scratch: dict[int, int] = {}
        for number, node in enumerate(self.graph.nodes):
            ref = TensorRef(number)
            if not node.function and ref not in self.fixed:  # an input that the caller writes
                index_of[ref] = len(blocks)
                last = self.last_use.get(ref, 0)
                blocks.append(Block(node.name, largest_bytes(node.types[0]), 0, last, alignment))
            if node.function in ("", NOP):
                continue
            for position, type_ in enumerate(node.types):
                ref = TensorRef(number, position)
                if self.root[ref] in self.fixed:
                    continue
                index_of[ref] = len(blocks)
                last = self.last_use.get(ref, number)
                label = node.name if len(node.types) == 1 else f"{node.name}:{position}"
                blocks.append(Block(label, max(1, largest_bytes(type_)), number, last, alignment))
            size = self.workspaces.get(node.function, 0)
            if size:
                scratch[number] = len(blocks)
                label = f"temporaries of {node.name}"
                blocks.append(Block(label, size, number, number, max(16, alignment)))
        end = len(self.graph.nodes)
        for position, ref in self.output_of.items():
            if ref not in index_of:  # a copy, made after the last step
                size = largest_bytes(self.graph.type_of(self.graph.outputs[position]))
                index_of[ref] = len(blocks)
                blocks.append(Block(f"output {position}", max(1, size), end, end, alignment))
        return blocks, index_of, scratch

    def _shares(self, index_of: Mapping[TensorRef, int]) -> list[Share]:
        """Translate what kernels allow into pairs of blocks, where the input dies there."""
        shares = []
        for number, node in enumerate(self.graph.nodes):
            for overlap in self.overlaps.get(node.function, ()):
                into = self.root[node.inputs[overlap.operand]]
                out = TensorRef(number, overlap.output)
                uses = sum(self.root[r] == into for r in node.inputs)
                if into not in index_of or out not in index_of or uses != 1:
                    continue
                if self.last_use[into] == number:
                    shares.append(
                        Share(index_of[out], index_of[into], overlap.lead_bytes, overlap.exact)
                    )
        return shares
