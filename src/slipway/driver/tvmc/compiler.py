"""`tvmc.compile`: a model as a package for a target."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from slipway.compiler.accelerators.libraries import (
    partition_for_arm_compute_lib,
    partition_for_bnns,
    partition_for_cmsisnn,
    partition_for_dnnl,
)
from slipway.compiler.relay_build import build
from slipway.driver.tvmc.model import TVMCException, TVMCModel, TVMCPackage
from slipway.driver.tvmc.transform import convert_graph_layout, convert_to_mixed_precision
from slipway.errors import NotAvailableError, did_you_mean
from slipway.ir.function import IRModule
from slipway.ir.memory_pools import WorkspaceMemoryPools
from slipway.micro.model_library_format import export_model_library_format
from slipway.relay.backend import Executor, Runtime
from slipway.target.target import Target
from slipway.transform.context import PassContext
from slipway.transform.graph.classic import ConvertLayout
from slipway.transform.instruments import PassInstrument, PassTimingInstrument

_LAID_OUT = ("nn.conv2d", "nn.conv1d", "nn.conv3d")
_SHORTER = {"NHWC": "NWC", "NCHW": "NCW"}
_LONGER = {"NHWC": "NDHWC", "NCHW": "NCDHW"}
OUTPUT_FORMATS = ("so", "tar", "mlf")
DUMPS = ("asm", "ll", "c", "relay")


def compile_model(
    tvmc_model: TVMCModel,
    target: str | Target,
    opt_level: int = 3,
    executor: Executor | None = None,
    runtime: Runtime | None = None,
    tuning_records: str | None = None,
    package_path: str | None = None,
    cross: Any = None,
    cross_options: str | None = None,
    output_format: str = "so",
    dump_code: Sequence[str] | str | None = None,
    target_host: str | None = None,
    desired_layout: str | Sequence[str] | None = None,
    disabled_pass: Sequence[str] | str | None = None,
    pass_context_configs: Sequence[str] | None = None,
    additional_target_options: Mapping[str, Mapping[str, Any]] | None = None,
    use_vm: bool = False,
    mod_name: str = "default",
    workspace_pools: WorkspaceMemoryPools | None = None,
    print_pass_times: bool = False,
    instruments: Sequence[PassInstrument] | None = None,
    desired_layout_ops: Sequence[str] | None = None,
    mixed_precision: bool = False,
    mixed_precision_ops: Sequence[str] | None = None,
    mixed_precision_calculation_type: str | None = None,
    mixed_precision_acc_type: str | None = None,
) -> TVMCPackage:
    """Compile a model, and return the package at `package_path` (a temporary one by default).

    `desired_layout` "NCHW" or "NHWC" converts convolutions; `dump_code` names what to write beside
    the package: asm, ll or c, and relay.  `pass_context_configs` are texts ``name=value``.
    Layouts of single operators and products in 16 bits are those of `tvmc.transform`;
    `print_pass_times` prints what `instruments` measure as PassTimingInstrument does.
    """
    if use_vm:
        raise NotAvailableError(
            "tvmc.compile: use_vm is not there: relay.vm.compile runs models in this process"
        )
    if output_format not in OUTPUT_FORMATS:
        raise TVMCException(
            f"output_format is {output_format!r}, not one of {', '.join(OUTPUT_FORMATS)}."
            f"{did_you_mean(output_format, OUTPUT_FORMATS)}"
        )
    dumps = [d.strip() for d in dump_code.split(",")] if isinstance(dump_code, str) else dump_code
    for name in dumps or ():
        if name not in DUMPS:
            raise TVMCException(
                f"dump_code names {name!r}, not one of {', '.join(DUMPS)}."
                f"{did_you_mean(name, DUMPS)}"
            )
    rest, libraries = _without_libraries(str(target))
    chosen = Target(with_options(rest, additional_target_options), host=target_host)
    module = tvmc_model.mod
    for partition in libraries:
        module = partition(module, tvmc_model.params)
    configs = dict(_config(text) for text in pass_context_configs or ())
    if tuning_records:
        configs["schedules.records"] = tuning_records
    disabled = (
        [p.strip() for p in disabled_pass.split(",") if p.strip()]
        if isinstance(disabled_pass, str)
        else list(disabled_pass or ())
    )
    timing = [PassTimingInstrument()] if print_pass_times else []
    with PassContext(
        opt_level=opt_level,
        config=configs,
        disabled_pass=disabled,
        instruments=[*(instruments or ()), *timing],
    ):
        layouts = [desired_layout] if isinstance(desired_layout, str) else desired_layout or ()
        if len(layouts) == 1 and ":" not in layouts[0] and desired_layout_ops is None:
            module = ConvertLayout(_layouts(layouts[0]))(module)
        elif layouts:
            module = convert_graph_layout(module, layouts, desired_layout_ops)
        if mixed_precision:
            module = convert_to_mixed_precision(
                module,
                mixed_precision_ops,
                mixed_precision_calculation_type or "float16",
                mixed_precision_acc_type or "float32",
            )
        factory = build(
            module, chosen, params=tvmc_model.params, executor=executor, runtime=runtime,
            mod_name=mod_name, workspace_memory_pools=workspace_pools,
        )  # fmt: skip
        for each in timing:
            print(f"Compilation time breakdown by pass:\n{each.render()}")
    path = Path(package_path or tvmc_model.default_package_path())
    if output_format == "mlf":
        export_model_library_format(factory, path)
    else:
        if package_path is None and output_format == "so":
            path = path.with_suffix(".tar")
        options = cross_options.split() if cross_options else None
        factory.export_library(path, cc=cross, options=options)
    for name in dumps or ():
        text = str(module) if name == "relay" else factory.get_lib().get_source(name)
        path.with_name(f"{path.name}.{name}").write_text(text, encoding="utf-8")
    return TVMCPackage(str(path))


# Targets of TVM that take parts of a model for a library, with what does so.
_LIBRARIES: dict[str, Callable[..., IRModule]] = {
    "bnns": partition_for_bnns,
    "cmsis-nn": partition_for_cmsisnn,
    "compute-library": partition_for_arm_compute_lib,
    "dnnl": partition_for_dnnl,
}


def get_codegen_names() -> list[str]:
    """Return the names of libraries that a target may begin with."""
    return list(_LIBRARIES)


def _without_libraries(target: str) -> tuple[str, list[Callable[..., IRModule]]]:
    """Return the target without libraries before it, ``cmsis-nn,c``, and what they would take."""
    found = []
    while (first := target.partition(","))[1] and first[0].split():
        partition = _LIBRARIES.get(first[0].split()[0])
        if partition is None:
            break
        found.append(partition)
        target = first[2].strip()
    return target, found


def with_options(target: str, options: Mapping[str, Mapping[str, Any]] | None) -> str:
    """Return a target's text with the options of its kind."""
    kind = target.split()[0] if target.split() else ""
    for of, values in (options or {}).items():
        if of == kind:
            target += "".join(f" -{name}={value}" for name, value in values.items())
    return target


def _layouts(desired: str) -> dict[str, list[str]]:
    if desired not in _SHORTER:
        raise TVMCException(
            f"desired_layout is {desired!r}, not NCHW or NHWC; ConvertLayout knows any other"
        )
    layouts = (desired, _SHORTER[desired], _LONGER[desired])
    return {name: [layout, "default"] for name, layout in zip(_LAID_OUT, layouts, strict=True)}


def _config(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise TVMCException(f"pass_context_configs has {text!r}, which is not name=value")
    try:
        return name, json.loads(value)
    except json.JSONDecodeError:
        return name, value
