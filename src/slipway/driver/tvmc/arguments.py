"""The options of tvmc's commands, as TVM 0.8 to 0.14 spelled them."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Sequence
from typing import Any

from slipway.driver.tvmc import micro
from slipway.driver.tvmc.autotuner import TUNERS
from slipway.driver.tvmc.composite_target import get_codegen_names
from slipway.driver.tvmc.config_options import read_config, words_of
from slipway.driver.tvmc.model import TVMCException
from slipway.driver.tvmc.registry import generate_registry_args
from slipway.driver.tvmc.workspace_pools import generate_workspace_pools_args
from slipway.relay import op_registry
from slipway.relay.backend import Executor, Runtime

DEVICES = ("cpu", "cuda", "cl", "opencl", "metal", "vulkan", "rocm", "micro")
_PRECISIONS = ("float16", "bfloat16", "float32")
# What TVM's auto_scheduler is told of a device: with --enable-autoscheduler alone, as there.
_HARDWARE = (
    "cache-line-bytes", "num-cores", "vector-unit-bytes", "max-shared-memory-per-block",
    "max-local-memory-per-block", "max-threads-per-block", "max-vthread-extent", "warp-size",
)  # fmt: skip
_LAYOUT = re.compile(r"[NCHWDOIT][A-Zc0-9]*(:[A-Z][A-Za-z0-9]*)?")
# Options of a kind of target: `--target-llvm-mcpu skylake`.
_LIBRARIES = "|".join(map(re.escape, get_codegen_names()))
OF_A_TARGET = re.compile(rf"--target-({_LIBRARIES}|[a-z][a-z0-9_]*)-([a-zA-Z_-]+)(?:=(.*))?")


def parsed(argv: Sequence[str]) -> argparse.Namespace:
    """Return the command line's meaning; `target_options` are those of kinds of targets."""
    plain, options = _without_target_options(_joined(_with_config(list(argv))))
    found = _parser().parse_args(plain)
    found.target_options = options
    return found


def tracker_of(text: str | None) -> tuple[str | None, int | None]:
    """Return (host, port) of ``host:port``; (None, None) without one."""
    if not text:
        return None, None
    host, _, port = text.removeprefix("//").partition(":")
    if port and not port.isdigit():
        raise TVMCException(f"--rpc-tracker {text!r} is not of the form host:port")
    return host, int(port or 9090)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tvmc", description="Compile, run and tune models with classic TVM's options."
    )
    parser.add_argument("--version", action="store_true", help="print the version")
    parser.add_argument("--config", metavar="FILE", help="a command's options as JSON")
    parser.add_argument(
        "--experimental-tvm-extension", action="append", default=[], metavar="FOLDER",
        help="a folder with a package tvm_extension, which brings accelerators; repeatable",
    )  # fmt: skip
    commands = parser.add_subparsers(dest="command")
    _compile(commands.add_parser("compile", help="compile a model"))
    _run(commands.add_parser("run", help="run a compiled model"))
    _tune(commands.add_parser("tune", help="search the schedules of a model's kernels"))
    micro.add_commands(commands.add_parser("micro", help="projects for microcontrollers"))
    return parser


