"""The unit that docs/security.md gives for a device: systemd takes it, the server its options."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from slipway import rpc
from slipway.errors import RPCError

PAGE = Path(__file__).parents[3] / "docs" / "security.md"
SERVER = "/usr/local/bin/slipway-server"


@pytest.fixture(scope="module")
def unit():
    return re.search(r"```ini\n(.*?)```", PAGE.read_text(), re.DOTALL).group(1)


def test_systemd_takes_the_unit(unit, tmp_path):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    server = tmp_path / "slipway-server"
    server.write_text("#!/bin/sh\n")
    server.chmod(0o755)
    file = tmp_path / "slipway-device.service"
    file.write_text(unit.replace(SERVER, str(server)))
    done = subprocess.run(
        ["systemd-analyze", "verify", str(file)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_systemd_rates_the_unit_as_the_page_says(unit, tmp_path):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    file = tmp_path / "slipway-device.service"
    file.write_text(unit)
    command = ["systemd-analyze", "security", "--offline=true", "--no-pager", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if "unrecognized option" in done.stderr:
        pytest.skip("this systemd-analyze rates only units that are loaded")
    (rated,) = re.findall(r"exposure level for .*: (\d+\.\d)", done.stdout)
    (said,) = re.findall(r"`systemd-analyze security` rates it (\d\.\d)", PAGE.read_text())
    assert float(rated) <= float(said)


def test_the_server_takes_the_options_of_the_unit(unit, static_server_for_this_machine, tmp_path):
    command = re.search(rf"ExecStart={SERVER}((?:.*\\\n)*.*)", unit).group(1)
    token = tmp_path / "token"
    token.write_text("a token\n")
    options = [
        word.replace("%d/token", str(token)) for word in command.replace("\\\n", " ").split()
    ]
    options[options.index("--port") + 1] = "0"
    device = static_server_for_this_machine(*options, "--require-token")
    with rpc.connect("127.0.0.1", device.port, key="rpi4", token="a token") as session:
        session.upload(b"x", "x")
        assert session.listdir() == ["x"]
    with pytest.raises(RPCError, match="token"):
        rpc.connect("127.0.0.1", device.port, key="rpi4", token="another")
    assert device.stop() == 0
