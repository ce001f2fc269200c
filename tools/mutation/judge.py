"""A pytest plugin that runs collected tests against mutants of one module.

Everything is imported and collected once; each mutant is a fork of that process, in which the
functions of the module get the mutant's code.  A first fork runs the tests without a mutant and
notes which lines of the module each of them runs, so that a mutant is judged by the tests that come
by its lines only, until one fails: first the one that killed it the last time, then those that
killed other mutants of its function, then the quickest.  No file is changed.

`MUTANTS_ORDER` names a JSON file: the module's name, the names of the mutants (all without), the
number of processes, what killed them the last time, and where to write the verdicts, one a line.
"""

from __future__ import annotations

import ast
import gc
import importlib
import json
import os
import resource
import signal
import sys
import tempfile
import threading
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, settings

from mutation.changes import Mutant, apply, mutants_of

_MIN_CPU_S = 1.0  # that a test gets before it counts as one without end
_TIMES_CPU = 5  # and so many times what it takes with lines noted
_MOST_WALL_S = (
    1800  # of one that waits for ever; the limits in processor time hold on busy machines
)
_MOST_BYTES = 6 << 30
_WITHOUT_END = (signal.SIGPROF, signal.SIGALRM, signal.SIGXCPU)

Lines = dict[str, set[int]]  # of each test


def pytest_configure(config: pytest.Config) -> None:
    """Draw the same examples in every run, and look for no smaller one."""
    phases = (Phase.explicit, Phase.generate)
    settings.register_profile("mutants", derandomize=True, database=None, phases=phases)
    settings.load_profile("mutants")


def pytest_runtestloop(session: pytest.Session) -> bool:
    """Judge the mutants in the place of running the tests."""
    order = json.loads(Path(os.environ["MUTANTS_ORDER"]).read_text())
    module = importlib.import_module(order["module"])
    assert module.__file__ is not None
    source = Path(module.__file__).read_text()
    wanted = order["mutants"]
    mutants = [m for m in mutants_of(source, order["module"]) if not wanted or m.name in wanted]
    with Path(order["verdicts"]).open("a") as file:

        def tell(name: str, verdict: str) -> None:
            file.write(json.dumps([name, verdict]) + "\n")
            file.flush()

        judges = _Judges(session.items, module.__file__, order["killers"])
        if judges.wrong:
            tell("", f"fails without a mutant: {judges.wrong}")
        else:
            _judge(judges, _Changer(module, source), mutants, order["jobs"], tell)
    return True


class _Judges:
    """The tests of a module, in the order in which they are likely to notice a mutant."""

    def __init__(self, items: list[pytest.Item], path: str, killers: dict[str, str]) -> None:
        clean = _without_mutant(items, path)
        self.wrong = next((name for name, result in clean.items() if result["failed"]), "")
        self.seconds = {name: float(result["seconds"]) for name, result in clean.items()}
        self.lines = {name: set(result["lines"]) for name, result in clean.items()}
        self.by_time = sorted(items, key=lambda item: self.seconds[item.nodeid])
        self.killers = killers
        self.recent: dict[str, list[str]] = {}  # by function, the latest last

    def of(self, mutant: Mutant) -> list[pytest.Item]:
        """Return the tests that come by the lines of a mutant."""
        first, last = mutant.lines
        wanted = set(range(first, last + 1))
        found = [
            item
            for item in self.by_time
            if (self.lines[item.nodeid] & wanted if mutant.owner else self.lines[item.nodeid])
        ]
        early = [*self.recent.get(mutant.owner, ()), self.killers.get(mutant.name, "")]
        rank = {test: -1 - number for number, test in enumerate(early)}
        return sorted(found, key=lambda item: rank.get(item.nodeid, 0))

    def limit(self, item: pytest.Item) -> float:
        """Return the seconds of processor time after which a test has no end."""
        return _MIN_CPU_S + _TIMES_CPU * self.seconds[item.nodeid]

    def killed(self, mutant: Mutant, test: str) -> None:
        """Note what killed a mutant."""
        recent = self.recent.setdefault(mutant.owner, [])
        if test in recent:
            recent.remove(test)
        recent.append(test)


