"""A real terminal line: firmware behind a pseudo-terminal, as a board is behind its USB port."""

import contextlib
import os
import re
import select
import subprocess
import tty

import numpy as np
import pytest
from aot_models import build, keyword_net
from firmware_tools import needs

import slipway as tvm
from slipway import micro, te
from slipway.errors import RemoteError, RPCConnectionError, RPCTimeoutError
from slipway.micro.board import find_board
from slipway.micro.emulator import emulator_command
from slipway.micro.host_project import IMAGE
from slipway.micro.project_api.server import IoTimeoutError, TransportClosedError
from slipway.runtime.graph.graph_executor import GraphModule


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    needs("mps2-an386")
    folder = tmp_path_factory.mktemp("serial") / "p"
    lib = build(keyword_net(), target=find_board("mps2-an386").target)
    made = micro.generate_project(
        "baremetal", lib, folder, {"board": "mps2-an386", "project_type": "host_driven"}
    )
    made.build()
    yield made
    made.close()


@contextlib.contextmanager
def on_a_terminal(project):
    """Start the emulator with its serial line on a pseudo-terminal; yield the terminal's path."""
    board = find_board("mps2-an386")
    command = emulator_command(board, project._folder / "build/firmware.elf")
    command[command.index("-serial") + 1] = "pty"
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
    ) as emulator:
        try:
            yield re.search(r"redirected to (\S+)", emulator.stdout.readline())[1]
        finally:
            emulator.kill()


def test_model_runs_over_a_serial_port(project):
    with on_a_terminal(project) as path:
        for _ in range(2):
            with micro.Session(micro.SerialPort(path, 115200)) as session:
                model = GraphModule(session.create_aot_executor())
                model.set_input("data", np.ones((1, 1, 25, 10), "float32"))
                model.run()
                assert model.get_output(0).numpy().sum() == pytest.approx(1, abs=1e-5)
        project._options["port"] = path
        with micro.Session(project.transport()) as session:
            assert session.rpc.ping(b"by the project's option") == b"by the project's option"


@pytest.fixture(scope="module")
def resident(tmp_path_factory):
    """Resident firmware for this machine, whose serial line is its standard input and output."""
    made = micro.generate_firmware("crt", tmp_path_factory.mktemp("resident") / "p")
    made.build()
    yield made
    made.close()


@contextlib.contextmanager
def behind_a_terminal(project):
    """Run the firmware at one end of a pseudo-terminal; yield the path of the other end."""
    ours, theirs = os.openpty()
    tty.setraw(theirs)
    program = project._folder / IMAGE
    with subprocess.Popen([program], stdin=ours, stdout=ours) as firmware:
        os.close(ours)
        try:
            yield os.ttyname(theirs)
        finally:
            firmware.kill()
            os.close(theirs)


class Noisy(micro.SerialPort):
    """A port that changes a byte of what it sends, once in so many."""

    left = 3000

    def write(self, data, timeout_sec):
        changed = bytearray(data)
        self.left -= len(changed)
        if self.left < 0 and changed:
            changed[len(changed) // 2] ^= 0x10
            self.left = 3000
        super().write(bytes(changed), timeout_sec)


@pytest.mark.long
@pytest.mark.parametrize("port", [micro.SerialPort, Noisy])
def test_sessions_of_this_machine_over_a_terminal(resident, port):
    """Upload, load, copies both ways, calls and errors, on two sessions, one after the other."""
    a = te.placeholder((4096,), name="a")
    b = te.compute((4096,), lambda i: a[i] * 2.0 + 1.0, name="b")
    twice = tvm.build(te.create_schedule(b.op), [a, b], "c", name="twice")
    data = np.random.default_rng(0).random(4096, "float32")
    with behind_a_terminal(resident) as path:
        for _ in range(2):
            with micro.Session(port(path, 115200)) as session:
                module = session.load(twice)
                x = tvm.nd.array(data, session.device)
                y = tvm.nd.empty((4096,), "float32", session.device)
                module["twice"](x, y)
                np.testing.assert_array_equal(y.numpy(), data * 2 + 1)
                with pytest.raises(RemoteError, match="twice"):
                    module["twice"](x)
                assert session.rpc.ping(bytes(range(256))) == bytes(range(256))


def test_port_that_is_not_there_or_is_no_port_or_is_silent(tmp_path):
    with pytest.raises(RPCConnectionError, match=r"cannot open the serial port .*nothing"):
        micro.SerialPort(tmp_path / "nothing").open()
    (tmp_path / "file").write_text("")
    with pytest.raises(RPCConnectionError, match="is no serial port"):
        micro.SerialPort(tmp_path / "file").open()
    with pytest.raises(RPCConnectionError, match="12345 baud is no rate"):
        micro.SerialPort(tmp_path / "file", 12345).open()
    ours, theirs = os.openpty()
    port = micro.SerialPort(os.ttyname(theirs))
    port.timeouts = lambda: {"session_start_timeout_sec": 0.3}
    with pytest.raises(RPCTimeoutError, match=r"did not answer .* within 0\.3 s"):
        micro.Session(port).__enter__()
    port.open()
    with pytest.raises(IoTimeoutError):
        port.read(1, 0.01)
    special = b"\x03\r\n\x11\xff"  # what a terminal that is not raw would change
    port.write(special, 1.0)
    came = b""
    while not came.endswith(special) and select.select([ours], [], [], 10.0)[0]:
        came += os.read(ours, 4096)
    assert came.endswith(special)
    port.close()
    for closed in (lambda: port.read(1, 0.0), lambda: port.write(b"x", 0.0)):
        with pytest.raises(TransportClosedError):
            closed()
    os.close(ours)
    os.close(theirs)
