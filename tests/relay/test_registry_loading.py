"""The registry is complete for who asks, whatever has been imported, in every thread."""

import subprocess
import sys

import pytest

THREADS = """
import sys, threading
sys.setswitchinterval(1e-5)
from slipway.relay import op_registry
names = ["nn.conv2d", "add", "nn.softmax", "cast", "sum", "nn.relu", "nn.dense", "scan"] * 2
found = {}

def ask(number, name):
    found[number] = op_registry.get(name).missing_parts()

threads = [threading.Thread(target=ask, args=pair) for pair in enumerate(names)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert found == {n: [] for n in range(len(names))}, found
"""
# A family that is imported first may ask for operators of others while it loads.
FAMILY = """
import slipway.relay.ops.{}
from slipway.relay import op_registry
assert op_registry.get("nn.conv2d").missing_parts() == []
assert len(op_registry.load_ops()) > 100
"""


@pytest.mark.parametrize(
    "program", [THREADS, *(FAMILY.format(name) for name in ("tensor.scan", "nn.conv", "qnn.conv"))]
)
def test_loading(program):
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)
