"""Pointers that step through an innermost loop, in place of indices that are scaled in each step.

LLVM's own strength reduction keeps one address in a loop and forgets of the others that they do not
wrap, without which no offset goes into a load of WebAssembly; it stays off there.  Then a step
computes ``base + (i << 4)`` for each operand, which is as many instructions as three products.
Here ``text``, the IR after LLVM's passes, gets a pointer for each such address::

    %i = phi i32 [ 0, %before ], [ %j, %loop ]        %p = phi ptr [ %base, %before ], [ %q, %loop ]
    %x = shl i32 %i, 4                                ...
    %p = getelementptr i8, ptr %base, i32 %x     to   %q = getelementptr i8, ptr %p, i32 16
    %j = add i32 %i, 1                                %end = icmp eq ptr %q, %last
    %end = icmp eq i32 %j, 384

It begins at the lowest address that a step takes, for loads add no offset below 0.  A loop is one
block that jumps to itself, from which only one other block comes.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

_LABEL = re.compile(r'([-\w.$]+|"[^"]*"):')
_DEFINED = re.compile(r"  (%[-\w.$]+) = ")
_NAME = re.compile(r"%[-\w.$]+")
_PHI = re.compile(r"  (%[-\w.$]+) = phi i32 \[ (\S+), %([-\w.$]+) \], \[ (\S+), %([-\w.$]+) \]$")
_ARITHMETIC = re.compile(r"(add|sub|mul|shl|or disjoint)((?: nuw| nsw)*) i32 ([^\s,]+), ([^\s,]+)$")
_ADDRESS = re.compile(r"getelementptr[a-z ]* (i8|i16|i32|i64|half|float|double), ptr (\S+), "
                      r"i32 (\S+)$")  # fmt: skip
_OFFSET = re.compile(r" = getelementptr inbounds[a-z ]* i8, ptr (%[-\w.$]+), i32 (-?\d+)$")
_ACCESS = re.compile(r"(?: = load |  store ).*, ptr (%[-\w.$]+)")
_TEST = re.compile(r"icmp (eq|ne) i32 ([^\s,]+), (-?\d+)$")
_LOOP_END = re.compile(r"  br i1 (%[-\w.$]+), label %([-\w.$]+), label %([-\w.$]+)")
_BYTES = {"i8": 1, "i16": 2, "i32": 4, "i64": 8, "half": 2, "float": 4, "double": 8}
_FAR = 1 << 31


@dataclass
class _Loop:
    """The lines of a loop's block, and what its instructions define."""

    label: str
    lines: list[str]
    entry: str = ""  # the block before
    counter: str = ""
    start: str = ""
    step: int = 0
    following: str = ""
    values: dict[str, str] = field(default_factory=dict)
    outside: set[str] = field(default_factory=set)  # names that other blocks use

    def coefficient(self, operand: str) -> int | None:
        """Return how many times the counter `operand` counts; None where that is not known."""
        if operand == self.counter:
            return 1
        if operand not in self.values:
            return 0  # a number, or from outside
        found = _ARITHMETIC.match(self.values[operand])
        if found is None:
            return None
        op, _, first, second = found.groups()
        a, b = self.coefficient(first), self.coefficient(second)
        if a is None or b is None:
            return None
        if op in ("mul", "shl"):
            if not second.lstrip("-").isdigit():
                return 0 if a == b == 0 else None
            return a * int(second) if op == "mul" else a << int(second)
        return a - b if op == "sub" else a + b

    def copy(self, operand: str, counter: str, suffix: str, into: list[str]) -> str:
        """Compute `operand` outside of the loop, for a value of the counter; return its name."""
        if operand == self.counter:
            return counter
        if operand not in self.values:
            return operand
        name = f"{operand}{suffix}"
        if not any(line.startswith(f"  {name} = ") for line in into):
            found = _ARITHMETIC.match(self.values[operand])
            assert found is not None
            op, _, first, second = found.groups()
            a, b = (self.copy(x, counter, suffix, into) for x in (first, second))
            into.append(f"  {name} = {op} i32 {a}, {b}")
        return name


class _Pointer(NamedTuple):
    """An address of a loop, and the lowest offset from it; the loop's pointer is that far below."""

    name: str
    lowest: int

    @property
    def phi(self) -> str:
        return f"{self.name}.low" if self.lowest else self.name

    @property
    def following(self) -> str:
        return f"{self.name}.next"


