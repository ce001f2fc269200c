"""A pytest plugin that runs collected tests against mutants of one module.

Everything is imported and collected once; each mutant is a fork of that process, in which the
functions of the module get the mutant's code.  A first fork runs the tests without a mutant and
notes which lines of the module each of them runs, so that a mutant is judged by the tests that come
by its lines only, the quickest first, until one fails.  No file is changed.

`MUTANTS_ORDER` names a JSON file: the module's name, the names of the mutants (all without), the
number of processes, and where to write the verdicts.
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
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, settings

from mutation.changes import Mutant, apply, mutants_of

_LEAST_CPU_S = 3.0  # that a test gets before it counts as one without end
_TIMES_CPU = 10  # or so many times what it takes with lines noted
_MOST_WALL_S = 120
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
    verdicts = _judge(session.items, module, source, mutants, order["jobs"])
    Path(order["verdicts"]).write_text(json.dumps(verdicts))
    return True


def _judge(
    items: list[pytest.Item], module: Any, source: str, mutants: list[Mutant], jobs: int
) -> dict[str, str]:
    """Return the verdict on each mutant by name: "killed by ...", "survived ..." or "unreached"."""
    clean = _without_mutant(items, module.__file__)
    failed = [name for name, result in clean.items() if result["failed"]]
    if failed:
        return {"": f"fails without a mutant: {failed[0]}"}
    by_time = sorted(items, key=lambda item: float(clean[item.nodeid]["seconds"]))
    verdicts: dict[str, str] = {}
    running: dict[int, tuple[Mutant, Path]] = {}
    with tempfile.TemporaryDirectory() as folder:

        def finish() -> None:
            pid, status = os.wait()
            mutant, said = running.pop(pid)
            verdicts[mutant.name] = _verdict(status, said)

        for mutant in mutants:
            judges = [i for i in by_time if _comes_by(clean[i.nodeid]["lines"], mutant)]
            if not judges:
                verdicts[mutant.name] = "unreached"
                continue
            if len(running) >= jobs:
                finish()
            said = Path(folder) / mutant.name
            limits = [_LEAST_CPU_S + _TIMES_CPU * clean[i.nodeid]["seconds"] for i in judges]

            def work(
                mutant: Mutant = mutant,
                judges: Any = judges,
                limits: Any = limits,
                said: Path = said,
            ) -> None:
                _mutate(module, source, mutant)
                _run_until_failure(judges, limits, said)

            running[_fork(work)] = mutant, said
        while running:
            finish()
    return verdicts


def _comes_by(lines: list[int], mutant: Mutant) -> bool:
    if not mutant.owner:
        return bool(lines)
    first, last = mutant.lines
    return any(first <= line <= last for line in lines)


def _verdict(status: int, said: Path) -> str:
    test = said.read_text() if said.exists() else ""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        how = "no end" if number in _WITHOUT_END else signal.Signals(number).name
        return f"killed by {test} ({how})"
    return f"killed by {test}" if os.WEXITSTATUS(status) else f"survived {test}"


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


def _run_until_failure(items: list[pytest.Item], limits: list[float], said: Path) -> None:
    for number, (item, limit) in enumerate(zip(items, limits, strict=True)):
        said.write_text(item.nodeid)
        signal.setitimer(signal.ITIMER_PROF, limit)
        following = items[number + 1] if number + 1 < len(items) else None
        if _fails(item, following):
            os._exit(1)
    said.write_text(f"{len(items)} tests")


def _fails(item: pytest.Item, following: pytest.Item | None) -> bool:
    from _pytest.runner import runtestprotocol

    return any(report.failed for report in runtestprotocol(item, log=False, nextitem=following))


def _without_mutant(items: list[pytest.Item], path: str) -> dict[str, Any]:
    """Return for each test whether it fails, its seconds, and the lines of `path` that it runs."""
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder) / "clean"

        def work() -> None:
            signal.alarm(0)
            results = {}
            for number, item in enumerate(items):
                following = items[number + 1] if number + 1 < len(items) else None
                lines: set[int] = set()
                start = time.process_time()
                sys.settrace(_noting(path, lines))
                failed = _fails(item, following)
                sys.settrace(None)
                seconds = time.process_time() - start
                results[item.nodeid] = {
                    "failed": failed, "seconds": seconds, "lines": sorted(lines)
                }  # fmt: skip
            answer.write_text(json.dumps(results))

        os.waitpid(_fork(work), 0)
        found: dict[str, Any] = json.loads(answer.read_text())
        return found


def _noting(path: str, lines: set[int]) -> Any:
    """Return a trace function that notes the lines of one file."""

    def in_file(frame: types.FrameType, event: str, arg: Any) -> Any:
        if event == "line":
            lines.add(frame.f_lineno)
        return in_file

    def on_call(frame: types.FrameType, event: str, arg: Any) -> Any:
        return in_file if frame.f_code.co_filename == path else None

    return on_call


# -- giving a module the code of a mutant ----------------------------------------------------------


def _mutate(module: Any, source: str, mutant: Mutant) -> None:
    tree = apply(source, mutant)
    if not mutant.owner:
        _assign_again(module, tree, mutant)
    # Without an owner it may be a lambda in a table of the module: a function without a name.
    codes = {
        (code.co_qualname, code.co_firstlineno): code
        for code in _codes(compile(tree, module.__file__, "exec", dont_inherit=True))
        if code.co_qualname == mutant.owner or (not mutant.owner and "<lambda>" in code.co_qualname)
    }
    for function in gc.get_objects():
        if isinstance(function, types.FunctionType):
            code = function.__code__
            if code.co_filename == module.__file__:
                changed = codes.get((code.co_qualname, code.co_firstlineno))
                if changed is not None:
                    function.__code__ = changed
    if mutant.owner:
        _default_again(module, tree, mutant)


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
