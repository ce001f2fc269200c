"""A board at a cable as what a search measures on: each candidate goes into its RAM and is timed.

The board runs a `host_driven` firmware, which is flashed once.  A model with some choices is
compiled and linked here for the board's free memory, sent, run on inputs that are made up, and
timed by the board's own clock; nothing is flashed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from slipway.errors import RPCConnectionError, RPCTimeoutError, TuningError
from slipway.ir.function import IRModule
from slipway.micro.board import Board
from slipway.micro.session import Session
from slipway.relay.expr import Function
from slipway.relay.types import TensorType
from slipway.runtime.graph.graph_executor import GraphModule
from slipway.tuning.boards.search import LEVELS, BoardCost, BoardModel, LayerChoice
from slipway.tuning.measure import random_array

RUNS = 5
CLOCK_NOISE = 0.002  # of the model's time: what a cycle counter's readings differ by, and more
LOADED_LEVELS = LEVELS[:1]  # what is loaded is compiled so


class CableBench(BoardModel):
    """Loads a model into a running board and times it there; `open_session` returns a session.

    What the image for the board's flash takes is linked once without a choice; the others' bytes
    are that, and what the code that is loaded has more.  `BoardCost.instructions` are nanoseconds.
    """

    def __init__(
        self,
        module: IRModule,
        params: Mapping[str, Any],
        board: Board,
        folder: Path,
        open_session: Callable[[], Session],
    ) -> None:
        super().__init__(module, params, board, folder)
        self._open_session = open_session
        self.inputs = self._made_up()
        self._plain: tuple[int, int, int] | None = None  # flash and RAM of the image, loaded bytes

    def __call__(self, choices: Iterable[LayerChoice], level: str) -> BoardCost:
        """Return what the model with some choices takes.  Raises SlipwayError if it cannot run."""
        chosen = list(choices)
        with self.choosing(chosen, self.new_folder()):
            library = self.compiled({})
        try:
            with self._open_session() as session:
                nanoseconds, outputs, loaded = self._measured(session, library)
        except (RPCConnectionError, RPCTimeoutError) as error:
            raise TuningError(
                f"{self.board.title} at its cable: {error}. Does it run resident firmware? "
                'micro.generate_firmware("baremetal", DIRECTORY, '
                f'{{"board": "{self.board.name}"}}) writes it; then build() and flash()'
            ) from error
        if self._plain is None:
            need = self.linked([], level, self.new_folder())
            self._plain = need.flash_bytes, need.ram_bytes, loaded
        flash, ram, plain = self._plain
        return BoardCost(nanoseconds, flash + loaded - plain, ram, outputs)

    def _measured(self, session: Session, library: Any) -> tuple[int, tuple[str, ...], int]:
        """Return the nanoseconds of a run, the outputs, and the bytes that were loaded."""
        empty = session.rpc.code_space()
        model = GraphModule(session.load(library)["default"](session.device))
        loaded = session.rpc.code_space().address - empty.address
        for index, value in enumerate(self.inputs):
            model.set_input(index, value)
        model.run()
        outputs = tuple(
            model.get_output(i).numpy().tobytes().hex() for i in range(model.get_num_outputs())
        )
        timer = model.module.time_evaluator("run", session.device, number=1, repeat=RUNS)
        seconds = min(timer().results)
        if not seconds > 0:
            raise TuningError(f"{self.board.title} says that a run took {seconds} seconds")
        return round(seconds * 1e9), outputs, loaded

    def _made_up(self) -> list[Any]:
        """Return values for the model's inputs, in order."""
        main = self.module["main"]
        given = main.params if isinstance(main, Function) else ()
        types = [p.checked_type for p in given if p.name_hint not in self.params]
        return [random_array(t, i) for i, t in enumerate(types) if isinstance(t, TensorType)]
