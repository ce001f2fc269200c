"""The example of an operator in relay/op_registry.py, put into a copy of the package."""

import os
import shutil
import subprocess
import sys
import textwrap

from slipway.relay import op_registry

USE = """
import numpy as np, slipway as tvm
from slipway import relay
from slipway.relay import op_registry

assert "nn.recipe_relu" in op_registry.load_ops()
x = np.linspace(-2, 2, 24, dtype="float32").reshape(4, 6)
data = relay.var("data", shape=(4, 6), dtype="float32")
body = relay.nn.recipe_relu(relay.add(data, data), 0.5)
module = tvm.IRModule.from_expr(relay.Function([data], body))
wanted = np.where(x > 0, 2 * x, x)
for target in ("llvm", "c"):
    library = relay.build(module, target=target)
    run = tvm.contrib.graph_executor.GraphModule(library["default"](tvm.cpu(0)))
    run.set_input("data", x)
    run.run()
    np.testing.assert_allclose(run.get_output(0).numpy(), wanted, rtol=1e-6)
"""


def test_an_operator_is_one_section(repository, tmp_path):
    """In a copy of the package: the section, and the page that is generated of it."""
    shutil.copytree(
        repository / "src" / "slipway", tmp_path / "src" / "slipway",
        ignore=shutil.ignore_patterns("__pycache__"),
    )  # fmt: skip
    section = op_registry.__doc__.partition("reads::\n")[2].partition("\n\nThe type relation")[0]
    section = textwrap.dedent(section).replace("leaky_relu", "recipe_relu")
    section = section.replace("LEAKY_RELU", "RECIPE_RELU").replace("LeakyRelu", "RecipeRelu")
    family = tmp_path / "src" / "slipway" / "relay" / "ops" / "tensor" / "unary.py"
    text = family.read_text(encoding="utf-8")
    family.write_text(f"{text}\n\n{section}\n", encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "src")}
    subprocess.run([sys.executable, "-c", USE], env=environment, cwd=tmp_path, check=True)
