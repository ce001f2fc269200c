"""Where an LSTM cell lies among the inputs of its operator, and which parts of it are given."""

from __future__ import annotations

from dataclasses import dataclass

from slipway.frontends.tflite.converters import NodeView

INPUT, FORGET, CELL, OUTPUT = range(4)
ABSENT = 1 << 20  # no operator has an input there


@dataclass(frozen=True)
class LstmParts:
    """The first position of each group of inputs; most groups have one for each gate."""

    weights: int
    recurrent: int
    peephole: int  # of the input, forget and output gate
    bias: int
    projection: int
    hidden: int
    state: int
    norm: int = ABSENT
    aux: int = ABSENT

    def units(self, node: NodeView) -> int:
        """Return the cells of a batch entry."""
        return node.tensor(self.weights + OUTPUT).shape[0]

    def outputs(self, node: NodeView) -> int:
        """Return what a batch entry gives in one step."""
        if node.has(self.projection):
            return node.tensor(self.projection).shape[0]
        return self.units(node)

    def is_coupled(self, node: NodeView) -> bool:
        """Return whether the input gate is what the forget gate leaves."""
        return not node.has(self.weights + INPUT)

    def gates(self, node: NodeView) -> list[int]:
        """Return the gates that have weights."""
        return [FORGET, CELL, OUTPUT] if self.is_coupled(node) else [INPUT, FORGET, CELL, OUTPUT]

    def peephole_of(self, gate: int) -> int:
        """Return the position of a gate's peephole weights."""
        return {INPUT: self.peephole, FORGET: self.peephole + 1, OUTPUT: self.peephole + 2}.get(
            gate, ABSENT
        )

    def check(self, node: NodeView, depth: int) -> None:
        """Refuse a cell whose parts do not fit together."""
        units, given = self.units(node), self.outputs(node)
        wanted: list[tuple[int, tuple[int, ...]]] = []
        for gate in self.gates(node):
            diagonal = len(node.tensor(self.recurrent + gate).shape) == 1
            if diagonal and given != units:
                raise node.unsupported("its recurrent weights are diagonal beside a projection")
            wanted += [
                (self.weights + gate, (units, depth)),
                (self.recurrent + gate, (units,) if diagonal else (units, given)),
                (self.bias + gate, (units,)),
                (self.norm + gate, (units,)),
                (self.peephole_of(gate), (units,)),
            ]
        wanted += [(self.projection, (given, units)), (self.projection + 1, (given,))]
        for position, shape in wanted:
            needed = self.weights <= position < self.peephole
            if (needed or node.has(position)) and node.tensor(position).shape != shape:
                raise node.unsupported(
                    f"its input {position} has the shape {node.tensor(position).shape}; "
                    f"{shape} fits its other parts"
                )


WHOLE = LstmParts(weights=1, recurrent=5, peephole=9, bias=12, projection=16, hidden=18, state=19,
              norm=20)  # fmt: skip
FORWARD = LstmParts(weights=1, recurrent=5, peephole=9, bias=12, projection=16, hidden=35, state=36,
                aux=40)  # fmt: skip
BACKWARD = LstmParts(weights=18, recurrent=22, peephole=26, bias=29, projection=33, hidden=37,
                 state=38, aux=44)  # fmt: skip
