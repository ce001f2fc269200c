"""Microcontrollers: model archives, projects, emulated boards."""

from slipway.lazy import by_module, offer

_NAMES = {
    "slipway.micro.autotune": "AutoTvmModuleLoader autotvm_build_func",
    "slipway.micro.model_library_format": (
        "UnsupportedInModelLibraryFormatError export_model_library_format"
    ),
    "slipway.micro.project": (
        "GeneratedProject NotATemplateProjectError TemplateProject TemplateProjectError "
        "copy_crt_config_header generate_firmware generate_project generate_project_from_mlf "
        "get_microtvm_template_projects get_standalone_crt_dir"
    ),
    "slipway.micro.serial_port": "SerialPort",
    "slipway.micro.serial_session": "SerialSession",
    "slipway.micro.session": (
        "Session SessionTerminatedError create_local_aot_executor create_local_debug_executor "
        "create_local_graph_executor"
    ),
    "slipway.micro.transport": "TransportLogger",
}

_HOMES = by_module(_NAMES)
__getattr__, __dir__ = offer(__name__, _HOMES, submodules=True, explain=True)
