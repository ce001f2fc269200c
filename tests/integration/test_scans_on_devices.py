"""Recurrent layers as loops on other processors: emulated, against NumPy."""

import numpy as np
import pytest
from aot_models import recurrent_net

from slipway import relay
from slipway.contrib import graph_executor


@pytest.mark.parametrize(
    "architecture",
    ["aarch64", *(pytest.param(a, marks=pytest.mark.long) for a in ("armv7", "riscv64"))],
)
def test_a_loop_of_steps_on_a_device(architecture, device, tmp_path):
    remote, target = device(architecture)
    mod, data, wanted = recurrent_net()
    relay.build(mod, target=target).export_library(tmp_path / "scan.tar")
    remote.upload(tmp_path / "scan.tar")
    loaded = remote.load_module("scan.tar")
    module = graph_executor.GraphModule(loaded["default"](remote.cpu(0)))
    module.run(x=data)
    np.testing.assert_allclose(module.get_output(0).numpy(), wanted, rtol=0, atol=1e-6)
