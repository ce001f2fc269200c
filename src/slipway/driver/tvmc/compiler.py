"""`tvmc.compile`: a model as a package for a target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from slipway.compiler.relay_build import build
from slipway.driver.tvmc.composite_target import get_codegen_by_target
from slipway.driver.tvmc.extensions import backends
from slipway.driver.tvmc.model import (
    TVMCException,
    TVMCModel,
    TVMCPackage,
    check_output_format,
)
from slipway.driver.tvmc.pass_config import parse_configs
from slipway.driver.tvmc.target import target_from_cli
from slipway.driver.tvmc.transform import convert_graph_layout, convert_to_mixed_precision
from slipway.errors import did_you_mean
from slipway.ir.memory_pools import WorkspaceMemoryPools
from slipway.relay.backend import Executor, Runtime
from slipway.target.target import Target
from slipway.transform.context import PassContext
from slipway.transform.graph.classic import ConvertLayout
from slipway.transform.instruments import PassInstrument, PassTimingInstrument

_LAID_OUT = ("nn.conv2d", "nn.conv1d", "nn.conv3d")
_SHORTER = {"NHWC": "NWC", "NCHW": "NCW"}
_LONGER = {"NHWC": "NDHWC", "NCHW": "NCDHW"}
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
    `print_pass_times` prints what `instruments` measure as PassTimingInstrument does.  `use_vm`
    changes nothing: loops, branches and open sizes are compiled either way.
    """
    del use_vm
    check_output_format(output_format)
    dumps = [d.strip() for d in dump_code.split(",")] if isinstance(dump_code, str) else dump_code
    for name in dumps or ():
        if name not in DUMPS:
            raise TVMCException(
                f"dump_code names {name!r}, not one of {', '.join(DUMPS)}."
                f"{did_you_mean(name, DUMPS)}"
            )
    chosen, libraries = (
        (target, []) if isinstance(target, Target)
        else target_from_cli(target, additional_target_options)
    )  # fmt: skip
    if target_host is not None:
        chosen = Target(chosen, host=target_host)
    module = tvmc_model.mod
    for library in libraries:
        partition = get_codegen_by_target(library["name"])["pass_pipeline"]
        module = partition(module, tvmc_model.params)
        if library["name"] in backends():
            chosen = Target({"kind": library["name"], **library["opts"]}, host=chosen)
    configs = parse_configs(pass_context_configs)
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
    path = tvmc_model.export_package(factory, package_path, cross, cross_options, output_format)
    texts = {
        name: str(module) if name == "relay" else factory.get_lib().get_source(name)
        for name in dumps or ()
    }
    save_dumps(Path(path).name, texts, str(Path(path).parent))
    return TVMCPackage(path)


def save_dumps(module_name: str, dumps: Mapping[str, str], dump_root: str = ".") -> None:
    """Write each text beside the others, as `module_name` and what it is."""
    for name, text in dumps.items():
        (Path(dump_root) / f"{module_name}.{name}").write_text(text, encoding="utf-8")


def _layouts(desired: str) -> dict[str, list[str]]:
    if desired not in _SHORTER:
        raise TVMCException(
            f"desired_layout is {desired!r}, not NCHW or NHWC; ConvertLayout knows any other"
        )
    layouts = (desired, _SHORTER[desired], _LONGER[desired])
    return {name: [layout, "default"] for name, layout in zip(_LAID_OUT, layouts, strict=True)}
