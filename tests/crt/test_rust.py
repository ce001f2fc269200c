"""The crate slipway-rt: its own tests, beside Python, and without the standard library."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import slipway as tvm
from slipway import libinfo, micro, relay
from slipway.relay.backend import Executor, Runtime
from slipway.toolchain import native

from . import foreign

CRATE = native.CRT.parent / "rust"


@pytest.fixture(scope="module")
def cargo(tmp_path_factory):
    """Return a function (folder, *arguments): run cargo there, without a network."""
    program = foreign.needed("cargo")
    foreign.needed("cc")
    target = tmp_path_factory.mktemp("target")

    def run(folder, *arguments, **environment):
        variables = {
            **os.environ,
            "CARGO_TARGET_DIR": str(target),
            "SLIPWAY_CRT": str(native.CRT),
            **environment,
        }
        return foreign.run([program, *arguments, "--offline"], cwd=folder, env=variables)

    run.target = target
    return run


def write_crate(folder, name, kind, source, features=""):
    (folder / "src").mkdir()
    (folder / "src" / "lib.rs").write_text(source)
    (folder / "Cargo.toml").write_text(
        f'[package]\nname = "{name}"\nversion = "0.1.0"\nedition = "2021"\n'
        f'[lib]\ncrate-type = ["{kind}"]\n'
        f'[profile.dev]\npanic = "abort"\n'
        f'[dependencies]\nslipway-rt = {{ path = "{CRATE}"{features} }}\n'
    )


def test_crate(cargo, model, sized_model, tmp_path):
    """Functions, arrays, a model, and every mistake, with the runtime compiled into the program."""
    crate = tmp_path / "crate"
    shutil.copytree(CRATE, crate, ignore=shutil.ignore_patterns("target", "Cargo.lock"))
    half = relay.var("half", shape=(3,), dtype="float16")
    flag = relay.var("flag", shape=(3,), dtype="bool")
    both = relay.Function([half, flag], relay.Tuple([half + half, relay.logical_not(flag)]))
    kinds = tmp_path / "kinds.tar"
    relay.build(tvm.IRModule.from_expr(both), "llvm").export_library(str(kinds))
    paths = {"SLIPWAY_TEST_MODEL": str(model.archive), "SLIPWAY_TEST_KINDS": str(kinds)}
    paths["SLIPWAY_TEST_SIZES"] = str(sized_model)
    printed = cargo(crate, "test", **paths)
    assert "7 passed; 0 failed; 0 ignored" in printed
    assert "4 passed; 0 failed; 0 ignored" in printed


FUNCTIONS = """
use slipway_rt::{call, register, register_packed, Error, Function, Module, Result, Tensor, Value};

#[no_mangle]
pub extern "C" fn register_all() -> i32 {
    i32::from(register_functions().is_err())
}

fn register_functions() -> Result<()> {
    register("rust.add", |a: i64, b: i64| a + b)?;
    register("rust.greet", |name: String| format!("hello, {}", name))?;
    register("rust.call", |name: String, x: i64| call!(Function::get(&name)?, x))?;
    register("rust.caught", |f: Function| match call!(f) {
        Err(error) => error.to_string(),
        Ok(_) => "nothing".to_string(),
    })?;
    register("rust.fail", || -> Result<()> { Err(Error::new("KeyError", "from Rust")) })?;
    register("rust.sum", |x: Tensor| x.to_vec::<f32>().map(|x| x.iter().sum::<f32>()))?;
    register_packed("rust.double", |args| {
        let doubled: Vec<f32> = args[0].to_vec::<f32>()?.iter().map(|x| 2.0 * x).collect();
        args[1].copy_from(&doubled).map(Value::from)
    })?;
    register("rust.load", |path: String| Module::load(path))?;
    register("rust.run", |lib: Module, x: Tensor| -> Result<Value> {
        let executor = Module::try_from(call!(lib.function("default")?)?)?;
        call!(executor.function("set_input")?, 0, x)?;
        call!(executor.function("run")?)?;
        call!(executor.function("get_output")?, 0)
    })
}
"""

BESIDE_PYTHON = """
import ctypes, sys
import numpy as np
import slipway as tvm

assert ctypes.CDLL(sys.argv[1]).register_all() == 0
get = tvm.get_global_func

@tvm.register_func("py.neg")
def neg(x):
    return -x

def odd():
    raise LookupError("my own")

def raised(action):
    try:
        action()
    except Exception as error:
        return f"{type(error).__name__}: {error}"

assert get("rust.add")(1, 2) == 3
assert get("rust.greet")("Python") == "hello, Python"
assert get("rust.call")("py.neg", 5) == -5
assert get("rust.caught")(odd) == "LookupError: my own"
assert raised(get("rust.fail")) == "KeyError: 'from Rust'"
assert raised(lambda: get("rust.add")(1, "x")) == "TypeError: argument 1: expected int, got str"
assert "no global function 'nope'" in raised(lambda: get("rust.call")("nope", 1))
x = tvm.nd.array(np.arange(4, dtype="float32"))
assert get("rust.sum")(x) == 6.0
y = tvm.nd.empty((4,), "float32")
get("rust.double")(x, y)
np.testing.assert_array_equal(y.numpy(), [0, 2, 4, 6])

