"""Turn the digits model into a bundle: two C files, for bundle_static.c and bundle_dynamic.c.

python build_model.py FOLDER
"""

import sys
from pathlib import Path

import slipway as tvm
from slipway import relay

folder = Path(sys.argv[1])
model = Path(tvm.__file__).parent / "models" / "digits" / "digits.onnx"
mod, params = relay.frontend.from_onnx(model)
with tvm.transform.PassContext(opt_level=3):
    lib = relay.build(
        mod,
        target="c -keys=arm_cpu -mcpu=cortex-m4",
        params=params,
        executor=relay.backend.Executor("aot", {"unpacked-api": True, "interface-api": "c"}),
        runtime=relay.backend.Runtime("crt"),
        mod_name="digits",
    )
folder.mkdir(parents=True, exist_ok=True)
(folder / lib.sources.header_name).write_text(lib.sources.header)
(folder / lib.sources.source_name).write_text(lib.sources.source)
print(f"{folder}: {lib.sources.header_name}, {lib.sources.source_name}")
