"""Seed 001, "Cross-Compilation & Edge Deployment": targets, tiny models, AOT against graph, USMP.

The example model takes the place of mobilenet_v2.onnx, and `cc=` is named only where the cross
compiler is installed.  Tuning, the tracker and boards have scripts of their own.
"""

import os
import tarfile
from importlib.resources import files

import numpy as np
import onnx

import slipway as tvm
from slipway import relay
from slipway.contrib import graph_executor, utils
from slipway.micro import export_model_library_format

temp = utils.tempdir()
gcc = "/usr/bin/aarch64-linux-gnu-gcc"
cross = {"cc": gcc} if os.path.exists(gcc) else {}

# Target strings.
target_rpi4 = tvm.target.Target(
    "llvm -device=arm_cpu -mtriple=aarch64-linux-gnu -mattr=+neon,+fp-armv8,+crc"
)
target_jetson_gpu = tvm.target.Target("cuda -arch=sm_53")
target_jetson_cpu = tvm.target.Target(
    "llvm -device=arm_cpu -mtriple=aarch64-linux-gnu -mattr=+neon"
)
target_m4 = tvm.target.Target(
    "c -keys=arm_cpu -mcpu=cortex-m4 -march=armv7e-m "
    "-mfloat-abi=hard -mfpu=fpv4-sp-d16 -runtime=c -system-lib"
)
target_hexagon = tvm.target.Target("hexagon -mcpu=v68")
kinds = [t.kind.name for t in (target_rpi4, target_jetson_gpu, target_m4, target_hexagon)]
assert kinds == ["llvm", "cuda", "c", "hexagon"]

# 1. Load the model on the host, 2. define the target, 3. compile, 4. export.
onnx_model = onnx.load(str(files("slipway") / "models" / "digits" / "digits.onnx"))
mod, params = relay.frontend.from_onnx(onnx_model, shape={"image": (1, 1, 8, 8)})
target = tvm.target.Target("llvm -device=arm_cpu -mtriple=aarch64-linux-gnu -mattr=+neon")
with tvm.transform.PassContext(opt_level=3):
    lib = relay.build(mod, target=target, params=params)
lib.export_library(temp.relpath("digits_rpi4.tar"), **cross)

# AOT compilation with static memory planning.
with tvm.transform.PassContext(opt_level=3):
    executor = relay.backend.Executor("aot", {"unpacked-api": True, "interface-api": "packed"})
    runtime = relay.backend.Runtime("crt")
    lib = relay.build(mod, target=target_m4, params=params, executor=executor, runtime=runtime)
export_model_library_format(lib, temp.relpath("digits_m4.tar"))
with tarfile.open(temp.relpath("digits_m4.tar")) as archive:
    names = archive.getnames()
assert any("codegen/host/src" in name for name in names), names
assert any(name.endswith("metadata.json") for name in names), names

# Exercise 1: cross-compile a small model without a device.
x = relay.var("x", shape=(1, 64), dtype="float32")
w = relay.var("w", shape=(10, 64), dtype="float32")
y = relay.nn.dense(x, w)
y = relay.nn.softmax(y)
mod = tvm.IRModule.from_expr(y)
target = tvm.target.Target("llvm -mtriple=aarch64-linux-gnu -mattr=+neon")
with tvm.transform.PassContext(opt_level=3):
    lib = relay.build(mod, target=target)
lib.export_library(temp.relpath("tiny_model_arm.so"), **cross)
with open(temp.relpath("tiny_model_arm.so"), "rb") as file:
    assert file.read(20)[18] == 183  # EM_AARCH64
print("Cross-compiled for ARM64")

# The same model here, for its numbers.
lib = relay.build(mod, target="llvm")
m = graph_executor.GraphModule(lib["default"](tvm.cpu(0)))
xs = np.random.rand(1, 64).astype("float32")
ws = np.random.rand(10, 64).astype("float32")
m.set_input(x=xs, w=ws)
m.run()
product = np.exp(xs @ ws.T - (xs @ ws.T).max())
np.testing.assert_allclose(m.get_output(0).numpy(), product / product.sum(), rtol=1e-4)

# Exercise 2: the two executors for a keyword-spotting model.
data = relay.var("data", shape=(1, 1, 49, 10), dtype="float32")  # MFCC features
conv = relay.nn.conv2d(
    data, relay.var("w1", shape=(16, 1, 3, 3)), padding=(1, 1), channels=16, kernel_size=(3, 3)
)
pool = relay.nn.global_avg_pool2d(conv)
flat = relay.nn.batch_flatten(pool)
dense = relay.nn.dense(flat, relay.var("w2", shape=(12, 16)))  # 12 keywords
out = relay.nn.softmax(dense)
mod = tvm.IRModule.from_expr(out)

target = tvm.target.Target("c -keys=arm_cpu -mcpu=cortex-m4")

with tvm.transform.PassContext(opt_level=3):
    lib_graph = relay.build(mod, target=target)

with tvm.transform.PassContext(opt_level=3):
    executor = relay.backend.Executor("aot", {"unpacked-api": True})
    runtime = relay.backend.Runtime("crt")
    lib_aot = relay.build(mod, target=target, executor=executor, runtime=runtime)

# Exercise 3: what USMP saves.
for algorithm in ("hill_climb", "greedy_by_size", "greedy_by_conflicts"):
    with tvm.transform.PassContext(
        opt_level=3,
        config={
            "tir.usmp.enable": True,
            "tir.usmp.algorithm": algorithm,
            "tir.disable_vectorize": True,
        },
    ):
        lib = relay.build(
            mod,
            target=target,
            executor=relay.backend.Executor("aot"),
            runtime=relay.backend.Runtime("crt"),
        )
    export_model_library_format(lib, temp.relpath(f"{algorithm}.tar"))
