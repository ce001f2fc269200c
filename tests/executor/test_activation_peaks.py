"""The arenas of the TFLite models, inputs and outputs included, beside TFLM's activation peaks."""

import pytest
from aot_models import build

from slipway import relay
from slipway.executor.memory_plan import check_plan

ACTIVATION_PEAKS = {
    "kws_ref_model": 16_000,
    "vww_96_int8": 55_296,
    "pretrainedResnet_quant": 49_152,
    "ad01_int8": 768,
    "str_ww_ref_model": 6_656,
    "micro_speech_quantized": 5_960,
    "person_detect": 55_296,
}
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