def _judge(
    judges: _Judges,
    changer: _Changer,
    mutants: list[Mutant],
    jobs: int,
    tell: Callable[[str, str], None],
) -> None:
    """Tell the verdict on each mutant: "killed by ...", "survived ..." or "unreached"."""
    running: dict[int, tuple[Mutant, Path]] = {}
    gc.collect()
    gc.freeze()  # what is here stays as it is: forks share it, and collect only what is theirs
    with tempfile.TemporaryDirectory() as folder:

        def finish() -> None:
            pid, status = os.wait()
            mutant, said = running.pop(pid)
            verdict, test = _verdict(status, said)
            if verdict.startswith("killed"):
                judges.killed(mutant, test)
            tell(mutant.name, verdict)

        for mutant in mutants:
            items = judges.of(mutant)
            if not items:
                tell(mutant.name, "unreached")
                continue
            if len(running) >= jobs:
                finish()
                items = judges.of(mutant)
            said = Path(folder) / mutant.name

            def work(
                mutant: Mutant = mutant, items: list[pytest.Item] = items, said: Path = said
            ) -> None:
                changer.mutate(mutant)
                _run_until_failure(items, judges.limit, said)

            running[_fork(work)] = mutant, said
        while running:
            finish()


def _verdict(status: int, said: Path) -> tuple[str, str]:
    """Return the verdict on a mutant whose process has ended, and the test it ended in."""
    test = said.read_text() if said.exists() else ""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        how = "no end" if number in _WITHOUT_END else signal.Signals(number).name
        return f"killed by {test} ({how})", test
    return (f"killed by {test}" if os.WEXITSTATUS(status) else f"survived {test}"), test


def _fork(work: Callable[[], None]) -> int:
    """Run `work` in another process, which ends with 0 if it returns; return its number."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nothing, stream)
        signal.alarm(_MOST_WALL_S)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_DATA, (_MOST_BYTES, _MOST_BYTES))
        work()
        code = 0
    finally:
        os._exit(code)


def _run_until_failure(
    items: list[pytest.Item], limit: Callable[[pytest.Item], float], said: Path
) -> None:
    for number, item in enumerate(items):
        said.write_text(item.nodeid)
        signal.setitimer(signal.ITIMER_PROF, limit(item))
        following = items[number + 1] if number + 1 < len(items) else None
        if _fails(item, following):
            os._exit(1)
    said.write_text(f"{len(items)} tests")


def _fails(item: pytest.Item, following: pytest.Item | None) -> bool:
    from _pytest.runner import runtestprotocol

    return any(report.failed for report in runtestprotocol(item, log=False, nextitem=following))


class _Notes:
    """Notes which lines of a file run, and processor seconds: of a test, and of shared fixtures.

    What a fixture of more than one test runs counts for each of them: it runs for whichever comes
    first in the process of a mutant.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.lines: set[int] = set()
        self.shared: dict[int, tuple[set[int], float]] = {}  # by id of the fixture's definition

    def __enter__(self) -> None:
        self.lines = set()
        threading.settrace(self._on_call)  # of threads that a test starts
        sys.settrace(self._on_call)

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)
        threading.settrace(None)  # type: ignore[arg-type]

    def _on_call(self, frame: types.FrameType, event: str, arg: Any) -> Any:
        if frame.f_code.co_filename != self.path:
            return None
        self.lines.add(frame.f_lineno)  # that of the function, with the defaults of its arguments
        return self._in_file

    def _in_file(self, frame: types.FrameType, event: str, arg: Any) -> Any:
        if event == "line":
            self.lines.add(frame.f_lineno)
        return self._in_file

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Any:
        """Note what a fixture runs that lives longer than a test."""
        if fixturedef.scope == "function":
            return (yield)
        outside, self.lines = self.lines, set()
        start = time.process_time()
        try:
            return (yield)
        finally:
            lines, seconds = self.shared.get(id(fixturedef), (set(), 0.0))
            seconds += time.process_time() - start
            self.shared[id(fixturedef)] = lines | self.lines, seconds
            self.lines = outside | self.lines

    def of_fixtures(self, item: pytest.Item) -> tuple[set[int], float]:
        """Return the lines and the seconds of the fixtures that a test shares with others."""
        info = getattr(item, "_fixtureinfo", None)
        definitions = (
            [d for listed in info.name2fixturedefs.values() for d in listed] if info else []
        )
        found = [self.shared[id(d)] for d in definitions if id(d) in self.shared]
        return set[int]().union(*(lines for lines, _ in found)), sum(s for _, s in found)


