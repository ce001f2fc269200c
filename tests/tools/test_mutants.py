"""The mutation tool: it changes what it says, and tells noticed mistakes from unnoticed ones."""

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import mutants  # noqa: E402
from mutation.changes import apply, mutants_of  # noqa: E402
from mutation.table import JUDGES  # noqa: E402

TOY = '''
"""A toy."""

LIMIT = 3


def clamp(x: int, low: int = 0) -> int:
    """Return x between low and LIMIT."""
    if not isinstance(x, int):
        raise TypeError("no number but 1" + str(x))
    return min(max(x, low), LIMIT)


class Counter:
    """Counts down."""

    def __init__(self, start: int) -> None:
        self.left = start

    def steps(self) -> int:
        """Return how often `left` can be lowered."""
        count = 0
        while self.left > 0:
            self.left -= 1
            count += 1
        return count


DOUBLE = {"twice": lambda x: x + x}


def made() -> list[int]:
    """Return what a fixture of the whole module makes."""
    return [7, 9]


def unused(x: int) -> bool:
    """Return whether x is 0 or more."""
    return x >= 0
'''
TOY_TEST = """
import pytest
from toy import DOUBLE, Counter, clamp, made


@pytest.fixture(scope="module")
def pair():
    return made()


def test_first(pair):
    assert pair[0] == 7


def test_second(pair):
    assert pair[1] == 9


def test_clamp():
    assert clamp(5) == 3
    assert clamp(2) == 2
    assert clamp(-1) == 0


def test_steps():
    assert Counter(2).steps() == 2


def test_table():
    assert DOUBLE["twice"](2) == 4
"""


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    folder = tmp_path_factory.mktemp("toy")
    (folder / "toy.py").write_text(TOY)
    (folder / "test_toy.py").write_text(TOY_TEST)
    result = mutants.judge("toy", ["test_toy.py"], root=folder, source=folder, memory=folder)
    assert (folder / "toy.py").read_text() == TOY
    assert mutants.remembered("toy", folder) == result.verdicts
    return {f"{m.before} -> {m.after}": result.verdicts[m.name] for m in result.mutants.values()}


@pytest.mark.parametrize(
    "change",
    [
        "min(max(x, low), LIMIT) -> max(max(x, low), LIMIT)",
        "max(x, low) -> min(x, low)",
        "low: int=0 -> low: int=1",
        "self.left > 0 -> self.left >= 0",
        "LIMIT = 3 -> LIMIT = 4",
        "x + x -> x - x",
        "self.left -= 1 -> self.left += 1",  # never ends
        "self.left = start -> pass",
        "return count -> return None",
        "not isinstance(x, int) -> isinstance(x, int)",
    ],
)
def test_mistakes_that_the_tests_of_a_toy_notice(toy, change):
    verdicts = {" ".join(key.split()): verdict for key, verdict in toy.items()}
    if change.startswith(("low:", "LIMIT")):  # a constant is shown with what is around it, if it is
        change = "0 -> 1" if change.startswith("low") else "3 -> 4"
    assert verdicts[change].startswith("killed"), verdicts


def test_mistakes_that_they_do_not_notice(toy):
    assert toy["x >= 0 -> x > 0"] == "unreached"
    assert toy["3 -> 2"].startswith("killed")
    assert not any("no number" in change for change in toy)


def test_what_a_shared_fixture_makes_is_judged_by_all_that_use_it(toy):
    """Without a mutant it is made for the first of them, which looks at one of its values."""
    assert toy["[7, 9] -> [8, 9]"] == "killed by test_toy.py::test_first"
    assert toy["[7, 9] -> [7, 10]"] == "killed by test_toy.py::test_second"


def test_tests_that_fail_anyway_judge_nothing(tmp_path):
    (tmp_path / "toy.py").write_text(TOY)
    (tmp_path / "test_toy.py").write_text("def test_wrong():\n    assert False\n")
    with pytest.raises(mutants.TestsFail, match=r"without a mutant: test_toy.py::test_wrong"):
        mutants.judge("toy", ["test_toy.py"], root=tmp_path, source=tmp_path, memory=tmp_path)


def test_each_mutant_is_one_change_with_a_name_that_lines_do_not_change():
    found = mutants_of(TOY, "toy")
    assert len({m.name for m in found}) == len(found) > 20
    assert {ast.dump(apply(TOY, m)) for m in found}.isdisjoint({ast.dump(ast.parse(TOY))})
    moved = mutants_of("# a comment\n\n" + TOY, "toy")
    assert [m.name for m in moved] == [m.name for m in found]


def test_a_stride_that_equals_the_reach_is_noticed(tmp_path):
    """Two iterations that write one element: `step <= reach` weakened to `<` survived once."""
    module = "slipway.transform.loop.in_place"
    source = mutants.source_of(module).read_text()
    (bad,) = (m for m in mutants_of(source, module) if "step <= reach -> step < reach" in str(m))
    result = mutants.judge(module, [JUDGES[module][0]], [bad.name], memory=tmp_path)
    assert result.verdicts[bad.name].startswith("killed")


def test_every_module_has_tests_and_every_explained_mutant_is_there():
    found = set()
    for module, tests in JUDGES.items():
        assert mutants.source_of(module).exists(), f"take {module} out of tools/mutation/table.py"
        assert all((ROOT / test).exists() for test in tests), module
        found |= {m.name for m in mutants_of(mutants.source_of(module).read_text(), module)}
    assert set(mutants.explained()) <= found