# Compiled code calls Rust.
a = tvm.te.placeholder((4,), "float32", name="a")
b = tvm.te.extern(a.shape, [a], lambda i, o: tvm.tir.call_packed("rust.double", i[0], o[0]))
double = tvm.build(tvm.te.create_schedule(b.op), [a, b], target="llvm")
y = tvm.nd.empty((4,), "float32")
double(x, y)
np.testing.assert_array_equal(y.numpy(), [0, 2, 4, 6])

lib = tvm.runtime.load_module(sys.argv[2])
data = tvm.nd.array(np.ones((1, 3, 8, 8), "float32"))
for given in (lib, get("rust.load")(sys.argv[2])):
    scores = get("rust.run")(given, data).numpy()
    assert abs(scores.sum() - 1) < 1e-5

from slipway import relay

x = relay.var("x", shape=(relay.Dim("n", 1, 8), 3))
relay.build(relay.Function([x], relay.cumsum(x, axis=0)), "llvm").export_library(sys.argv[3])
model = get("rust.load")(sys.argv[3])
for n in (2, 8, 1):
    found = get("rust.run")(model, tvm.nd.array(np.ones((n, 3), "float32"))).numpy()
    np.testing.assert_array_equal(found[:, 0], np.arange(1, n + 1))
try:
    get("rust.run")(model, tvm.nd.array(np.ones((9, 3), "float32")))
    raise SystemExit("a size out of its range was taken")
except tvm.errors.ExecutionError as error:
    assert "n is 1 to 8" in str(error)
print("done")
"""


def test_one_table_with_python(cargo, model, tmp_path):
    write_crate(tmp_path, "functions", "cdylib", FUNCTIONS)
    folder = str(Path(libinfo.find_lib_path()[0]).parent)
    cargo(tmp_path, "build", SLIPWAY_LIB_DIR=folder)
    library = cargo.target / "debug" / "libfunctions.so"
    variables = {**os.environ, "LD_LIBRARY_PATH": folder}
    command = [sys.executable, "-c", BESIDE_PYTHON, library, model.library, tmp_path / "open.so"]
    assert foreign.run(command, env=variables) == "done\n"


FIRMWARE = """
#![no_std]
use slipway_rt::{aot_model, call_compiled, AlignedTo64, View};

aot_model! {
    mod scores = "tvmgen_default_run" {
        inputs { input: [f32; 192] }
        outputs { output: [f32; 4] }
    }
}

extern "C" {
    #[link_name = "__tvm_ffi_add_one"]
    fn add_one(
        handle: *mut core::ffi::c_void,
        args: *const slipway_rt::abi::Any,
        count: i32,
        result: *mut slipway_rt::abi::Any,
    ) -> i32;
}

#[no_mangle]
pub extern "C" fn classify(out: &mut [f32; 4]) -> i32 {
    let input = AlignedTo64([1.0; 192]);
    match scores::run(scores::Inputs { input: &input.0 }, scores::Outputs { output: out }) {
        Ok(()) => 0,
        Err(failed) => failed.status,
    }
}

