"""`tvmc.run`: a package on this machine or on a device."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from slipway.driver.tvmc.model import TVMCException, TVMCPackage, TVMCResult
from slipway.errors import did_you_mean
from slipway.rpc.client import connect
from slipway.rpc.tracker_client import connect_tracker
from slipway.runtime.devices import device as device_of
from slipway.runtime.graph.graph_executor import GraphModule

FILL_MODES = ("random", "zeros", "ones", "range")


def run_module(
    tvmc_package: TVMCPackage,
    device: str,
    hostname: str | None = None,
    port: int | str = 9090,
    rpc_key: str | None = None,
    inputs: Mapping[str, Any] | None = None,
    fill_mode: str = "random",
    benchmark: bool = False,
    repeat: int = 10,
    number: int = 10,
    profile: bool = False,
    end_to_end: bool = False,
    options: Mapping[str, Any] | None = None,
) -> TVMCResult:
    """Run a package; `inputs` that are not given are filled as `fill_mode` says.

    With `hostname` it runs on the server there, or, with `rpc_key`, on a device of that key that
    the tracker there gives.  `benchmark` takes times, `profile` prints those of each layer.
    """
    if not isinstance(tvmc_package, TVMCPackage):
        raise TVMCException(
            f"tvmc.run takes what tvmc.compile gives, not a {type(tvmc_package).__name__}"
        )
    _check_fill_mode(fill_mode)
    if options:
        raise TVMCException(
            f"tvmc.run takes no options here ({', '.join(options)}): they are those of projects "
            "for microcontrollers, which `slipway micro run` has"
        )
    path = Path(tvmc_package.lib_path)
    if hostname:
        session = (
            connect_tracker(hostname, int(port)).request(rpc_key)
            if rpc_key
            else connect(hostname, int(port))
        )
        session.upload(str(path))
        library: Any = session.load_module(path.name)
        device_used: Any = session.device(device, 0)
    else:
        library, device_used = tvmc_package.module(), device_of(device, 0)
    module = GraphModule(library["default"](device_used))
    shapes, kinds = module.get_input_info()
    for name, value in make_inputs_dict(shapes, kinds, inputs, fill_mode).items():
        module.set_input(name, value)
    times: Any = []
    if profile:
        for layer, function, seconds in module.profile(number, repeat):
            print(f"{seconds * 1e6:12.1f} us  {layer}  {function}")
    if benchmark:
        times = module.benchmark(device_used, repeat=repeat, number=number, end_to_end=end_to_end)
    else:
        module.run()
    count = module.get_num_outputs()
    return TVMCResult({f"output_{i}": module.get_output(i).numpy() for i in range(count)}, times)


def make_inputs_dict(
    shape_dict: Mapping[str, tuple[int, ...]],
    dtype_dict: Mapping[str, str],
    inputs: Mapping[str, Any] | None = None,
    fill_mode: str = "random",
) -> dict[str, Any]:
    """Return a value of each input: what is given in `inputs`, or one as `fill_mode` says."""
    for name in inputs or {}:
        if name not in shape_dict:
            raise TVMCException(
                f"the model has no input {name!r}; it has {', '.join(shape_dict)}."
                f"{did_you_mean(name, shape_dict)}"
            )
    return {
        name: generate_tensor_data(shape, dtype_dict[name], fill_mode)
        if (given := (inputs or {}).get(name)) is None
        else given
        for name, shape in shape_dict.items()
    }


def _check_fill_mode(fill_mode: str) -> None:
    if fill_mode not in FILL_MODES:
        raise TVMCException(
            f"fill_mode is {fill_mode!r}, not one of {', '.join(FILL_MODES)}."
            f"{did_you_mean(fill_mode, FILL_MODES)}"
        )


def generate_tensor_data(
    shape: tuple[int, ...], dtype: str, fill_mode: str
) -> np.ndarray[Any, Any]:
    """Return an array filled as `fill_mode` says: random, zeros, ones or range."""
    _check_fill_mode(fill_mode)
    if fill_mode in ("zeros", "ones"):
        return np.full(shape, fill_mode == "ones", dtype)
    if fill_mode == "range":
        return np.arange(int(np.prod(shape))).reshape(shape).astype(dtype)
    generator = np.random.default_rng(0)
    if np.dtype(dtype).kind == "f":
        return generator.random(shape).astype(dtype)
    return generator.integers(0, 2 if dtype == "bool" else 128, shape).astype(dtype)
