"""Loops whose addresses became pointers compute what they did, with fewer instructions."""

import ctypes
import re

import llvmlite.binding as llvm
import numpy as np
import pytest

from slipway import relay
from slipway.codegen.llvm.pointer_steps import step_pointers

LOOP = """
define i32 @f(ptr %a, ptr %b, i32 %first, i32 %offset) {{
entry:
  %far = getelementptr inbounds nuw float, ptr %a, i32 %offset
  br label %loop

loop:                                             ; preds = %loop, %entry
  %i = phi i32 [ {start}, %entry ], [ %j, %loop ]
  %total = phi float [ 0.0, %entry ], [ %sum, %loop ]
{body}
  %sum = fadd float %total, %x
  %j = add nuw nsw i32 %i, {step}
  {end}
  br i1 %more, label %loop, label %done

done:
  %out = phi float [ %sum, %loop ]
  store float %out, ptr %b, align 4
  ret i32 {result}
}}
"""
DOWN = """  %k = sub nsw i32 40, %i
  %p = getelementptr inbounds float, ptr %a, i32 %k"""
BETWEEN = """  %m = mul nsw i32 %i, 12
  %n = add nsw i32 %m, %first
  %p = getelementptr inbounds i8, ptr %far, i32 %n"""
INSIDE = """  %own = getelementptr inbounds float, ptr %a, i32 %i
  %p = getelementptr inbounds float, ptr %own, i32 %i"""
COUNTED = """  %q = getelementptr inbounds float, ptr %a, i32 %i
  %half = lshr i32 %i, 1
  %p = getelementptr inbounds float, ptr %q, i32 %half"""
SCALED = """  %s = shl i32 %i, 3
  %p = getelementptr inbounds i8, ptr %a, i32 %s"""
BELOW_IT = """  %c = getelementptr inbounds float, ptr %far, i32 %i
  %y = load float, ptr %c, align 4
  %d = getelementptr inbounds i8, ptr %c, i32 -12
  %g = select i1 true, ptr %c, ptr %d
  %h = load float, ptr %g, align 4
  %e = getelementptr inbounds i8, ptr %c, i32 8
  %z = load float, ptr %e, align 4
  %w = fadd float %y, %z
  store float %w, ptr %b, align 4
  %p = getelementptr inbounds i8, ptr %c, i32 -8"""
READ = "\n  %x = load float, ptr %p, align 4"
UNTIL_40 = "%more = icmp ne i32 %j, 40"
BELOW = "%more = icmp slt i32 %j, 39"


def run(text):
    """Return what the function gives, and what it stores."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    module = llvm.parse_assembly(text)
    module.verify()
    machine = llvm.Target.from_default_triple().create_target_machine(opt=1)
    engine = llvm.create_mcjit_compiler(module, machine)
    function = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 2, *[ctypes.c_int] * 2)
    data, out = np.arange(400, dtype="float32") ** 2, np.zeros(1, "float32")
    given = function(engine.get_function_address("f"))(data.ctypes.data, out.ctypes.data, 4, 3)
    return given, float(out[0])


@pytest.mark.parametrize("end", [UNTIL_40, BELOW])
@pytest.mark.parametrize(
    ("body", "start", "step", "result", "pointers"),
    [
        (SCALED, "0", 1, "0", 1),
        (SCALED, "0", 4, "%j", 1),  # the counter is needed after the loop
        (SCALED, "0", 1, "%s", 1),  # and the scaled index
        (SCALED, "%first", 1, "0", 1),
        (DOWN, "0", 1, "0", 1),
        (BETWEEN, "0", 2, "0", 1),
        (BETWEEN, "%first", 2, "%n", 1),
        (BELOW_IT, "0", 1, "0", 1),
        (BELOW_IT, "%first", 1, "%j", 1),
        (INSIDE, "0", 1, "0", 1),
        (COUNTED, "0", 1, "0", 1),
    ],
)
def test_loops_give_the_same(body, start, step, result, pointers, end):
    text = LOOP.format(body=body + READ, start=start, step=step, result=result, end=end)
    found = step_pointers(text)
    assert found.count("phi ptr") == pointers
    assert run(found) == run(text)
    # An offset below 0 goes into no load; that of %d is no load's.
    assert not re.search(r"%[^d] = getelementptr.*, i32 -\d", found)
    needs_counter = result == "%j" or body in (INSIDE, COUNTED) or start == "%first"
    if end == UNTIL_40 and not needs_counter and result == "0":
        assert "phi i32" not in found


def test_names_that_are_numbers():
    text = LOOP.format(body=SCALED + READ, start="0", step=1, result="%s", end=UNTIL_40)
    numbered = text.replace("%far", "%0").replace("loop:", "1:").replace("%loop", "%1")
    for number, name in enumerate(("i", "total", "s", "p", "x", "sum", "j", "more"), 2):
        numbered = re.sub(rf"%{name}\b", f"%{number}", numbered)
    numbered = numbered.replace("done:", "10:").replace("%done", "%10").replace("%out", "%11")
    found = step_pointers(numbered)
    assert "phi ptr" in found
    assert run(found) == run(numbered) == run(text)


def test_text_without_such_loops_stays():
    text = LOOP.format(body=READ.replace("%p", "%far"), start="0", step=1, result="0", end=BELOW)
    assert step_pointers(text) == text
    assert step_pointers("; nothing\n") == "; nothing\n"


def test_a_product_scales_no_index_in_its_innermost_loop():
    """Each step of the tile moves two pointers; the rest are vectors, loads and the test."""
    data = relay.var("x", shape=(32, 48))
    weight = relay.const(np.ones((64, 48), "float32"))
    library = relay.build(relay.Function([data], relay.nn.dense(data, weight)),
                          "llvm -mtriple=wasm32").lib  # fmt: skip
    text = library.get_source("ll")
    loops = re.findall(r"(?ms)^(loop\d+):.*?label %(loop\d+)", text)
    assert any(head == back for head, back in loops)
    inner = next(m[0] for m in re.finditer(r"(?ms)^(loop\d+):.*?^  br [^\n]*\n", text)
                 if "fmuladd" in m[0])  # fmt: skip
    assert inner.count("phi ptr") == 2
    assert not re.search(r"phi i32| = (mul|shl|add) ", inner)
