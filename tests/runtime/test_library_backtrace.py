"""An error is reported although the file numbers of loaded libraries belong to other files now."""

import subprocess
import sys

SCRIPT = """
import tempfile
import numpy as np
import slipway as tvm
from slipway import relay, te
from slipway.relay.dims import Dim
from slipway.runtime.graph_executor import GraphModule

a = te.placeholder((8,), name="a")
b = te.compute((8,), lambda i: a[i] + 1.0)
f = tvm.build(te.create_schedule(b.op), [a, b], "llvm")
x = tvm.nd.array(np.zeros(8, "float32"))
f(x, x)
rows = relay.var("rows", shape=(Dim("n", 1, 3), 4))
built = relay.build(tvm.IRModule.from_expr(relay.nn.relu(rows)), "llvm")
executor = GraphModule(built["default"](tvm.cpu()))
files = [tempfile.TemporaryFile() for _ in range(64)]  # empty, under the lowest free numbers
for use in (
    lambda: tvm.nd.array(np.zeros(8, "float32"), tvm.cuda(99)),
    lambda: f(x, tvm.nd.array(np.zeros(3, "float32"))),
    lambda: executor.set_input("rows", np.zeros((4, 4), "float32")),  # n is at most 3
):
    try:
        use()
    except tvm.TVMError as error:
        print(type(error).__name__)
"""


def test_a_backtrace_does_not_read_another_file():
    """It looks every library up under its path, and reading an empty file ends the process."""
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True)
    assert done.returncode == 0, f"exit {done.returncode}: {done.stderr[-500:]}"
    assert done.stdout.split() == ["DeviceError", "ArgumentValueError", "ExecutionError"]