def step_pointers(text: str) -> str:
    """Return the IR with pointers in place of scaled indices in its innermost loops."""
    if "phi i32" not in text:
        return text
    parts = re.split(r"(?m)^(define .*\{\n|\}\n)", text)
    for number in range(2, len(parts), 2):
        if parts[number - 1].startswith("define"):
            parts[number] = _function(parts[number])
    return "".join(parts)


def _function(body: str) -> str:
    # Names that are numbers have to ascend in the text.
    numbers = set(re.findall(r"(?m)^(?:  %)?(\d+)(?= = |:)", body))
    body = re.sub(r"(?m)%(\d+)(?![-\w.$])|^(\d+)(?=:)", lambda m: _named(m, numbers), body)
    blocks: dict[str, list[str]] = {}
    current: list[str] = blocks.setdefault("", [])
    for line in body.split("\n"):
        begun = _LABEL.match(line)
        if begun is not None:
            current = blocks.setdefault(begun[1], [])
        current.append(line)
    names = {label: set(_NAME.findall("\n".join(lines))) for label, lines in blocks.items()}
    count = Counter(name for found in names.values() for name in found)
    for label in list(blocks):
        loop = _loop_of(label, blocks[label])
        if loop is not None and loop.entry in blocks:
            loop.outside = {name for name in names[label] if count[name] > 1}
            _rewrite(loop, blocks[loop.entry])
            blocks[label] = loop.lines
    return "\n".join(line for lines in blocks.values() for line in lines)


def _named(found: re.Match[str], numbers: set[str]) -> str:
    number = found[1] or found[2]
    if number not in numbers:
        return found[0]  # a parameter
    return f"{'%' if found[1] else ''}at.{number}"


def _loop_of(label: str, lines: list[str]) -> _Loop | None:
    """Return the loop that a block is, where a counter of it is known."""
    end = next((i for i in range(len(lines) - 1, -1, -1) if _LOOP_END.match(lines[i])), None)
    if end is None or not label:
        return None
    ends = _LOOP_END.match(lines[end])
    assert ends is not None
    if label not in ends.groups()[1:] or ends[2] == ends[3]:
        return None
    loop = _Loop(label, lines)
    for line in lines:
        found = _DEFINED.match(line)
        if found is not None:
            loop.values[found[1]] = line[found.end() :]
    for line in lines:
        phi = _PHI.match(line)
        if phi is None:
            continue
        name, *sides = phi.groups()
        ways = {sides[1]: sides[0], sides[3]: sides[2]}
        if label not in ways:
            return None
        following = ways.pop(label)
        step = _ARITHMETIC.match(loop.values.get(following, ""))
        if step is not None and step[1] == "add" and step[3] == name and step[4].isdigit():
            ((loop.entry, loop.start),) = ways.items()
            loop.counter, loop.step, loop.following = name, int(step[4]), following
            return loop
    return None


def _rewrite(loop: _Loop, entry: list[str]) -> None:
    """Give a loop its pointers; `entry` are the lines of the block before."""
    before: list[str] = []
    phis, steps = [], []
    leading: _Pointer | None = None
    for number, line in enumerate(loop.lines):
        found = _DEFINED.match(line)
        address = _ADDRESS.match(line[found.end() :]) if found is not None else None
        if found is None or address is None:
            continue
        element, base, index = address.groups()
        times = loop.coefficient(index)
        if base in loop.values or not times:
            continue
        pointer = _Pointer(found[1], _lowest(loop, found[1]))
        stride = times * loop.step * _BYTES[element]
        start = _address(loop, pointer, loop.start, ".start", before)
        phis.append(f"  {pointer.phi} = phi ptr [ {start}, %{loop.entry} ], "
                    f"[ {pointer.following}, %{loop.label} ]")  # fmt: skip
        steps.append(f"  {pointer.following} = getelementptr i8, ptr {pointer.phi}, i32 {stride}")
        loop.lines[number] = _from_lowest(loop, pointer)
        leading = leading or pointer
    if leading is None:
        return
    _count_by_pointer(loop, leading, before)
    loop.lines = [loop.lines[i] for i in _live(loop)]
    last_phi = max((i for i, line in enumerate(loop.lines) if " = phi " in line), default=0)
    loop.lines[last_phi + 1 : last_phi + 1] = phis
    test = next(i for i, line in enumerate(loop.lines) if _is_end(line))
    loop.lines[test:test] = steps
    end = next(i for i in range(len(entry) - 1, -1, -1) if entry[i].startswith("  br "))
    entry[end:end] = before
    loop.lines.append("")