def _without_mutant(items: list[pytest.Item], path: str) -> dict[str, Any]:
    """Return for each test whether it fails, its seconds, and the lines of `path` that it runs."""
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder) / "clean"

        def work() -> None:
            signal.alarm(0)
            results = {}
            notes = _Notes(path)
            items[0].config.pluginmanager.register(notes)
            for number, item in enumerate(items):
                following = items[number + 1] if number + 1 < len(items) else None
                start = time.process_time()
                with notes:
                    failed = _fails(item, following)
                seconds = time.process_time() - start
                results[item] = failed, seconds, notes.lines
            told = {}
            for item, (failed, seconds, lines) in results.items():
                more, longer = notes.of_fixtures(item)
                told[item.nodeid] = {
                    "failed": failed, "seconds": seconds + longer, "lines": sorted(lines | more)
                }  # fmt: skip
            answer.write_text(json.dumps(told))

        os.waitpid(_fork(work), 0)
        found: dict[str, Any] = json.loads(answer.read_text())
        return found


# -- giving a module the code of a mutant ----------------------------------------------------------


class _Changer:
    """Gives the functions of a module, wherever they are kept, the code of a mutant."""

    def __init__(self, module: types.ModuleType, source: str) -> None:
        self.module: Any = module
        self.source = source
        self.functions = [
            found
            for found in gc.get_objects()
            if isinstance(found, types.FunctionType)
            and found.__code__.co_filename == module.__file__
        ]

    def mutate(self, mutant: Mutant) -> None:
        """Make the module that of a mutant."""
        tree = apply(self.source, mutant)
        if not mutant.owner:
            _assign_again(self.module, tree, mutant)
        # Without an owner it may be a lambda in a table of the module: a function without a name.
        codes = {
            (code.co_qualname, code.co_firstlineno): code
            for code in _codes(compile(tree, self.module.__file__, "exec", dont_inherit=True))
            if code.co_qualname == mutant.owner
            or (not mutant.owner and "<lambda>" in code.co_qualname)
        }
        for function in self.functions:
            changed = codes.get((function.__code__.co_qualname, function.__code__.co_firstlineno))
            if changed is not None:
                function.__code__ = changed
        if mutant.owner:
            _default_again(self.module, tree, mutant)


def _codes(code: types.CodeType) -> list[types.CodeType]:
    inner = [c for c in code.co_consts if isinstance(c, types.CodeType)]
    return [code, *(found for c in inner for found in _codes(c))]


def _assign_again(module: Any, tree: ast.Module, mutant: Mutant) -> None:
    """Evaluate the changed statement of the module, here and where the name was imported to."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            _field_again(getattr(module, node.name), node, mutant, vars(module))
        if node.lineno != mutant.lines[0] or not isinstance(node, (ast.Assign, ast.AnnAssign)):
            continue
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        if not isinstance(target, ast.Name) or node.value is None:
            continue
        old = getattr(module, target.id)
        new = eval(compile(ast.Expression(node.value), module.__file__, "eval"), vars(module))
        if isinstance(old, dict):
            continue  # a table of functions: those get new code
        for other in list(sys.modules.values()):
            if vars(other).get(target.id) is old and other.__name__.startswith("slipway"):
                setattr(other, target.id, new)
        setattr(module, target.id, new)


def _field_again(kind: type, tree: ast.ClassDef, mutant: Mutant, names: dict[str, Any]) -> None:
    """Give the field of a dataclass its changed default, in the function that makes objects too."""
    for node in tree.body:
        if node.lineno != mutant.lines[0] or not isinstance(node, ast.AnnAssign) or not node.value:
            continue
        assert isinstance(node.target, ast.Name)
        new = eval(compile(ast.Expression(node.value), "", "eval"), names)
        setattr(kind, node.target.id, new)
        make: Any = vars(kind)["__init__"]
        arguments = make.__code__.co_varnames[: make.__code__.co_argcount]
        at = arguments.index(node.target.id) - len(arguments)
        defaults = list(make.__defaults__)
        defaults[at] = new
        make.__defaults__ = tuple(defaults)


def _default_again(module: Any, tree: ast.Module, mutant: Mutant) -> None:
    """Give functions the default values of the changed ones."""
    holder: Any = module
    for name in mutant.owner.split(".")[:-1]:
        holder = getattr(holder, name)
    function = vars(holder).get(mutant.owner.split(".")[-1])
    function = getattr(function, "__func__", getattr(function, "fget", function))
    body: Any = tree
    for name in mutant.owner.split("."):
        body = next(n for n in body.body if getattr(n, "name", "") == name)
    args = body.args
    if not isinstance(function, types.FunctionType) or not (args.defaults or args.kw_defaults):
        return
    for argument in [*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg]:
        if argument is not None:
            argument.annotation = None
    made = ast.Expression(ast.Lambda(args, ast.Constant(None)))
    ast.fix_missing_locations(made)
    changed = eval(compile(made, module.__file__, "eval"), vars(module))
    function.__defaults__, function.__kwdefaults__ = changed.__defaults__, changed.__kwdefaults__
