"""``torch.compile(model, backend="slipway")``: what Dynamo captures, compiled piece by piece.

Dynamo gives each piece of a model between two graph breaks as an FX graph with what it was called
with.  Weights become constants, sizes that Dynamo leaves open stay open up to an upper end, and
what Slipway has no way to compute stays with torch, with a warning that says why.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from slipway.compiler.relay_build import build
from slipway.deploy.torch_piece import Captured, Exported, captured, export
from slipway.errors import ArgumentValueError, SlipwayError, did_you_mean
from slipway.frontends.torch.importer import from_pytorch
from slipway.runtime.devices import cpu
from slipway.runtime.graph.graph_executor import GraphModule
from slipway.runtime.ndarray import array_of_tensor, tensor_of_array
from slipway.transform.context import PassContext

OPTIONS: Mapping[str, Any] = {"target": "llvm", "opt_level": 3, "fallback": True}
MOST_VARIANTS = 8  # libraries of one piece: of ranges, and of Python's numbers, which are constants


def compile_graph(
    graph: Any,
    example_inputs: Sequence[Any],
    *,
    options: Mapping[str, Any] | None = None,
    mode: str | None = None,
) -> Callable[..., Any]:
    """Return a function that computes what an FX graph of Dynamo does; a backend of torch.compile.

    `options` has `target` ("llvm"), `opt_level` (3), and `fallback` (True): whether torch runs the
    graphs that cannot be compiled, or the error is raised.  `mode` is of torch's own backend.
    """
    del mode
    given = {**OPTIONS, **(options or {})}
    for name in given:
        if name not in OPTIONS:
            raise ArgumentValueError(
                f"options of the backend slipway has {name!r}; it may have {', '.join(OPTIONS)}."
                f"{did_you_mean(name, OPTIONS)}"
            )
    del example_inputs  # the first call has them too, and Dynamo's own tracing is over by then
    return _Piece(graph, given)


class _Piece:
    """A captured graph, and its libraries for the sizes and numbers that it was called with."""

    def __init__(self, graph: Any, options: Mapping[str, Any]) -> None:
        self.graph = graph
        self.options = options
        self.captured: Captured | None = None
        self.variants: list[_Variant] = []
        self.lock = threading.Lock()
        self.opens = True
        self.torch_runs = False

    def __call__(self, *arguments: Any) -> Any:
        with self.lock:
            if not self.torch_runs:
                try:
                    return self.variant(arguments).run(arguments)
                except SlipwayError as error:
                    self.left_to_torch(error)
        return self.graph.forward(*arguments)

    def variant(self, arguments: Sequence[Any]) -> _Variant:
        """Return the library for these arguments, compiled if there is none yet."""
        if self.captured is None or self.captured.weights_changed(arguments):
            self.captured, self.variants = captured(self.graph, arguments), []
        for made in self.variants:
            if made.exported.takes(arguments):
                return made
        if len(self.variants) == MOST_VARIANTS:
            self.variants.pop(0)
        self.variants.append(self._made(self.captured, arguments))
        return self.variants[-1]

    def _made(self, graph: Captured, arguments: Sequence[Any]) -> _Variant:
        """Compile for open sizes, or for these sizes where open ones are not to be had."""
        if self.opens and graph.has_open_sizes:
            try:
                return _Variant(export(graph, arguments, True), self.options)
            except SlipwayError:
                self.opens = False
        return _Variant(export(graph, arguments, False), self.options)

    def left_to_torch(self, error: SlipwayError) -> None:
        """Let torch run the graph from here on, or raise the error as the options say."""
        if not self.options["fallback"]:
            raise error
        warnings.warn(
            f"torch runs a graph of {len(self.graph.graph.nodes)} nodes that Slipway cannot "
            f'compile (options={{"fallback": False}} makes this an error): {error}',
            UserWarning,
            stacklevel=2,
        )
        self.torch_runs = True


class _Variant:
    """One library, and which arguments it reads."""

    def __init__(self, exported: Exported, options: Mapping[str, Any]) -> None:
        self.exported = exported
        mod, params = from_pytorch(exported.program)
        main: Any = mod["main"]
        with PassContext(opt_level=options["opt_level"]):
            library = build(mod, options["target"], params=params)
        self.executor = GraphModule(library["default"](cpu(0)))
        read = {p.name_hint for p in main.params}
        self.feeds = [(name, i) for name, i in exported.inputs if name in read]

    def run(self, arguments: Sequence[Any]) -> tuple[Any, ...]:
        """Compute the graph's outputs; what it writes to in place is written."""
        for name, index in self.feeds:
            self.executor.set_input(name, array_of_tensor(arguments[index].contiguous()))
        self.executor.run()
        count = self.executor.get_num_outputs()
        found = [tensor_of_array(self.executor.get_output(i).numpy()) for i in range(count)]
        return self.exported.results(arguments, found)
