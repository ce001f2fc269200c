"""Runners for models compiled ahead of time, and the options that a test of them goes through."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from typing import Any

from slipway.testing.aot import AOTTestRunner

AOT_DEFAULT_RUNNER = AOTTestRunner()
AOT_CORSTONE300_RUNNER = AOTTestRunner(makefile="corstone300")
AOT_USMP_CORSTONE300_RUNNER = AOTTestRunner(
    makefile="corstone300", pass_config={"tir.usmp.enable": True}
)


def parametrize_aot_options(test: Callable[..., Any]) -> Any:
    """Run a test for each interface, on this machine, and for the one in C on the emulated board.

    The test takes interface_api, use_unpacked_api and test_runner.
    """
    import pytest

    tools = ("arm-none-eabi-gcc", "qemu-system-arm")
    lacking = [tool for tool in tools if shutil.which(tool) is None]
    on_board = pytest.mark.skipif(
        bool(lacking), reason=f"{' and '.join(lacking)} not installed: sudo apt-get install them"
    )
    return pytest.mark.parametrize(
        ("interface_api", "use_unpacked_api", "test_runner"),
        [
            ("packed", True, AOT_DEFAULT_RUNNER),
            ("packed", False, AOT_DEFAULT_RUNNER),
            ("c", True, AOT_DEFAULT_RUNNER),
            pytest.param("c", True, AOT_CORSTONE300_RUNNER, marks=[on_board]),
        ],
    )(test)
