"""Integer products as WebAssembly, in node: instructions for pairs where there are vectors."""

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import slipway as tvm
from slipway import relay
from slipway.relay import op_registry
from slipway.relay.ops.qnn.conv import IntegerConvAttrs

MODULE = Path(tvm.libinfo.find_js_path()[0]) / "slipway.mjs"
FEATURES = {"simd": "", "relaxed": " -mattr=+relaxed-simd", "plain": " -mattr=-simd128"}
CONV, DEPTHWISE = "qnn.conv2d_nhwc", "qnn.depthwise_conv2d_nhwc"
CASES = {
    "window": (CONV, (1, 9, 7, 6), (3, 3, 6, 24), {"padding": (1, 1, 1, 1), "pad_value": -5}),
    "odd": (CONV, (1, 5, 5, 17), (1, 1, 17, 13), {"strides": (2, 2)}),
    "winograd": (CONV, (1, 12, 12, 32), (3, 3, 32, 32), {"padding": (1, 1, 1, 1)}),
    "row": (CONV, (1, 1, 1, 70), (1, 1, 70, 40), {}),
    "depthwise": (DEPTHWISE, (1, 9, 8, 24), (3, 3, 24), {"padding": (0, 1, 1, 0)}),
    "narrow": (DEPTHWISE, (1, 9, 8, 5), (3, 2, 5), {"strides": (2, 2), "pad_value": 3}),
}
RUN = """
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
const [module, folder] = process.argv.slice(2);
const { load } = await import(pathToFileURL(module));
const found = {};
for (const [name, x] of Object.entries(JSON.parse(readFileSync(`${folder}/inputs.json`, "utf8")))) {
  const model = await load(`${folder}/${name}.wasm`);
  found[name] = [...(await model.run({ x: Int8Array.from(x) })).output];
}
console.log(JSON.stringify(found));
"""


def bytes_of(rng, shape):
    """Bytes with the smallest and the largest where each of their products is."""
    made = rng.integers(-128, 128, shape).astype("int8")
    made.reshape(-1)[: made.size // 2 : 3] = -128
    made.reshape(-1)[1 : made.size // 2 : 5] = 127
    return made


def test_sums_are_exact(tmp_path):
    node = shutil.which("node")
    if node is None:
        pytest.skip("no node: apt-get install nodejs")
    rng = np.random.default_rng(3)
    inputs, wanted = {}, {}
    for case, (name, data, weight, options) in CASES.items():
        definition, attrs = op_registry.get(name), IntegerConvAttrs(**options)
        kernel, values = bytes_of(rng, weight), bytes_of(rng, data)
        x = relay.var("x", shape=data, dtype="int8")
        function = relay.Function([x], definition(x, relay.const(kernel), attrs=attrs))
        for features, flags in FEATURES.items():
            lib = relay.build(tvm.IRModule.from_expr(function), f"llvm -mtriple=wasm32{flags}")
            is_packed = features != "plain" and case != "narrow"  # than a vector
            assert ("contrib" in lib.get_graph_json()) == is_packed, case
            if is_packed and name == CONV and case != "winograd":  # a page fetches them
                (held,) = lib.get_params().values()
                assert held.dtype == "int8", case
            lib.export_library(str(tmp_path / f"{case}_{features}.wasm"))
            inputs[f"{case}_{features}"] = values.ravel().tolist()
            wanted[f"{case}_{features}"] = definition.evaluate(attrs, values, kernel)
    (tmp_path / "inputs.json").write_text(json.dumps(inputs))
    (tmp_path / "run.mjs").write_text(RUN)
    command = [node, "--experimental-wasm-relaxed-simd", str(tmp_path / "run.mjs")]
    done = subprocess.run(
        [*command, str(MODULE), str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    for name, want in wanted.items():
        np.testing.assert_array_equal(np.reshape(found[name], want.shape), want, err_msg=name)
