"""What tests of microcontrollers share: boards, targets, messages, archives."""

import shutil
import subprocess
import tarfile

import numpy as np
import pytest

import slipway as tvm
from slipway import micro, relay
from slipway.errors import ArgumentValueError, TuningError
from slipway.micro.project_api.server import IoTimeoutError
from slipway.micro.testing import get_supported_boards, get_target, utils
from slipway.relay.backend import Executor, Runtime


class Lines:
    """A transport that has these bytes, and then nothing more until it is written to."""

    def __init__(self, before, after=b""):
        self.waiting, self.after, self.written = bytearray(before), after, b""

    def read(self, n, timeout_sec):
        if not self.waiting:
            raise IoTimeoutError()
        return bytes([self.waiting.pop(0)])

    def write(self, data, timeout_sec):
        self.written += data
        self.waiting += self.after


def test_messages_of_firmware_are_waited_for():
    assert utils.aot_transport_find_message(Lines(b"boot\nresult:3,4\n"), "result", 1) == (
        "result:3,4\n"
    )
    silent = Lines(b"noise\n", b"wakeup\n")
    utils.aot_transport_init_wait(silent)
    assert silent.written == b"init%"


def test_boards_have_targets():
    assert "mcpu=cortex-m4" in str(get_target("zephyr", "mps2-an386"))
    assert str(get_target("crt")) == str(tvm.target.target.micro("host"))
    assert "nrf52840" in get_supported_boards("zephyr")
    with pytest.raises(ArgumentValueError, match="needs the name of a board"):
        get_target("zephyr")


def test_the_workspace_of_an_archive_is_its_programs(tmp_path):
    x = relay.var("x", shape=(1, 8))
    weight = relay.const(np.eye(8, dtype="float32"))
    body = relay.nn.dense(relay.nn.softmax(relay.nn.dense(x, weight)), weight)
    built = relay.build(
        tvm.IRModule.from_expr(body), "c", executor=Executor("aot"), runtime=Runtime("crt")
    )
    path = micro.export_model_library_format(built, tmp_path / "m.tar")
    assert utils.mlf_extract_workspace_size_bytes(path) == built.program.workspace_bytes > 0


def test_the_convolution_is_one_of_integers():
    function = utils.get_conv2d_relay_module()["main"]
    assert [p.name_hint for p in function.params] == ["data", "weight"]
    assert str(function.ret_type) == "Tensor[(1, 8, 64, 64), int32]"


def test_records_that_measured_nothing_are_refused(tmp_path):
    log = tmp_path / "log"
    log.write_text('{"result": [[0.5], 0]}\n')
    utils.check_tune_log(log)
    log.write_text('{"result": [[1e9], 4]}\n')
    with pytest.raises(TuningError, match="log:1 is of a trial that failed"):
        utils.check_tune_log(log)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "float32"])
def test_arrays_become_headers_of_c(tmp_path, dtype):
    values = np.array([[1.5, 0.1, 3], [100, 5, 6]]).astype(dtype)
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        utils.create_header_file("sample", values, "samples", archive)
    with tarfile.open(tmp_path / "a.tar") as archive:
        header = archive.extractfile("samples/sample.h").read().decode()
    (tmp_path / "main.c").write_text(
        header.replace("#include <dlpack/dlpack.h>\n", "")
        + "#include <stdio.h>\nint main(void) { fwrite(sample, sizeof sample[0], sample_len, "
        "stdout); return sizeof sample / sizeof sample[0] != sample_len; }\n"
    )
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    subprocess.run([compiler, "main.c", "-o", "main"], cwd=tmp_path, check=True)
    done = subprocess.run([tmp_path / "main"], capture_output=True, check=True)
    np.testing.assert_array_equal(np.frombuffer(done.stdout, dtype), values.ravel())


def test_what_c_cannot_write_is_refused(tmp_path):
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        for values in (np.array([1j]), np.array([np.inf])):
            with pytest.raises(ArgumentValueError, match="create_header_file"):
                utils.create_header_file("sample", values, "samples", archive)
