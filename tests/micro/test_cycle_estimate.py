"""Cycles of a Cortex-M4's instructions, as its technical reference manual has them."""

import pytest
from benchmarks.micro_cycles import cycles_of, registers_in


@pytest.mark.parametrize(
    ("name", "operands", "before", "executed", "taken", "cycles"),
    [
        ("smlad", "r0, r1, r2, r0", "ldr", 10, 0, 10),
        ("ldr.w", "r3, [r0], #4", "smlad", 10, 0, 20),
        ("ldr", "r3, [r0, #4]", "ldr.w", 10, 0, 10),  # behind another one
        ("ldrsb.w", "r3, [r0, #4]", "add", 10, 0, 20),
        ("str", "r3, [r0, #4]", "add", 10, 0, 10),
        ("ldrd", "r3, r4, [r0], #8", "add", 10, 0, 30),
        ("ldmia.w", "r0!, {r3, r4, r8-r11}", "add", 10, 0, 70),
        ("pop", "{r4, r5, pc}", "add", 1, 1, 6),
        ("bne.n", "1c <loop>", "subs", 10, 9, 19),
        ("bic.w", "r0, r0, #1", "add", 10, 0, 10),  # no branch
        ("bl", "200 <f>", "add", 10, 10, 20),
        ("bx", "lr", "add", 1, 1, 3),
        ("vfma.f32", "s0, s1, s2", "vldr", 10, 0, 30),
        ("vdiv.f32", "s0, s1, s2", "vldr", 1, 0, 14),
    ],
)
def test_an_instruction_takes_what_the_manual_says(name, operands, before, executed, taken, cycles):
    assert cycles_of(name, operands, before, executed, taken) == cycles


def test_registers_of_a_list_are_counted():
    assert registers_in("sp!, {r4, r5, r8-r11, lr}") == 7
    assert registers_in("r0, [r1]") == 0
