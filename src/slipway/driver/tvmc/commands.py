"""What tvmc's commands do: the functions of `slipway.driver.tvmc`, with the options of a line.

`slipway compile`, `run`, `tune` and `micro` say and do more.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from slipway.cli.run import read_arrays
from slipway.deploy.tensors import largest_first
from slipway.driver.tvmc import micro
from slipway.driver.tvmc.arguments import parsed, tracker_of
from slipway.driver.tvmc.autotuner import tune_model
from slipway.driver.tvmc.compiler import compile_model
from slipway.driver.tvmc.extensions import load_extensions
from slipway.driver.tvmc.frontends import load_model
from slipway.driver.tvmc.model import TVMCException, TVMCModel, TVMCPackage
from slipway.driver.tvmc.registry import reconstruct_registry_entity
from slipway.driver.tvmc.runner import run_module
from slipway.driver.tvmc.shape_parser import parse_shape_string
from slipway.driver.tvmc.target import target_from_cli
from slipway.driver.tvmc.transform import apply_graph_transforms
from slipway.driver.tvmc.workspace_pools import workspace_pools_recombobulate
from slipway.errors import SlipwayError
from slipway.relay.backend import Executor, Runtime
from slipway.target import Target
from slipway.version import VERSION


def main(argv: Sequence[str]) -> int:
    """Run a command line of tvmc; return its exit code."""
    try:
        options = parsed(argv)
        if options.version:
            print(VERSION)
        elif options.command is None:
            parsed(["--help"])
        else:
            load_extensions(options.experimental_tvm_extension)
            commands = {"compile": _compile, "run": _run, "tune": _tune, "micro": micro.run}
            commands[options.command](options)
    except (SlipwayError, OSError) as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    return 0


def _load(options: argparse.Namespace) -> TVMCModel:
    if not Path(options.FILE).is_file():
        raise TVMCException(
            f"Input file '{options.FILE}' doesn't exist, is a broken symbolic link, or a directory."
        )
    shapes = parse_shape_string(options.input_shapes) if options.input_shapes else None
    return load_model(options.FILE, options.model_format, shapes)


def _target(options: argparse.Namespace) -> Target:
    target, _ = target_from_cli(options.target, options.target_options)
    return Target(target, host=options.target_host or target.host)


_TRANSFORMS = (
    "desired_layout", "desired_layout_ops", "mixed_precision", "mixed_precision_ops",
    "mixed_precision_calculation_type", "mixed_precision_acc_type",
)  # fmt: skip


def _transforms(options: argparse.Namespace) -> dict[str, Any]:
    return {name: getattr(options, name) for name in _TRANSFORMS}


def _compile(options: argparse.Namespace) -> None:
    pools = None
    if any(getattr(options, name) for name in vars(options) if name.startswith("workspace_pools")):
        pools = workspace_pools_recombobulate(options, [_target(options)])
    package = compile_model(
        _load(options),
        options.target,
        opt_level=options.opt_level,
        executor=reconstruct_registry_entity(options, Executor),
        runtime=reconstruct_registry_entity(options, Runtime),
        tuning_records=options.tuning_records,
        package_path=options.output,
        cross=options.cross_compiler or None,
        cross_options=options.cross_compiler_options or None,
        output_format=options.output_format,
        dump_code=options.dump_code or None,
        target_host=options.target_host,
        disabled_pass=options.disabled_pass,
        pass_context_configs=options.pass_config,
        additional_target_options=options.target_options,
        mod_name=options.module_name,
        workspace_pools=pools,
        print_pass_times=options.print_pass_times,
        **_transforms(options),
    )
    print(f"wrote {package.package_path}")


def _run(options: argparse.Namespace) -> None:
    host, port = tracker_of(options.rpc_tracker)
    inputs = read_arrays(Path(options.inputs)) if options.inputs else None
    micro_options = micro.options_of(options.project_option)
    package = (
        micro.package_of(options.PATH) if options.device == "micro" else TVMCPackage(options.PATH)
    )
    result = run_module(
        package,
        options.device,
        hostname=host,
        port=port or 9090,
        rpc_key=options.rpc_key,
        inputs=inputs,
        fill_mode=options.fill_mode,
        benchmark=options.print_time,
        repeat=options.repeat,
        number=options.number,
        profile=options.profile,
        end_to_end=options.end_to_end,
        options=micro_options,
    )
    if options.print_time:
        print(result.format_times())
    if options.print_top:
        for name, values in result.outputs.items():
            flat, positions = values.ravel(), largest_first(values, options.print_top)
            print(name, *(f"  {position}: {flat[position]}" for position in positions), sep="\n")
    if options.outputs:
        result.save(options.outputs)


def _tune(options: argparse.Namespace) -> None:
    host, port = tracker_of(options.rpc_tracker)
    if options.tasks != "all":
        raise TVMCException(f"--tasks is {options.tasks!r}: all tasks are searched, give trials")
    model = _load(options)
    model = TVMCModel(apply_graph_transforms(model.mod, _transforms(options)), model.params)
    records = tune_model(
        model,
        _target(options),
        tuning_records=options.output,
        prior_records=options.tuning_records,
        enable_autoscheduler=options.enable_autoscheduler,
        rpc_key=options.rpc_key,
        hostname=host,
        port=port or 9090,
        trials=options.trials,
        tuner=options.tuner,
        timeout=options.timeout,
        early_stopping=options.early_stopping,
    )
    print(f"wrote {Path(records)}")
