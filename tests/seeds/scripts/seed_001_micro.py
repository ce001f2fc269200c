"""Seed 001, microcontrollers: its scripts in its words; flashing needs a board and is left out."""

import os
import pathlib
import shutil

import numpy as np

import slipway as tvm
from slipway import relay
from slipway.micro import export_model_library_format

# A keyword-spotting-sized model, as in the seed's exercise.
data = relay.var("data", shape=(1, 1, 49, 10), dtype="float32")  # MFCC features
conv = relay.nn.conv2d(
    data, relay.var("w1", shape=(16, 1, 3, 3)), padding=(1, 1), channels=16, kernel_size=(3, 3)
)
pool = relay.nn.global_avg_pool2d(conv)
flat = relay.nn.batch_flatten(pool)
dense = relay.nn.dense(flat, relay.var("w2", shape=(12, 16)))  # 12 keywords
out = relay.nn.softmax(dense)
mod = tvm.IRModule.from_expr(out)
rng = np.random.default_rng(0)
params = {
    "w1": rng.standard_normal((16, 1, 3, 3)).astype("float32"),
    "w2": rng.standard_normal((12, 16)).astype("float32"),
}

# Cortex-M4 microcontroller (no OS, Thumb-2 ISA)
target_m4 = tvm.target.Target(
    "c -keys=arm_cpu -mcpu=cortex-m4 -march=armv7e-m "
    "-mfloat-abi=hard -mfpu=fpv4-sp-d16 -runtime=c -system-lib"
)

# AOT compilation with static memory planning
with tvm.transform.PassContext(opt_level=3):
    executor = relay.backend.Executor(
        "aot",
        {
            "unpacked-api": True,  # Simple C calling convention
            "interface-api": "packed",  # or "c" for minimal runtime
        },
    )
    runtime = relay.backend.Runtime("crt")  # C Runtime (no libc needed)
    lib = relay.build(mod, target=target_m4, params=params, executor=executor, runtime=runtime)

# Graph executor build
target = tvm.target.Target("c -keys=arm_cpu -mcpu=cortex-m4")
with tvm.transform.PassContext(opt_level=3):
    lib_graph = relay.build(mod, target=target, params=params)
assert lib_graph.get_graph_json()

# Enable the USMP (Unified Static Memory Planner)
sizes = {}
for algorithm in ("hill_climb", "greedy_by_size"):
    with tvm.transform.PassContext(
        opt_level=3,
        config={
            "tir.usmp.enable": True,
            "tir.usmp.algorithm": algorithm,
            "tir.disable_vectorize": True,
        },
    ):
        planned = relay.build(
            mod,
            target=target,
            params=params,
            executor=relay.backend.Executor("aot"),
            runtime=relay.backend.Runtime("crt"),
        )
    sizes[algorithm] = planned.program.workspace_bytes
assert all(size > 0 for size in sizes.values())
print("Memory pools allocated:", sizes)

# Load a tiny model (e.g. keyword spotting, 50 KB), where one is at hand.
beside = pathlib.Path(__file__).parents[4] / "shared"
shared = pathlib.Path(os.environ.get("SLIPWAY_SHARED", beside))
model_file = shared / "models" / "tflite" / "kws_ref_model.tflite"
if model_file.is_file():
    mod, params = relay.frontend.from_tflite(model_file.read_bytes())
    with tvm.transform.PassContext(opt_level=3):
        executor = relay.backend.Executor("aot", {"unpacked-api": True})
        runtime = relay.backend.Runtime("crt")
        lib = relay.build(mod, target=target, params=params, executor=executor, runtime=runtime)

# Export as Model Library Format
export_model_library_format(lib, "keyword_spotting.tar")
assert pathlib.Path("keyword_spotting.tar").stat().st_size > 1000

# Generate Arduino project
from slipway.micro.project_api.client import ProjectAPIClient  # noqa: E402

assert ProjectAPIClient
project = tvm.micro.generate_project(
    template_dir="arduino",  # or "zephyr"
    module=lib,
    generated_project_dir="./arduino_project",
    options={"board": "nano33ble", "project_type": "example_project"},
)
assert pathlib.Path("arduino_project/arduino_project.ino").is_file()
if shutil.which("arduino-cli"):
    project.build()
