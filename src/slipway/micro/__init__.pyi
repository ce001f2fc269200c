"""What type checkers see of slipway.micro; written by tools/stubs.py."""

from slipway.micro.autotune import AutoTvmModuleLoader as AutoTvmModuleLoader
from slipway.micro.autotune import autotvm_build_func as autotvm_build_func
from slipway.micro.model_library_format import UnsupportedInModelLibraryFormatError as UnsupportedInModelLibraryFormatError
from slipway.micro.model_library_format import export_model_library_format as export_model_library_format
from slipway.micro.project import GeneratedProject as GeneratedProject
from slipway.micro.project import NotATemplateProjectError as NotATemplateProjectError
from slipway.micro.project import TemplateProject as TemplateProject
from slipway.micro.project import TemplateProjectError as TemplateProjectError
from slipway.micro.project import copy_crt_config_header as copy_crt_config_header
from slipway.micro.project import generate_firmware as generate_firmware
from slipway.micro.project import generate_project as generate_project
from slipway.micro.project import generate_project_from_mlf as generate_project_from_mlf
from slipway.micro.project import get_microtvm_template_projects as get_microtvm_template_projects
from slipway.micro.project import get_standalone_crt_dir as get_standalone_crt_dir
from slipway.micro.serial_port import SerialPort as SerialPort
from slipway.micro.serial_session import SerialSession as SerialSession
from slipway.micro.session import Session as Session
from slipway.micro.session import SessionTerminatedError as SessionTerminatedError
from slipway.micro.session import create_local_aot_executor as create_local_aot_executor
from slipway.micro.session import create_local_debug_executor as create_local_debug_executor
from slipway.micro.session import create_local_graph_executor as create_local_graph_executor
from slipway.micro.transport import TransportLogger as TransportLogger

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
