"""Microcontrollers: model archives, projects, emulated boards."""

from slipway.micro.autotune import AutoTvmModuleLoader, autotvm_build_func
from slipway.micro.model_library_format import (
    UnsupportedInModelLibraryFormatError,
    export_model_library_format,
)
from slipway.micro.project import (
    GeneratedProject,
    NotATemplateProjectError,
    TemplateProject,
    TemplateProjectError,
    copy_crt_config_header,
    generate_firmware,
    generate_project,
    generate_project_from_mlf,
    get_microtvm_template_projects,
    get_standalone_crt_dir,
)
from slipway.micro.serial_port import SerialPort
from slipway.micro.serial_session import SerialSession
from slipway.micro.session import (
    Session,
    SessionTerminatedError,
    create_local_aot_executor,
    create_local_debug_executor,
    create_local_graph_executor,
)
from slipway.micro.transport import TransportLogger

__all__ = [
    "AutoTvmModuleLoader",
    "GeneratedProject",
    "NotATemplateProjectError",
    "SerialPort",
    "SerialSession",
    "Session",
    "SessionTerminatedError",
    "TemplateProject",
    "TemplateProjectError",
    "TransportLogger",
    "UnsupportedInModelLibraryFormatError",
    "autotvm_build_func",
    "copy_crt_config_header",
    "create_local_aot_executor",
    "create_local_debug_executor",
    "create_local_graph_executor",
    "export_model_library_format",
    "generate_firmware",
    "generate_project",
    "generate_project_from_mlf",
    "get_microtvm_template_projects",
    "get_standalone_crt_dir",
]
