"""A page of one's own that runs a model: `index.html`, the runtime, and the digits as WebAssembly.

python examples/web/build.py --out page
python -m http.server --directory page
"""

import argparse
import shutil
from pathlib import Path

import onnx

import slipway as tvm
from slipway import relay

parser = argparse.ArgumentParser()
parser.add_argument("--out", type=Path, required=True)
folder = parser.parse_args().out
folder.mkdir(parents=True, exist_ok=True)

model = Path(tvm.__file__).parent / "models" / "digits" / "digits.onnx"
module, parameters = relay.frontend.from_onnx(onnx.load(model))
with tvm.transform.PassContext(opt_level=3):
    library = relay.build(module, "llvm -mtriple=wasm32", params=parameters)
library.export_library(str(folder / "digits.wasm"))
shutil.copy(Path(tvm.libinfo.find_js_path()[0]) / "slipway.mjs", folder)
shutil.copy(Path(__file__).parent / "index.html", folder)
