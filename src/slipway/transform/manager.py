"""The pass manager: what a pass is, and how passes run one after another.

A pass takes a node and returns one: a PrimFunc of loops, or an IRModule of graphs.  Whether it runs
is decided in one place, `Setting.runs`; around every pass that does, the instruments of the
PassContext are called, and one of them may veto it, unless the context requires it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from slipway.errors import ArgumentTypeError, InternalError, LoweringError
from slipway.ir.depth import room_for
from slipway.ir.function import IRModule, PrimFunc
from slipway.ir.node import Node
from slipway.ir.visit import nesting
from slipway.transform.context import PassContext
from slipway.transform.names import NAMES, OPT_LEVELS, canonical, check_names
from slipway.transform.verify import LAWS, VerifyEachPass, asked_everywhere


@dataclass(frozen=True)
class Setting:
    """What a pass may ask about the compilation that it is a step of.

    `lanes` is the number of channels in a block where graphs carry channels in blocks, else 0.
    `level` is the opt_level: that of the context unless the caller gives another.
    """

    target: Any = None
    context: PassContext = field(default_factory=PassContext.current)
    level: int = -1
    lanes: int = 0
    verifier: VerifyEachPass = field(default_factory=VerifyEachPass, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.level < 0:
            object.__setattr__(self, "level", self.context.opt_level)

    @property
    def is_strict(self) -> bool:
        """Whether the target asks for the model's own arithmetic."""
        return self.target is not None and bool(self.target.is_strict)

    def runs(self, step: Pass) -> bool:
        """Return whether `step` is a part of this compilation."""
        if not self.context.is_enabled(step.name):
            return False
        if self.level < step.opt_level and not self.context.requires(step.name):
            return False
        return (step.exact or not self.is_strict) and step.applies(self)

    def verifies(self, node: Node) -> bool:
        """Return whether programs of this kind are verified between passes."""
        known = LAWS.get(type(node))
        return known is not None and bool(self.context.option(known[0], asked_everywhere()))


Run = Callable[[Any, Setting], Any]


def always(setting: Setting) -> bool:
    """Return True: a pass for every target."""
    return True


def never_missed(node: Node) -> str:
    """Return "": every node can go without the pass."""
    return ""


class Pass:
    """A named step from node to node.

    `opt_level` is the lowest level at which it runs (None: what `transform.names` says of a pass
    of this name), `applies` the further condition.  Results of a
    pass that is not `exact` differ by rounding from the model's own; the target option -strict
    leaves it out.  `by_user` says whose mistake it is when the result is not legal; without it, who
    wrote `run` does.  `missed` says why a node cannot go without the pass ("" where it can):
    leaving it out is an error then.  Passes that are `required` run before it, whether or not they
    have run already.  Calling a pass runs it alone, on a module or a function, under
    the current PassContext.
    """

    def __init__(
        self,
        name: str,
        opt_level: int | None,
        run: Run,
        *,
        applies: Callable[[Setting], bool] = always,
        exact: bool = True,
        required: Sequence[str] = (),
        by_user: bool | None = None,
        missed: Callable[[Any], str] = never_missed,
    ) -> None:
        self.name, self.run = name, run
        self.opt_level = OPT_LEVELS[name] if opt_level is None else opt_level
        self.missed = missed
        self.by_user = not is_ours(run) if by_user is None else by_user
        self.applies, self.exact = applies, exact
        self.required = _requirable(required, name)
        self.instance: Any = None  # of the class that a user's pass is made of
        NAMES.add(name)

    @property
    def info(self) -> Pass:
        """The pass itself: it has `name`, `opt_level` and `required` (the classic spelling)."""
        return self

    def __call__(self, node: Node) -> Any:
        """Run on a module (an expression is made one) or on loops, and return the new node."""
        return run_pass(self, as_node(node), Setting())

    def __getattr__(self, name: str) -> Any:
        # Only for names that a pass has not: those of the user's object that it was made of.
        instance = self.__dict__.get("instance")
        if instance is None or name.startswith("__"):
            raise AttributeError(f"{type(self).__name__} {self.__dict__.get('name')!r} has no "
                                 f"attribute {name!r}")  # fmt: skip
        return getattr(instance, name)

    def __repr__(self) -> str:
        return f"Pass({self.name!r}, opt_level={self.opt_level})"


# What makes a pass that another one may require, by its name in `transform.names`.
_MAKERS: dict[str, Callable[[], Pass]] = {}


def may_be_required(*makers: Callable[[], Pass], prefix: str = "") -> None:
    """Let user's passes require those that the functions `makers` make, by the functions' names."""
    for make in makers:
        _MAKERS[canonical(prefix + make.__name__)] = make


def _requirable(names: Sequence[str], title: str) -> list[str]:
    """Return `names` as a list.  Raises LoweringError for one that no pass can be made of."""
    if not names:
        return []
    check_names(names, f"required of the pass {title!r}")
    for name in names:
        if canonical(name) not in _MAKERS:
            raise LoweringError(
                f"the pass {title!r} requires {name!r}, which a compilation runs with arguments of "
                f"its own, or a script gives it some: run it before {title!r} in a Sequential.  "
                f"These can be required: {', '.join(sorted(_MAKERS))}"
            )
    return list(names)


class ModulePass(Pass):
    """A pass of the user's that takes a module."""


class FunctionPass(Pass):
    """A pass of the user's that takes each relay function of a module."""


class PrimFuncPass(Pass):
    """A pass of the user's that takes each loop function of a module."""


class PassInfo:
    """What a pass is called, and from which opt_level it runs (the classic record)."""

    def __init__(self, opt_level: int, name: str, required: Sequence[str] | None = None) -> None:
        self.opt_level, self.name, self.required = opt_level, name, list(required or ())

    def __repr__(self) -> str:
        return f"PassInfo(opt_level={self.opt_level}, name={self.name!r})"


