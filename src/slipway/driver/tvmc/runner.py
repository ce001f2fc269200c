"""`tvmc.run`: a package on this machine or on a device."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from slipway.driver.tvmc.model import TVMCException, TVMCPackage, TVMCResult
from slipway.errors import did_you_mean
from slipway.micro.project import GeneratedProject
from slipway.micro.session import (
    Session,
    create_local_aot_executor,
    create_local_graph_executor,
)
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
    the tracker there gives; the device "micro" is the board of the package's project, and `options`
    are that project's.  `benchmark` takes times, `profile` prints those of each layer.
    """
    if not isinstance(tvmc_package, TVMCPackage):
        raise TVMCException(
            f"tvmc.run takes what tvmc.compile gives, not a {type(tvmc_package).__name__}"
        )
    _check_fill_mode(fill_mode)
    if device == "micro":
        if hostname or benchmark or profile:
            raise TVMCException(
                "a microcontroller is run without rpc_key, hostname, benchmark and profile: "
                "`slipway micro run` takes cycles, `slipway profile` layers"
            )
        return _run_project(tvmc_package, inputs, fill_mode, options)
    if options:
        raise TVMCException(
            f"tvmc.run takes options ({', '.join(options)}) for the device 'micro' alone"
        )
    if tvmc_package.lib_path is None:
        tvmc_package.module()  # which says what to do with an archive
    path = Path(tvmc_package.lib_path or "")
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
    _fill(module, inputs, fill_mode)
    times: Any = []
    if profile:
        for layer, function, seconds in module.profile(number, repeat):
            print(f"{seconds * 1e6:12.1f} us  {layer}  {function}")
    if benchmark:
        times = module.benchmark(device_used, repeat=repeat, number=number, end_to_end=end_to_end)
    else:
        module.run()
    return TVMCResult(_outputs(module), times)


def _run_project(
    package: TVMCPackage,
    inputs: Mapping[str, Any] | None,
    fill_mode: str,
    options: Mapping[str, Any] | None,
) -> TVMCResult:
    """Run the firmware of a project that is built and flashed."""
    if package.type != "mlf" or package.project_dir is None:
        raise TVMCException(
            f"{package.package_path}: the device 'micro' takes an archive in Model Library Format "
            "and its project, TVMCPackage(archive, project_dir=...)"
        )
    project = GeneratedProject.from_directory(package.project_dir, options)
    with Session(project.transport()) as session:
        if package.graph is None:
            module = create_local_aot_executor(session)
        else:
            library = session.get_system_lib()
            module = create_local_graph_executor(package.graph, library, session.device)
            if package.params:
                module.load_params(package.params)
        _fill(module, inputs, fill_mode)
        module.run()
        return TVMCResult(_outputs(module), [])


def _fill(module: GraphModule, inputs: Mapping[str, Any] | None, fill_mode: str) -> None:
    shapes, kinds = module.get_input_info()
    for name, value in make_inputs_dict(shapes, kinds, inputs, fill_mode).items():
        module.set_input(name, value)


def _outputs(module: GraphModule) -> dict[str, np.ndarray[Any, Any]]:
    count = module.get_num_outputs()
    return {f"output_{i}": module.get_output(i).numpy() for i in range(count)}


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