def _own(loop: _Loop) -> set[int]:
    """Return the lines that define the counter and what follows it."""
    names = (f"  {loop.counter} = ", f"  {loop.following} = ")
    return {i for i, line in enumerate(loop.lines) if line.startswith(names)}


def _is_end(line: str) -> bool:
    return (" = icmp " in line and " ptr " in line) or line.startswith("  br ")


def _lowest(loop: _Loop, name: str) -> int:
    """Return the lowest offset from an address that each step reads or writes at, or 0."""
    touched = {m[1] for line in loop.lines if (m := _ACCESS.search(line)) is not None}
    offsets = [0]
    for line in loop.lines:
        found, defined = _OFFSET.search(line), _DEFINED.match(line)
        if found is not None and found[1] == name and defined is not None and defined[1] in touched:
            offsets.append(int(found[2]))
    return min(offsets)


def _from_lowest(loop: _Loop, pointer: _Pointer) -> str:
    """Count offsets from the lowest, as loads add none below 0; return the address' own line."""
    low = pointer.lowest
    if not low:
        return ""
    for number, line in enumerate(loop.lines):
        found = _OFFSET.search(line)
        if found is not None and found[1] == pointer.name and int(found[2]) >= low:
            rest = f"ptr {pointer.phi}, i32 {int(found[2]) - low}"
            loop.lines[number] = f"{line[: found.start()]} = getelementptr inbounds nuw i8, {rest}"
    return f"  {pointer.name} = getelementptr inbounds nuw i8, ptr {pointer.phi}, i32 {-low}"


def _address(loop: _Loop, pointer: _Pointer, counter: str, suffix: str, into: list[str]) -> str:
    """Compute a pointer outside of the loop, for a value of the counter."""
    found = _ADDRESS.match(loop.values[pointer.name])
    assert found is not None
    element, base, index = found.groups()
    at = loop.copy(index, counter, suffix, into)
    name = f"{pointer.name}{suffix}"
    into.append(f"  {name} = getelementptr {element}, ptr {base}, i32 {at}")
    if not pointer.lowest:
        return name
    into.append(f"  {name}.low = getelementptr i8, ptr {name}, i32 {pointer.lowest}")
    return f"{name}.low"


def _count_by_pointer(loop: _Loop, pointer: _Pointer, before: list[str]) -> None:
    """Let the loop end by a pointer, where its counter counts for nothing else."""
    found = _ADDRESS.match(loop.values[pointer.name])
    assert found is not None
    span = (loop.coefficient(found[3]) or 0) * loop.step * _BYTES[found[1]]
    live = _live(loop)
    tests = [i for i in live if loop.following in _NAME.findall(loop.lines[i])]
    counters = [i for i in live if loop.counter in _NAME.findall(loop.lines[i])]
    # Its phi and its step, and of what follows the phi, the step and one test.
    own = _own(loop)
    others = [i for i in tests if i not in own]
    if set(counters) - own or len(others) != 1 or not loop.start.lstrip("-").isdigit():
        return
    (at,) = others
    name = _DEFINED.match(loop.lines[at])
    test = _TEST.match(loop.lines[at][name.end() :]) if name is not None else None
    if name is None or test is None or test[2] != loop.following:
        return
    count = (int(test[3]) - int(loop.start)) * abs(span)
    if not 0 < count < _FAR:
        return
    last = _address(loop, pointer, test[3], ".last", before)
    loop.lines[at] = f"  {name[1]} = icmp {test[1]} ptr {pointer.following}, {last}"
    if not loop.outside & {loop.counter, loop.following}:
        loop.lines = [line for i, line in enumerate(loop.lines) if i not in own]


def _live(loop: _Loop) -> list[int]:
    """Return the lines of a loop that something needs: not the scaled indices it did without."""
    uses = dict.fromkeys(loop.outside, 1)
    for line in loop.lines:
        found = _DEFINED.match(line)
        for name in set(_NAME.findall(line[found.end() if found else 0 :])):
            uses[name] = uses.get(name, 0) + 1
    dead: set[int] = set()
    while True:
        more = [
            i for i, line in enumerate(loop.lines)
            if i not in dead and (d := _DEFINED.match(line)) is not None
            and not uses.get(d[1]) and _ARITHMETIC.match(line[d.end() :])
        ]  # fmt: skip
        if not more:
            return [i for i, line in enumerate(loop.lines) if line and i not in dead]
        for i in more:
            dead.add(i)
            found = _DEFINED.match(loop.lines[i])
            assert found is not None
            for name in set(_NAME.findall(loop.lines[i][found.end() :])):
                uses[name] -= 1
