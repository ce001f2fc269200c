"""The numeric cases, compiled for other CPUs and run on their emulators over RPC."""

import os
import re
import subprocess
import time
from pathlib import Path

import kernels
import numpy as np
import pytest
from tests.codegen import test_math, test_numeric

from slipway import nd, rpc
from slipway.codegen.math import ulp_bound
from slipway.codegen.math.table import functions
from slipway.compiler.emit import build_module
from slipway.target import Target
from slipway.toolchain import emulators, native
from slipway.toolchain.link import link_shared

DEVICES = {
    "aarch64": "aarch64-linux-gnu",
    "armv7": "armv7l-linux-gnueabihf",
    "riscv64": "riscv64-linux-gnu",
}


@pytest.fixture(scope="module", params=list(DEVICES))
def device(request, tmp_path_factory):
    """(architecture, RPC session to a static server under its emulator)."""
    emulator = emulators.find(request.param)
    if emulator is None:
        pytest.skip(emulators.install_hint(request.param))
    folder = tmp_path_factory.mktemp(request.param)
    server = native.build_device_server(DEVICES[request.param])
    with (folder / "log").open("w+") as log:
        process = subprocess.Popen(
            [*emulator, str(server), "--port", "0"],
            stdout=log, stderr=log,
            env={**os.environ, "TMPDIR": str(folder), "SLIPWAY_RPC_TOKEN": ""},
        )  # fmt: skip
        session = rpc.connect("127.0.0.1", _port(folder / "log"))
        yield request.param, session
        session.close()
        process.terminate()
        process.wait(10)


def _port(log: Path) -> int:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        found = re.search(r"bind to \S+:(\d+)", log.read_text())
        if found:
            return int(found.group(1))
        time.sleep(0.02)
    raise AssertionError(f"the server did not start: {log.read_text()}")


def load(device, funcs, folder, words=None):
    architecture, session = device
    target = Target(words or f"llvm -mtriple={DEVICES[architecture]} -opt-level=1")
    compiled = build_module(funcs, target)
    library = link_shared(compiled.objects, target.triple, folder / "cases.so")
    session.upload(str(library))
    return session.load_module(library.name)


def run(session, function, inputs, outputs):
    here = [nd.array(np.ascontiguousarray(a), session.cpu(0)) for a in (*inputs, *outputs)]
    function(*here)
    return [a.numpy() for a in here[len(inputs) :]]


def check_cases(device, cases, folder, words=None):
    module = load(device, {c.name: test_numeric.function(c) for c in cases}, folder, words)
    wrong = []
    for case in cases:
        empty = [np.zeros(test_numeric.N, case.out) for _ in range(2)]
        outs = run(device[1], module[case.name], case.inputs, empty)
        with np.errstate(all="ignore"):
            want = np.asarray(case.reference(*case.inputs)).astype(case.out)
        wrong += [
            case.name for out in outs if not ((out == want) | ((out != out) & (want != want))).all()
        ]
    assert not wrong


def test_some_cases(device, tmp_path):
    check_cases(device, test_numeric.CASES[::7], tmp_path)


@pytest.mark.parametrize(
    "words",
    ["llvm -mtriple=thumbv7a-linux-gnueabihf -opt-level=1",
     "llvm -mtriple=armv6-linux-gnueabihf -opt-level=1",
     "llvm -mtriple=thumbv6-linux-gnueabi -opt-level=1",
     "c -mtriple=armv6-linux-gnueabihf"],
)  # fmt: skip
def test_older_arm_has_all_of_64_bits(words, tmp_path, qemu):
    """Shifts, products, divisions and conversions, which Thumb and ARMv6 call as functions."""
    emulator, server = qemu("arm"), native.build_device_server("armv7-linux")
    is_float = re.compile("float" if "gnueabihf" not in words else "never")  # no FPU to compute it
    cases = [
        case
        for case in test_numeric.CASES
        if re.search("64_by|int64$|cast_u?int64_f", case.name) and not is_float.search(case.name)
        if not re.search("popcount|Max|Min|[ELGN][QTE]_|bitwise|Add|Sub|Select|if_", case.name)
    ]
    assert len(cases) > 40
    with rpc.PopenSession([emulator, str(server), "--stdio"]) as session:
        check_cases(("armv7", session), cases, tmp_path, words)


@pytest.mark.long
def test_every_case(device, tmp_path):
    check_cases(device, test_numeric.CASES, tmp_path)


def test_elementary_functions(device, tmp_path):
    names = [f for f in functions() if f != "erf"]
    module = load(device, {op: test_math.function(op, "float32") for op in names}, tmp_path)
    for op in names:
        with np.errstate(all="ignore"):
            count = 2 if op in test_math.TWO_ARGUMENTS else 1
            args = [test_math.samples(op, "float32", k) for k in range(count)]
            args = [np.where(np.abs(a) < 1e-30, 0, a).astype("float32") for a in args]
            (out,) = run(device[1], module[op], args, [np.zeros(test_math.N, "float32")])
            keep = np.abs(out) > 1e-30  # NEON on ARMv7 flushes denormals
            args, out = [a[keep] for a in args], out[keep]
            worst, where = test_math.error_in_ulp(op, out, args)
        assert worst <= ulp_bound(op, "float32") + 0.01, (op, where)


def test_parallel_loops_and_errors(device, tmp_path):
    module = load(device, kernels.vector_add(kind="parallel"), tmp_path)
    a, b = kernels.random(1024, seed=1), kernels.random(1024, seed=2)
    (out,) = run(device[1], module["vector_add"], [a, b], [np.zeros(1024, "float32")])
    np.testing.assert_array_equal(out, a + b)
    with pytest.raises(Exception, match=r"argument 1 \(B\) has shape\[0\] = 10, expected 1024"):
        run(device[1], module["vector_add"], [a, b[:10]], [out])
