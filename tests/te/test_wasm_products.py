"""Instructions of WebAssembly on products of integers, in node."""

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from intrinsic_products import operands, product

import slipway as tvm
from slipway.ir.hardware import HARDWARE
from slipway.target import Target
from slipway.te.hardware import available, hardware_intrinsic

MODULE = Path(tvm.libinfo.find_js_path()[0]) / "slipway.mjs"
WASM = [name for name in HARDWARE if name.startswith("wasm.")]
RUN = """
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
const [module, folder] = process.argv.slice(2);
const { instantiate } = await import(pathToFileURL(module));
const found = {};
for (const [name, arrays] of Object.entries(JSON.parse(readFileSync(`${folder}/x.json`, "utf8")))) {
  const library = await instantiate(`${folder}/${name}.wasm`);
  const tensors = arrays.map((x) => library.empty(x.shape, x.dtype).copyFrom(x.values));
  library.systemLib().getFunction("main")(...tensors);
  found[name] = [...tensors.at(-1).toArray()];
}
console.log(JSON.stringify(found));
"""


def as_json(array, dtype):
    return {"shape": array.shape, "dtype": dtype, "values": array.ravel().tolist()}


def test_instructions(tmp_path):
    node = shutil.which("node")
    if node is None:
        pytest.skip("no node: apt-get install nodejs")
    given, wanted = {}, {}
    for name in WASM:
        for kind in ("llvm", "c"):
            entry, target = HARDWARE[name], Target(f"{kind} -mtriple=wasm32")
            assert name in available(target)
            schedule, args = product(entry, hardware_intrinsic(name, target))
            a, b, want = operands(entry, args)
            file = f"{name}_{kind}"
            tvm.build(schedule, args, target).export_library(str(tmp_path / f"{file}.wasm"))
            out = as_json(np.zeros(want.shape, "int32"), entry.c_dtype)
            given[file] = [as_json(a, entry.a_dtype), as_json(b, entry.b_dtype), out]
            wanted[file] = want
    (tmp_path / "x.json").write_text(json.dumps(given))
    (tmp_path / "run.mjs").write_text(RUN)
    command = [node, str(tmp_path / "run.mjs"), str(MODULE), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for file, found in json.loads(done.stdout).items():
        np.testing.assert_array_equal(np.reshape(found, wanted[file].shape), wanted[file], file)
