"""Seed 002, parts 6 and 7: cross-compile a model, export it, load it back, run it.

Exercise 1 too: a matmul through build, export, and a fresh process.
"""

import subprocess
import sys
from importlib.resources import files

import numpy as np
import onnx

import slipway as tvm
from slipway import relay, te
from slipway.contrib import graph_executor, utils

temp = utils.tempdir()

# 6. Cross-compilation for edge devices: here and for the board.
onnx_model = onnx.load(str(files("slipway") / "models" / "digits" / "digits.onnx"))
mod, params = relay.frontend.from_onnx(onnx_model, shape={"image": (1, 1, 8, 8)})

target = tvm.target.Target("llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72")
with tvm.transform.PassContext(opt_level=3):
    arm = relay.build(mod, target=target, params=params)
arm.export_library(temp.relpath("digits_arm.tar"))

with tvm.transform.PassContext(opt_level=3):
    lib = relay.build(mod, target="llvm", params=params)

# 7. Saving and loading: all in one file, in two formats.
with np.load(str(files("slipway") / "models" / "digits" / "digits_test.npz")) as stored:
    input_data, label, expected = stored["images"][:1], stored["labels"][0], stored["logits"][:1]

for name in ("model.tar", "model.so"):
    lib.export_library(temp.relpath(name))
    loaded = tvm.runtime.load_module(temp.relpath(name))
    dev = tvm.cpu(0)
    m = graph_executor.GraphModule(loaded["default"](dev))
    m.set_input("image", tvm.nd.array(input_data))
    m.run()
    output = m.get_output(0).numpy()
    assert output.argmax() == label
    np.testing.assert_allclose(output, expected, rtol=1e-4, atol=1e-4)

# Separate components.
graph_json, library, parameters = lib
with open(temp.relpath("graph.json"), "w") as f:
    f.write(lib.get_graph_json())
with open(temp.relpath("params.bin"), "wb") as f:
    f.write(relay.save_param_dict(lib.get_params()))
lib_path = temp.relpath("library.so")
lib.get_lib().export_library(lib_path)

loaded_lib = tvm.runtime.load_module(lib_path)
loaded_graph = open(temp.relpath("graph.json")).read()
loaded_params = bytearray(open(temp.relpath("params.bin"), "rb").read())
m = graph_executor.create(loaded_graph, loaded_lib, tvm.cpu(0))
m.load_params(loaded_params)
m.set_input("image", input_data)
m.run()
np.testing.assert_allclose(m.get_output(0).numpy(), expected, rtol=1e-4, atol=1e-4)

# Exercise 1: build, export, load in a fresh process, verify against NumPy.
k = te.reduce_axis((0, 48), name="k")
X = te.placeholder((32, 48), name="X")
Y = te.placeholder((48, 16), name="Y")
Z = te.compute((32, 16), lambda i, j: te.sum(X[i, k] * Y[k, j], axis=k), name="Z")
matmul = tvm.build(te.create_schedule(Z.op), [X, Y, Z], target="llvm", name="matmul")
matmul.export_library(temp.relpath("matmul.tar"))

fresh = """
import sys
import numpy as np
import slipway as tvm

matmul = tvm.runtime.load_module(sys.argv[1])
x = np.random.rand(32, 48).astype("float32")
y = np.random.rand(48, 16).astype("float32")
z = tvm.nd.empty((32, 16), "float32")
matmul["matmul"](tvm.nd.array(x), tvm.nd.array(y), z)
np.testing.assert_allclose(z.numpy(), x @ y, rtol=1e-4)
"""
subprocess.run([sys.executable, "-c", fresh, temp.relpath("matmul.tar")], check=True)
