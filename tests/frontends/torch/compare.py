"""A PyTorch module and its import, compared."""

import warnings

import numpy as np
import torch

import slipway
from slipway import relay
from slipway.contrib import graph_executor
from slipway.relay.interpret import interpret

torch.set_num_threads(1)


def infos_of(inputs):
    """Return input_infos for example tensors."""
    return [
        (f"x{i}", (tuple(x.shape), str(x.dtype).removeprefix("torch.")))
        for i, x in enumerate(inputs)
    ]


def expected(module, inputs):
    """Return torch's results as a list of arrays."""
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = module(*inputs)
    found = [found] if isinstance(found, torch.Tensor) else list(found)
    return [x.resolve_conj().resolve_neg().numpy() for x in found]


def interpreted(module, inputs):
    """Return the results of the imported module, by the reference interpreter."""
    mod, _ = relay.frontend.from_pytorch(module, infos_of(inputs))
    found = interpret(mod, *(x.numpy() for x in inputs))
    return list(found) if isinstance(found, tuple) else [found]


def compiled(module, inputs):
    """Return the results of the imported module, compiled for this machine."""
    mod, params = relay.frontend.from_pytorch(module, infos_of(inputs))
    with slipway.transform.PassContext(opt_level=3):
        library = relay.build(mod, target="llvm", params=params)
    run = graph_executor.GraphModule(library["default"](slipway.cpu(0)))
    for i, x in enumerate(inputs):
        run.set_input(f"x{i}", x.numpy())
    run.run()
    return [run.get_output(i).numpy() for i in range(run.get_num_outputs())]


def assert_same(found, wanted, tolerance=1e-4):
    """Each result must be that of torch, to `tolerance` of its largest value."""
    assert len(found) == len(wanted)
    for index, (one, two) in enumerate(zip(found, wanted, strict=True)):
        assert one.shape == two.shape, index
        assert one.dtype == two.dtype, index
        if two.dtype.kind != "f":
            np.testing.assert_array_equal(one, two, err_msg=f"result {index}")
            continue
        scale = max(float(np.max(np.abs(two[np.isfinite(two)]), initial=0)), 1e-30)
        np.testing.assert_allclose(
            one, two, rtol=tolerance, atol=tolerance * scale, err_msg=f"result {index}"
        )
