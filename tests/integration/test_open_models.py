"""One file for every size: models of detection, language and speech, as graph and as program.

Each is compiled once, packed into one `.tar`, and run at several sizes here and on devices.
"""

import numpy as np
import pytest

from slipway import relay, rpc
from slipway.contrib.graph_executor import GraphModule
from slipway.relay.backend import Executor

pytest.importorskip("onnx")
import open_models

HEAVY = ("bert", "whisper", "mobile_net")
EVERY = ("detector", "two_stages", "beam_search", *HEAVY)


def used(mod, module):
    """Return the outputs, those with a count cut to it."""
    main = mod["main"]
    found = [module.get_output(i).numpy() for i in range(module.get_num_outputs())]
    counted = dict(main.attr("counted_outputs") or ())
    named = dict(zip(main.attr("output_names") or range(len(found)), found, strict=True))
    parts = []
    for name, value in named.items():
        if name in counted:
            parts.append(value.take(range(int(named[f"{name}.count"][0])), axis=counted[name]))
        elif not str(name).endswith(".count"):
            parts.append(value)
    return parts


def agrees(name, executor, target, remote, folder):
    if name in HEAVY:
        pytest.importorskip("torch")
    if name == "two_stages":
        pytest.importorskip("onnxruntime")
    if name in ("bert", "whisper"):
        pytest.importorskip("transformers")
    mod, params, feeds, reference = getattr(open_models, name)()
    path = folder / f"{name}_{executor}.tar"
    relay.build(mod, target=target, params=params, executor=Executor(executor)).export_library(path)
    remote.upload(path)
    module = GraphModule(remote.load_module(path.name)["default"](remote.cpu(0)))
    for given in feeds:
        module.run(**given)
        for found, want in zip(used(mod, module), reference(given), strict=True):
            assert found.shape == want.shape
            np.testing.assert_allclose(found, want, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("executor", ["graph", "aot"])
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.long) if n in HEAVY else n for n in EVERY]
)
def test_one_file_runs_every_size_over_a_session(name, executor, tmp_path):
    agrees(name, executor, "llvm", rpc.LocalSession(), tmp_path)


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("executor", ["graph", "aot"])
@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("architecture", ["aarch64", "armv7", "riscv64"])
def test_one_file_runs_every_size_on_a_device(architecture, name, executor, device, tmp_path):
    remote, target = device(architecture)
    agrees(name, executor, target, remote, tmp_path)
