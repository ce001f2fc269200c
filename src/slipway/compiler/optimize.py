"""From an imported module to kernels: the graph passes of the target's backend, in order.

`optimize` is what ``relay.build`` runs before it compiles the kernels.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from slipway.backends.backend import backend_of
from slipway.backends.cpu.graph import PASSES
from slipway.compiler.classic_passes import AlterOpLayout
from slipway.ir.function import IRModule
from slipway.relay import op_rules
from slipway.relay.construct import bind, distinct_names
from slipway.relay.expr import Function
from slipway.relay.op_rules import has_strategies, set_apart
from slipway.relay.open_dims import need_fixed
from slipway.transform.graph.classic import Legalize
from slipway.transform.graph.dynamic_to_static import dynamic_to_static, need_static
from slipway.transform.graph.inline import inline
from slipway.transform.graph.loop_invariants import optimize_loops
from slipway.transform.graph.pipeline import FOLD_CONSTANT, main_function, over_functions
from slipway.transform.manager import Pass, Setting, run_pass, run_passes

if TYPE_CHECKING:
    from slipway.target import Target

# Not left to the opt_level or to instruments: what comes after it knows no Let and no function.
INLINE = Pass(
    "Inline",
    0,
    lambda mod, _: IRModule((("main", distinct_names(inline(main_function(mod), mod))),)),
)
LAST_OF_GRAPH = "OwnOutputs"  # the first pass that looks at results as kernels give them


def optimize(
    mod: IRModule,
    params: Mapping[str, Any] | None = None,
    target: Target | None = None,
    opt_level: int | None = None,
    layout_lanes: int = 0,
) -> IRModule:
    """Return the module of one function "main" whose body calls kernels (Primitive functions).

    `params` are bound as constants.  `opt_level` None is the PassContext's.  `layout_lanes` above
    1 carries channels in blocks of that many through the graph (see `alter_layout`); it needs
    opt_level 2.  Everything in the result is typed; there is no Let and no call but of kernels.
    """
    for _, main in optimize_steps(mod, params, target, opt_level, layout_lanes):
        done = main
    return IRModule((("main", done),))


def optimize_steps(
    mod: IRModule,
    params: Mapping[str, Any] | None = None,
    target: Target | None = None,
    opt_level: int | None = None,
    layout_lanes: int = 0,
) -> Iterator[tuple[str, Function]]:
    """Yield (name of the pass, "main" after it) for each step of `optimize`, in order."""
    setting = Setting(target, level=-1 if opt_level is None else opt_level, lanes=layout_lanes)
    start = _inlined(mod.update("main", bind(main_function(mod), params or {})), setting)
    start = start.update("main", dynamic_to_static(main_function(start)))
    need_static(main_function(start))
    need_fixed(main_function(start))
    yield INLINE.name, main_function(start)
    passes = [*rule_passes(), *passes_for(target)]
    cut = next((i for i, step in enumerate(passes) if step.name == LAST_OF_GRAPH), len(passes))
    loops = Pass("OptimizeLoops", None, partial(_with_loops, mod, passes[:cut], passes[cut:]))
    for step, module in run_passes([*passes[:cut], loops, *passes[cut:]], start, setting):
        yield step.name, main_function(module)


def rule_passes() -> list[Pass]:
    """Return the passes that apply what a program has registered for operators."""
    kinds = (("FTVMLegalize", 1, Legalize), ("FTVMAlterOpLayout", 3, AlterOpLayout))
    found = []
    for kind, level, make in kinds:
        if op_rules.has_rules(kind):
            step = make()
            found.append(Pass(step.name, level, step.run))
    if has_strategies():
        found.append(Pass("SetApart", 0, lambda mod, _: over_functions(mod, set_apart)))
    return found


def _inlined(mod: IRModule, setting: Setting) -> IRModule:
    if not setting.verifies(mod):
        return INLINE.run(mod, setting)  # type: ignore[no-any-return]
    setting.verifier.run_before_pass(mod, INLINE)
    made: IRModule = INLINE.run(mod, setting)
    setting.verifier.run_after_pass(made, INLINE)
    return made


def _with_loops(
    outer: IRModule,
    graph: Sequence[Pass],
    kernels: Sequence[Pass],
    module: IRModule,
    setting: Setting,
) -> IRModule:
    """Return the module with the body of each scan taken through the passes, loops inside first."""

    def through(steps: Sequence[Pass], function: Function) -> Function:
        node = IRModule((("main", function),))
        for _, done in run_passes(steps, node, setting):
            node = done
        return main_function(node)

    def with_loops(function: Function) -> Function:
        return optimize_loops(
            function,
            lambda body: with_loops(through(graph, inline(body, outer))),
            lambda body: through(kernels, body),
        )

    main = main_function(module)
    looped = with_loops(main)
    if looped is main:
        return module
    made = IRModule((("main", looped),))
    return run_pass(FOLD_CONSTANT, made, setting) if setting.runs(FOLD_CONSTANT) else made


def passes_for(target: Target | None) -> Sequence[Pass]:
    """Return the graph passes of a target; without one, those of a processor without features."""
    return PASSES if target is None else backend_of(target).graph_passes(target)


def lower_ready(
    mod: IRModule, params: Mapping[str, Any] | None, target: Target | None = None
) -> IRModule:
    """Return `optimize` of the module under the current PassContext."""
    return optimize(mod, params, target)
