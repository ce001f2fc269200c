"""The arenas of the TFLite models, inputs and outputs included, beside TFLM's activation peaks."""

import pytest
from aot_models import build
from benchmarks.memory import ACTIVATION_PEAKS

from slipway import relay
from slipway.compiler.memory_plan import check_plan

TARGETS = {
    "dsp": "c -keys=arm_cpu -mcpu=cortex-m4",
    "mve": "c -keys=arm_cpu -mcpu=cortex-m55",
    "scalar": "c -mtriple=riscv32-unknown-none-elf -mattr=+m",
}
QUICK = ("ad01_int8", "micro_speech_quantized")


@pytest.mark.parametrize("family", TARGETS)
@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=() if n in QUICK else pytest.mark.long) for n in ACTIVATION_PEAKS],
)
def test_arena_is_at_or_under_the_activation_peak(name, family, shared):
    model = relay.frontend.from_tflite(
        (shared / "models" / "tflite" / f"{name}.tflite").read_bytes()
    )
    config = {"tir.usmp.enable": True, "tir.usmp.use_workspace_io": True}
    plan = build(model, TARGETS[family], config=config).program.plan
    check_plan(plan)
    assert plan.size_bytes <= ACTIVATION_PEAKS[name]
