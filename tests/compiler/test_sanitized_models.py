"""Quantised models under Address- and UndefinedBehaviorSanitizer, from a misaligned caller."""

import json
import shutil
import subprocess

import pytest
from aot_models import build

from slipway import relay

FAMILIES = {
    "dsp": "c -keys=arm_cpu -mcpu=cortex-m4",
    "mve": "c -keys=arm_cpu -mcpu=cortex-m55",
    "scalar": "c -mtriple=riscv32-unknown-none-elf -mattr=+m",
}
MODELS = (
    "kws_ref_model", "vww_96_int8", "pretrainedResnet_quant", "ad01_int8", "str_ww_ref_model",
    "micro_speech_quantized", "person_detect", "hello_world_int8",
)  # fmt: skip
QUICK = [("hello_world_int8", "dsp"), ("micro_speech_quantized", "scalar")]
SLOW = [(m, f) for m in MODELS for f in FAMILIES if (m, f) not in QUICK]

# The memory begins one byte before the input and ends with it; so does the output's.
MAIN = """
#include "tvmgen_default.h"
#include <stdio.h>
#include <stdlib.h>
int main(void) {
  for (uint32_t seed = 1; seed <= 2; ++seed) {
    uint32_t state = seed;
    uint8_t *in = malloc(@IN@ + 1);
    uint8_t *out = malloc(@OUT@ + 1);
    for (int i = 0; i < @IN@; ++i) {
      state = state * 1664525u + 1013904223u;
      in[1 + i] = (uint8_t)(state >> 24);
    }
    struct tvmgen_default_inputs inputs = {in + 1};
    struct tvmgen_default_outputs outputs = {out + 1};
    if (tvmgen_default_run(&inputs, &outputs) != 0) return 1;
    for (int i = 0; i < @OUT@; ++i) printf("%02x", out[1 + i]);
    printf("\\n");
    free(in);
    free(out);
  }
  return 0;
}
"""


def check(name, family, shared, folder):
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    models = shared / "models" / "tflite"
    lib = build(
        relay.frontend.from_tflite((models / f"{name}.tflite").read_bytes()), FAMILIES[family]
    )
    (data,), (output,) = lib.program.inputs, lib.program.outputs
    assert data.type.dtype in ("int8", "uint8")
    (folder / lib.sources.header_name).write_text(lib.sources.header)
    (folder / lib.sources.source_name).write_text(lib.sources.source)
    main = MAIN.replace("@IN@", str(data.type.size_bytes))
    (folder / "main.c").write_text(main.replace("@OUT@", str(output.type.size_bytes)))
    flags = ["-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", f"-I{folder}"]
    files = [folder / "main.c", folder / lib.sources.source_name]
    subprocess.run(["gcc", *flags, "-o", folder / "main", *files], check=True)
    done = subprocess.run(
        [folder / "main"], capture_output=True, text=True, env={"ASAN_OPTIONS": "detect_leaks=0"}
    )
    assert done.returncode == 0, done.stderr[-2000:]
    golden = json.loads((models / "golden_tflm.json").read_text())["models"][f"{name}.tflite"]
    assert done.stdout.split() == [golden["outputs"]["1"], golden["outputs"]["2"]]


@pytest.mark.parametrize(("name", "family"), QUICK)
def test_model_is_clean_and_exact(name, family, shared, tmp_path):
    check(name, family, shared, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize(("name", "family"), SLOW)
def test_every_model_of_every_family_is_clean_and_exact(name, family, shared, tmp_path):
    check(name, family, shared, tmp_path)