def _model(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("FILE", help="the model: .onnx, .tflite, .pt2, .pth, .h5, .pb or .relay")
    parser.add_argument("--model-format", help="its format, where the name does not say it")
    parser.add_argument("--input-shapes", help='shapes, "data:[1,3,224,224]"')
    parser.add_argument("--target", required=True, help="the target, as Target() reads it")
    parser.add_argument("--target-host", help="the target of the processor beside it")
    layouts = "NCHW, NHWC or NHWC:HWIO: one for convolutions, or one for each of the operators"
    parser.add_argument("--desired-layout", type=_list, metavar="LAYOUT ...", help=layouts)
    parser.add_argument("--desired-layout-ops", type=_list, metavar="OP ...")
    parser.add_argument("--mixed-precision", action="store_true", help="products in 16 bits")
    parser.add_argument("--mixed-precision-ops", type=_list, metavar="OP ...")
    parser.add_argument("--mixed-precision-calculation-type", choices=_PRECISIONS)
    parser.add_argument("--mixed-precision-acc-type", choices=_PRECISIONS)
    parser.add_argument("--tuning-records", help="records of an earlier search")
    parser.add_argument("-v", "--verbose", action="count", default=0, help="without effect")


def _compile(parser: argparse.ArgumentParser) -> None:
    _model(parser)
    parser.add_argument("-o", "--output", default="module.tar", help="the package to write")
    parser.add_argument("-f", "--output-format", choices=("so", "tar", "mlf"), default="so")
    parser.add_argument("-O", "--opt-level", type=int, choices=range(4), default=3)
    parser.add_argument("--cross-compiler", default="", help="the linker of a .so")
    parser.add_argument("--cross-compiler-options", default="", help="its options")
    parser.add_argument("--dump-code", default="", help="asm, ll, c, relay: beside the package")
    parser.add_argument("--disabled-pass", "--disable-pass", default="", help="a,b")
    parser.add_argument("--pass-config", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--module-name", default="default", help="the name of functions in C")
    parser.add_argument("--print-pass-times", action="store_true", help="of this compilation")
    generate_workspace_pools_args(parser)
    generate_registry_args(parser, Executor, "graph")
    generate_registry_args(parser, Runtime, "cpp")


def _run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("PATH", help="what tvmc compile wrote; of micro a project")
    parser.add_argument("--project-option", nargs="+", action="extend", default=[],
                        metavar="NAME=VALUE", help="of the project of micro")  # fmt: skip
    parser.add_argument("--device", choices=DEVICES, default="cpu")
    parser.add_argument("-i", "--inputs", help="an .npz file of inputs by name")
    parser.add_argument("-o", "--outputs", "--output", help="the .npz file to write outputs into")
    parser.add_argument("--fill-mode", choices=("zeros", "ones", "random", "range"),
                        default="random")  # fmt: skip
    parser.add_argument("--print-time", "--benchmark", action="store_true", dest="print_time")
    parser.add_argument("--print-top", type=int, metavar="N", help="print the N largest values")
    parser.add_argument("--profile", action="store_true", help="print the times of the layers")
    parser.add_argument("--end-to-end", action="store_true", help="with copies, in --print-time")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--number", type=int, default=1)
    parser.add_argument("--rpc-key", help="the key of a device of the tracker")
    parser.add_argument("--rpc-tracker", help="host:port of a tracker, or of a server without key")
    parser.add_argument("-v", "--verbose", action="count", default=0, help="without effect")


def _tune(parser: argparse.ArgumentParser) -> None:
    _model(parser)
    parser.add_argument("-o", "--output", required=True, help="the file of records to write")
    parser.add_argument("--trials", type=int, default=10000, help="of all kernels together")
    parser.add_argument("--timeout", type=float, default=10, help="seconds of a trial")
    parser.add_argument("--tuner", choices=TUNERS, default="xgb")
    parser.add_argument("--early-stopping", type=int)
    parser.add_argument("--enable-autoscheduler", action="store_true",
                        help="there is one search: without effect")  # fmt: skip
    parser.add_argument("--rpc-key")
    parser.add_argument("--rpc-tracker")
    parser.add_argument("--tasks", default="all", help="all of them are searched")
    for name in ("include-simple-tasks", "log-estimated-latency"):
        parser.add_argument(f"--{name}", action="store_true", help="of the auto_scheduler's")
    for name in _HARDWARE:
        parser.add_argument(f"--{name}", type=int, help="of the auto_scheduler's")
    for name in ("number", "repeat", "parallel", "min-repeat-ms"):
        parser.add_argument(f"--{name}", type=int, help="the search decides it: without effect")


def _list(text: str) -> list[str]:
    return [word for word in text.split(",") if word]


def _is_op(word: str) -> bool:
    return word in op_registry.load_ops()


def _joined(argv: list[str]) -> list[str]:
    """Join the values of options that take many, so that a model's name after them is left."""
    many: dict[str, Callable[[str], object]] = {
        "--desired-layout": _LAYOUT.fullmatch,
        "--desired-layout-ops": _is_op,
        "--mixed-precision-ops": _is_op,
    }
    words: list[str] = []
    while argv:
        word = argv.pop(0)
        words.append(word)
        if word in many and argv:
            values = [argv.pop(0)]
            while argv and many[word](argv[0]):
                values.append(argv.pop(0))
            words.append(",".join(values))
    return words


def _with_config(argv: list[str]) -> list[str]:
    """Put a file's options behind the command, where those of the line come later and hold."""
    for number, word in enumerate(argv):
        name, equals, path = word.partition("=")
        if name == "--config":
            path = path if equals else "".join(argv[number + 1 : number + 2])
            rest = argv[:number] + argv[number + (1 if equals else 2) :]
            return rest[:1] + words_of(read_config(path)) + rest[1:]
    return argv


def _without_target_options(argv: list[str]) -> tuple[list[str], dict[str, dict[str, Any]]]:
    """Take ``--target-llvm-mcpu skylake`` out of a command line."""
    plain: list[str] = []
    options: dict[str, dict[str, Any]] = {}
    while argv:
        word = argv.pop(0)
        found = None if word.startswith("--target-host") else OF_A_TARGET.fullmatch(word)
        if found is None:
            plain.append(word)
            continue
        if found[3] is None and not argv:
            raise TVMCException(f"{word} has no value")
        value = argv.pop(0) if found[3] is None else found[3]
        options.setdefault(found[1], {})[found[2]] = value
    return plain, options