def pass_of(given: Any, name: str | None, method: str, over: Callable[[Any, str], Pass]) -> Any:
    """Return ``over(function, name)`` of a function; of a class, a class whose objects are passes.

    An object of such a class is made with the class's own arguments, and runs its `method`.
    """
    title = name or given.__name__
    if not isinstance(given, type):
        return over(given, title)
    if not callable(getattr(given, method, None)):
        raise LoweringError(f"the class {title} has no method {method}, which a pass runs")

    def create(*args: Any, **kwargs: Any) -> Pass:
        instance = given(*args, **kwargs)
        made = over(getattr(instance, method), title)
        made.instance = instance
        return made

    functools.update_wrapper(create, given, updated=())
    return create


def print_ir(header: str = "", show_meta_data: bool = False) -> Pass:
    """Return a pass that prints what reaches it, under `header`, and changes nothing."""

    def run(node: Any, setting: Setting) -> Any:
        print(f"PrintIR({header}):\n{node}")
        return node

    return Pass("PrintIR", 0, run)


class Sequential(Pass):
    """Passes one after another, those that the current PassContext allows."""

    def __init__(
        self,
        passes: Iterable[Pass] = (),
        opt_level: int = 0,
        name: str = "sequential",
        required: Sequence[str] = (),
    ) -> None:
        if isinstance(passes, Pass):
            raise LoweringError(
                f"Sequential takes a list of passes, got {passes!r}: [{passes.name}]"
            )
        if not isinstance(passes, Iterable):
            raise ArgumentTypeError(f"Sequential takes a list of passes, not {passes!r}")
        self.passes = list(passes)
        for number, step in enumerate(self.passes):
            if not isinstance(step, Pass):
                raise LoweringError(
                    f"Sequential: item {number} is {step!r}, which is no pass; make one of a "
                    "function with transform.module_pass or relay.transform.function_pass"
                )
        super().__init__(name, opt_level, self._all, required=required)

    def _all(self, node: Any, setting: Setting) -> Any:
        for _, result in run_passes(self.passes, node, setting):
            node = result
        return node


def is_ours(function: Callable[..., Any]) -> bool:
    """Return whether a function is one of Slipway's, not its user's."""
    while isinstance(function, functools.partial):
        function = function.func
    return str(getattr(function, "__module__", "")).partition(".")[0] == "slipway"


def as_node(node: Node) -> Any:
    """Return what passes run on: a module or loops as they are, another expression as a module."""
    if isinstance(node, (IRModule, PrimFunc)):
        return node
    if not isinstance(node, Node) and not hasattr(node, "astuple"):
        raise ArgumentTypeError(f"a pass runs on a module, not on {node!r}: {type(node).__name__}")
    return IRModule.from_expr(node)


def run_passes(passes: Iterable[Pass], node: Node, setting: Setting) -> Iterator[tuple[Pass, Any]]:
    """Yield (pass, the node after it) for each pass that is a part of the compilation."""
    for step in passes:
        if setting.runs(step):
            node = run_pass(step, node, setting)
            yield step, node
        elif not setting.context.is_enabled(step.name):
            _leave_out(step, node, "disabled_pass names it")


def run_pass(step: Pass, node: Node, setting: Setting) -> Any:
    """Run one pass with the instruments around it; a vetoed pass leaves the node as it is."""
    instruments = setting.context.instruments
    if instruments and not setting.context.requires(step.name):
        vetoes = [i for i in instruments if not _allows(i, node, step)]
        if vetoes:
            _leave_out(step, node, f"the instrument {vetoes[0]!r} vetoes it")
            return node
    for name in step.required:
        node = run_pass(_MAKERS[canonical(name)](), node, setting)
    if setting.verifies(node):
        instruments = (setting.verifier, *instruments)
    for instrument in instruments:
        _call(instrument, "run_before_pass", node, step)
    made = _stepped(step, node, setting)
    if not isinstance(made, type(node)):
        kind = LoweringError if step.by_user else InternalError
        raise kind(
            f"the pass {step.name!r} returned a {type(made).__name__}, which is no "
            f"{type(node).__name__}"
        )
    for instrument in instruments:
        _call(instrument, "run_after_pass", made, step)
    return made


def _allows(instrument: Any, node: Any, step: Pass) -> bool:
    """Return whether an instrument lets a pass run.  Raises LoweringError for no answer."""
    answer = _call(instrument, "should_run", node, step) if hasattr(instrument, "should_run") else 1
    if answer is None:
        raise LoweringError(
            f"the instrument {instrument!r} returned None from should_run; return True to let the "
            f"pass {step.name!r} run, or False"
        )
    return bool(answer)


def _leave_out(step: Pass, node: Any, why: str) -> None:
    """Raise LoweringError for a pass that `node` cannot go without."""
    missed = step.missed(node)
    if missed:
        raise LoweringError(f"the pass {step.name!r} cannot be left out ({why}): {missed}")


def _stepped(step: Pass, node: Any, setting: Setting) -> Any:
    """Return the node after `step`; what is too deep for Python's usual limit gets room for it."""
    try:
        return step.run(node, setting)
    except RecursionError:
        functions = [node] if isinstance(node, PrimFunc) else node.functions.values()
        loops = [f for f in functions if isinstance(f, PrimFunc)]
        if not loops:
            raise
    deepest = max(loops, key=lambda f: nesting(f.body))
    with room_for(deepest.body, f"function {deepest.name!r}"):
        return step.run(node, setting)


def _call(instrument: Any, method: str, *arguments: Any) -> Any:
    function = getattr(instrument, method, None)
    return function(*arguments) if function is not None else None
