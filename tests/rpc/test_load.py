"""The tracker under load: ``benchmarks/rpc_load.py`` for ten seconds."""

import json
import subprocess
import sys


def test_a_thousand_devices_and_two_hundred_clients(repository, tmp_path):
    """Nothing is lost or handed out twice; how fast it is depends on who else is at work here."""
    program = repository / "benchmarks" / "rpc_load.py"
    figures = tmp_path / "figures.json"
    options = ["--seconds", "10", "--churn", "3", "--max-p99", "5000", "--max-growth", "20"]
    done = subprocess.run(
        [sys.executable, str(program), *options, "--json", str(figures)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads(figures.read_text())
    assert result["granted"] == result["requests"] > 500
    assert result["lost_devices"] > 5
