"""The specification, the constants in Python and those in C: one set of numbers."""

import re
from pathlib import Path

import pytest

from slipway import rpc
from slipway.rpc import protocol
from slipway.rpc.protocol import Code, Failure, Feature, Role, Tag

PAGE = (Path(__file__).parents[2] / "docs/rpc-protocol.md").read_text(encoding="utf-8")
HEADER = (
    Path(rpc.__file__).parents[1] / "crt/include/slipway/rpc_frame.h"
).read_text(encoding="utf-8")  # fmt: skip


def section(number):
    return re.search(rf"^## {number}\. .*?(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)[0]


def rows(text):
    """Return the cells of each row of the tables in a text."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_every_code_is_on_the_page():
    said = {name: int(code) for code, name in re.findall(r"\b(\d+) ([A-Z][A-Z_]{3,})\b", PAGE)}
    for cells in rows(section(4)):
        if cells[0].isdecimal():
            said[cells[1]] = int(cells[0])
    said |= {name: int(code) for name, code in re.findall(r"`([A-Z]+)` \((\d+)\)", PAGE)}
    said["OUTPUT"] = int(re.search(r"code (\d+) `OUTPUT`", PAGE)[1])
    assert {code.name: said.get(code.name) for code in Code} == {c.name: c.value for c in Code}


@pytest.mark.parametrize(("number", "values"), [(3, Tag), (5, Failure)])
def test_the_tables_of_tags_and_failures_are_whole(number, values):
    said = [int(cells[0]) for cells in rows(section(number)) if cells[0].isdecimal()]
    assert said == sorted(value for value in values)


def test_roles_features_and_bounds_are_those_of_the_page():
    greeting = section(2)
    roles = next(cells[2] for cells in rows(greeting) if cells[1] == "role" and "=" in cells[2])
    assert {int(number) for number in re.findall(r"(\d) = ", roles)} == set(Role)
    features = " ".join(cells[2] for cells in rows(greeting) if cells[1] == "features")
    assert {int(n) for n in re.findall(r"\b(\d+)\b", features)} == {f.value for f in Feature}
    assert f"at most {protocol.HELLO_MAX_BYTES} bytes" in greeting
    assert f"at most {protocol.NAME_MAX_BYTES} bytes" in greeting
    assert f"own has at most {protocol.KEY_MAX_BYTES}" in greeting


@pytest.mark.parametrize(
    ("prefix", "values"),
    [("", Code), ("", Tag), ("FAIL_", Failure), ("ROLE_", Role), ("FEATURE_", Feature)],
)
def test_what_the_header_names_has_python_s_number(prefix, values):
    found = re.findall(rf"SLW_RPC_{prefix}([A-Z_]+)(?: =|) (\d+)u?\b", HEADER)
    named = {name: int(number) for name, number in found if name in values.__members__}
    assert len(named) > len(values) // 2
    assert named == {name: values[name].value for name in named}
