"""Programs of the C runtime, compiled with sanitizers."""

import shutil
import subprocess
from pathlib import Path

import pytest

from slipway.toolchain import native

HERE = Path(__file__).parent
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror"]
CHECKS = ["-fno-sanitize-recover=all", "-g", "-O1"]


@pytest.fixture(scope="session")
def build_checked(tmp_path_factory):
    """Return a function (main file, *runtime sources) -> sanitized program."""
    cc = shutil.which("gcc") or shutil.which("clang")
    if cc is None:
        pytest.skip("needs gcc or clang: apt-get install gcc")

    def build(main, *sources, flags=(), sanitize="address,undefined"):
        out = tmp_path_factory.mktemp("checked") / Path(main).stem
        include = ["-I", str(native.include_path())]
        paths = [str(HERE / main), *(str(path) for path in sources)]
        checks = [f"-fsanitize={sanitize}", *CHECKS]
        command = [cc, "-std=c11", "-D_GNU_SOURCE=", "-pthread", *WARNINGS, *checks, *flags]
        done = subprocess.run(
            [*command, *include, "-o", str(out), *paths], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return out

    return build