#[no_mangle]
pub extern "C" fn increment(values: &mut [f32; 4], extent: i64) -> i32 {
    let mut from = AlignedTo64([1.0f32, 2.0, 3.0, 4.0]);
    let (mut shape, mut to_shape) = ([4i64], [extent]);
    let views = (View::new(&mut from.0, &mut shape), View::new(&mut values[..], &mut to_shape));
    match views {
        (Some(from), Some(to)) => match unsafe { call_compiled(add_one, &mut [from, to]) } {
            Ok(()) => 0,
            Err(failed) => failed.status,
        },
        _ => 77,
    }
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    loop {}
}
"""

FIRMWARE_MAIN = """
#include <stdint.h>
#include <stdio.h>
/* This machine's `core` was built to unwind; that of a Cortex-M asks for no such function. */
void rust_eh_personality(void) {}
int classify(float *out);
int increment(float *values, int64_t extent);
int main(void) {
  static _Alignas(64) float out[4];
  int status = classify(out);
  printf("%d %.6f %.6f %.6f %.6f\\n", status, out[0], out[1], out[2], out[3]);
  status = increment(out, 4);
  printf("%d %g %g %g %g\\n", status, out[0], out[1], out[2], out[3]);
  printf("%d\\n", increment(out, 5));
  return 0;
}
"""


def write_firmware(model, target, folder):
    """Write a model, a function and main.c to `folder`; returns the C sources and a flag."""
    aot = tvm.relay.build(
        model.module,
        target=target,
        params=model.params,
        executor=Executor("aot", {"unpacked-api": True, "interface-api": "c"}),
        runtime=Runtime("crt"),
    )
    micro.export_model_library_format(aot, str(folder / "model.tar"))
    shutil.unpack_archive(folder / "model.tar", folder / "model")
    a = tvm.te.placeholder((4,), "float32", name="a")
    b = tvm.te.compute(a.shape, lambda i: a[i] + 1.0, name="b")
    add_one = tvm.build(tvm.te.create_schedule(b.op), [a, b], target=target, name="add_one")
    (folder / "add_one.c").write_text(add_one.get_source())
    (folder / "main.c").write_text(FIRMWARE_MAIN)
    host = folder / "model" / "codegen" / "host"
    sources = [*(host / "src").glob("*.c"), folder / "main.c", folder / "add_one.c"]
    return [f"-I{host / 'include'}", *sources]


def check_firmware(printed, model):
    lines = printed.splitlines()
    assert lines[0].split()[0] == "0"
    assert [float(x) for x in lines[0].split()[1:]] == pytest.approx(list(model.output), abs=2e-6)
    assert lines[1:] == ["0 2 3 4 5", "77"]


def test_without_the_standard_library(cargo, model, tmp_path):
    """A model and a function compiled ahead of time, called from `no_std` Rust with core alone."""
    sources = write_firmware(model, "c", tmp_path)
    write_crate(tmp_path, "firmware", "staticlib", FIRMWARE, ", default-features = false")
    cargo(tmp_path, "build", "--release", CARGO_PROFILE_RELEASE_PANIC="abort")
    archive = cargo.target / "release" / "libfirmware.a"
    foreign.run(["cc", *sources, archive, "-lm", "-o", tmp_path / "program"])
    check_firmware(foreign.run([tmp_path / "program"]), model)
    undefined = subprocess.run(
        ["nm", "--undefined-only", archive], capture_output=True, text=True, check=True
    )
    assert "malloc" not in undefined.stdout


THUMB = "thumbv7em-none-eabi"


def core_of_a_cortex_m(rustc, folder):
    """Return flags for the `core` of `THUMB`: that which is installed, or its sources compiled."""
    sysroot = Path(foreign.run([rustc, "--print", "sysroot"]).strip())
    if (sysroot / "lib" / "rustlib" / THUMB / "lib").is_dir():
        return []
    source = sysroot / "lib" / "rustlib" / "src" / "rust" / "library" / "core" / "src" / "lib.rs"
    if not source.is_file():
        pytest.skip(f"no core for {THUMB}: rustup target add {THUMB}, or apt-get install rust-src")
    (folder / "builtins.rs").write_text(
        "#![feature(compiler_builtins)]\n#![compiler_builtins]\n#![no_std]\n"
    )
    for name, path in (("core", source), ("compiler_builtins", folder / "builtins.rs")):
        flags = [
            f"--target={THUMB}", "--crate-type=rlib", f"--crate-name={name}", "--edition=2021",
            "-Copt-level=1", "-Cpanic=abort", "-Awarnings", "--out-dir", folder, "-L", folder,
        ]  # fmt: skip
        environment = {**os.environ, "RUSTC_BOOTSTRAP": "1"}  # core uses what no release offers
        foreign.run([rustc, *flags, path], env=environment)
    return ["-L", folder, f"--sysroot={folder / 'none'}"]


@pytest.mark.long
def test_on_a_cortex_m4(model, tmp_path):
    """The same crate and program as firmware; libc's and libgcc's functions do for the builtins."""
    rustc = os.environ.get("RUSTC") or foreign.needed("rustc")
    foreign.needed("arm-none-eabi-gcc")
    qemu = foreign.needed("qemu-system-arm")
    flags = [f"--target={THUMB}", "--edition=2021", "-Copt-level=2", "-Cpanic=abort"]
    flags += ["--out-dir", tmp_path, *core_of_a_cortex_m(rustc, tmp_path)]
    crate = ["--crate-type=rlib", "--crate-name=slipway_rt", CRATE / "src" / "lib.rs"]
    foreign.run([rustc, *flags, *crate])
    (tmp_path / "firmware.rs").write_text(FIRMWARE)
    found = f"slipway_rt={tmp_path / 'libslipway_rt.rlib'}"
    foreign.run(
        [rustc, *flags, "--crate-type=staticlib", "--extern", found, tmp_path / "firmware.rs"]
    )
    sources = write_firmware(model, "c -mcpu=cortex-m4", tmp_path)
    link = ["--specs=rdimon.specs", "-Wl,--gc-sections,-u,vectors,--section-start=.vectors=0"]
    machine = ["-mcpu=cortex-m4", "-mthumb", "-Os", *foreign.compile_flags(), *link]
    parts = [*sources, foreign.CPP / "cpp_vectors.c", tmp_path / "libfirmware.a", "-lm"]
    foreign.run(["arm-none-eabi-gcc", *machine, *parts, "-o", tmp_path / "firmware"])
    board = [qemu, "-M", "mps2-an386", "-nographic", "-monitor", "none", "-serial", "none"]
    check_firmware(foreign.run([*board, "-semihosting", "-kernel", tmp_path / "firmware"]), model)
