"""The search for a microcontroller as classic scripts ask for it."""

import pytest

from slipway import autotvm, micro
from slipway.errors import TuningError


def test_process_of_this_machine_is_measured():
    folder = micro.get_microtvm_template_projects("crt")
    loader = micro.AutoTvmModuleLoader(folder, {"verbose": False})
    builder = autotvm.LocalBuilder(build_func=micro.autotvm_build_func)
    option = autotvm.measure_option(builder, autotvm.LocalRunner(module_loader=loader))
    assert option.runner.runner().device == "local"
    assert micro.autotvm_build_func.output_format == ".model-library-format"


def test_boards_are_refused_before_anything_is_built():
    with pytest.raises(TuningError, match=r"cannot measure on boards \(zephyr\)"):
        micro.AutoTvmModuleLoader("templates/zephyr")
