"""The client written from the protocol's document alone: it and we understand each other."""

import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "rpc_minimal_client.py"


def test_example_uploads_calls_and_times(server, kernels):
    done = subprocess.run(
        [sys.executable, "-I", EXAMPLE, "127.0.0.1", str(server.port), kernels, "myadd"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "array('f', [0.0, 1.0, 2.0, 3.0]) -> array('f', [1.0, 2.0, 3.0, 4.0])" in done.stdout
    assert "seconds per run: " in done.stdout


def test_example_is_short_and_needs_nothing():
    lines = EXAMPLE.read_text().splitlines()
    assert len(lines) < 150
    imports = {line.split()[1] for line in lines if line.startswith(("import ", "from "))}
    assert imports <= set(sys.stdlib_module_names)
