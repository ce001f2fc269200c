"""One test file of classic_tests.py: `tvm` becomes Slipway, and each test's end is written down.

python tools/classic_test_child.py FILE REPORT.jsonl LIMIT_S DONE.json
"""

from __future__ import annotations

import contextlib
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import sys
import traceback
import types
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from classic_child import Alias, shut_network
from classic_internals import drawn

# Names that NumPy had when the tests were written.
OLD_NUMPY = {
    "bool": bool, "int": int, "float": float, "object": object, "str": str, "complex": complex,
    "product": np.prod, "float_": np.float64, "int0": np.intp, "NaN": np.nan, "Inf": np.inf,
    "PINF": np.inf, "infty": np.inf, "unicode_": np.str_, "sometrue": np.any, "alltrue": np.all,
}  # fmt: skip


# What some tests of a file use, and others do not: imported, it skips the test that asks it.
ABSENT = ("torchvision", "tensorflow", "mxnet", "cloudpickle", "PIL", "cv2", "gluoncv")


# What tests import of TVM's own insides; one that uses it is left out.
INSIDES = (
    "tvm.utils", "tvm.topi.cuda.conv3d_winograd", "tvm.te.hybrid.runtime", "tvm.hybrid.runtime",
    "tvm.relay.backend.graph_executor_codegen", "tvm.contrib.cuda_graph",
    "tvm.topi.x86.conv2d_avx_common", "tvm.topi.arm_cpu.conv2d_gemm",
    "tvm.relay.qnn.op.legalizations", "relay.utils.assert_diagnostic", "utils.assert_diagnostic",
)  # fmt: skip


# Names of TVM's own insides in modules that are here, which files of tests import.
NAMES = (
    ("slipway.topi.nn.conv2d", "_get_workload"),
    ("slipway.topi.nn.depthwise_conv2d", "_get_workload"),
    ("slipway.topi.x86", "dense_pack"),
    ("slipway.topi.cuda", "conv2d_hwnc_tensorcore"),
    ("slipway.topi.cuda", "schedule_conv2d_hwnc_tensorcore"),
    ("slipway.tir.analysis", "_ffi_api"),
)  # fmt: skip


# Helpers of TVM's tests that are a part of its package: workloads and runners that do nothing.
HELPERS = (
    "tvm.testing.autotvm", "tvm.testing.auto_scheduler", "tvm.meta_schedule.testing",
    "tvm.tir.tensor_intrin", "tvm.topi.nn.winograd_util",
)  # fmt: skip


class Helpers(importlib.abc.MetaPathFinder):
    """Finds the helpers of the tests in the checkout that the tests are of."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return where a module of the checkout is."""
        if not any(name == one or name.startswith(f"{one}.") for one in HELPERS):
            return None
        at = Path(os.environ["TVM_HOME"], "python", *name.split("."))
        if (at / "__init__.py").is_file():
            return importlib.util.spec_from_file_location(
                name, at / "__init__.py", submodule_search_locations=[str(at)]
            )
        file = at.with_suffix(".py")
        return importlib.util.spec_from_file_location(name, file) if file.is_file() else None


class Skipper:
    """A name of a module that is not there: its use skips the test."""

    def __init__(self, name: str) -> None:
        self.__dict__["name"] = name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Skip the test that calls it."""
        return pytest.skip(f"needs {self.name}")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return pytest.skip(f"needs {self.name}")


class Absent(types.ModuleType):
    """A package that is not installed."""

    __path__: ClassVar[list[str]] = []

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__spec__ = importlib.machinery.ModuleSpec(name, None)  # find_spec wants one

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if self.__name__ in INSIDES:
            return Skipper(f"{self.__name__}.{name}")
        return pytest.skip(f"needs {self.__name__}", allow_module_level=True)


def stand_in() -> None:
    """Make the packages of ABSENT importable, where they are not installed."""
    for name in ABSENT:
        if importlib.util.find_spec(name) is None:
            sys.modules[name] = Absent(name)
    for name in INSIDES:  # under both names, as `from tvm.relay.backend import ...` looks
        sys.modules[name] = sys.modules[name.replace("tvm.", "slipway.", 1)] = Absent(name)
    for module, name in NAMES:
        found = importlib.import_module(module)
        if not hasattr(found, name):
            setattr(found, name, Skipper(f"{module}.{name}"))


def old_onnx(is_of_onnx: bool) -> None:
    """Give onnx the table of dtypes that it had, where it is installed without."""
    if importlib.util.find_spec("onnx") is None or importlib.util.find_spec("onnx.mapping"):
        return
    import onnx
    from onnx import helper

    # The cases of its operators are no longer installed: they are made by a command of its own.
    listed = os.listdir
    os.listdir = lambda path=".": (  # type: ignore[assignment, misc]
        [] if str(path).endswith("onnx/backend/test/data/node") else listed(path)
    )
    table = types.ModuleType("onnx.mapping")
    numbers = [n for n in helper.get_all_tensor_dtypes() if n != onnx.TensorProto.BFLOAT16]
    pairs = [(n, np.dtype(helper.tensor_dtype_to_np_dtype(n))) for n in numbers]
    table.__dict__.update(
        TENSOR_TYPE_TO_NP_TYPE=dict(pairs), NP_TYPE_TO_TENSOR_TYPE={t: n for n, t in pairs}
    )
    sys.modules["onnx.mapping"] = table
    if is_of_onnx:  # a model that names no opset is one of the newest: that of those releases' time
        onnx.defs.onnx_opset_version = lambda: 15
    for module in (onnx, helper):
        module.__dict__["mapping"] = table


def old_tensorflow() -> None:
    """Let TensorFlow run its older converter to TFLite in this process: a program takes seconds."""
    if importlib.util.find_spec("tensorflow") is None:
        return
    from tensorflow.lite.python import convert

    try:
        from tensorflow.lite.toco.python.toco_from_protos import _pywrap_toco_api
    except ImportError:  # it went with TensorFlow 2.20
        return

    def converted(model: bytes, flags: bytes, data: bytes, *_: Any, **__: Any) -> Any:
        return _pywrap_toco_api.TocoConvert(model, flags, data, False)

    convert._run_deprecated_conversion_binary = converted


class Report:
    """Writes a line when a test begins and when it ends, so that a death of the process shows."""

    def __init__(self, path: Path, done: set[str]) -> None:
        self.out = path.open("a", encoding="utf-8")
        self.done = done

    def line(self, **fields: Any) -> None:
        """Write one line."""
        self.out.write(json.dumps(fields) + "\n")
        self.out.flush()

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave out what a process before this one has run, and say what is there."""
        every, sample, seed = (
            int(os.environ.get(f"CLASSIC_{name}", default))
            for name, default in (("EVERY", "1"), ("SAMPLE", "0"), ("SEED", "0"))
        )
        wanted = drawn(items, every, sample, seed)
        items[:] = [i for i in wanted if i.nodeid not in self.done]
        self.line(collected=[i.nodeid for i in items])

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Write down why a file cannot be collected."""
        if report.failed:
            self.line(broken=cause_of(report.longrepr))
        elif report.skipped:
            self.line(skipped_file=str(report.longrepr)[-300:])

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Write down that a test begins."""
        self.line(begin=nodeid)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: Any) -> Any:
        """Write down how a phase of a test ended, where it did not pass."""
        report = (yield).get_result()
        error = call.excinfo.value if call.excinfo else None
        lacking = isinstance(error, ModuleNotFoundError)
        if report.failed and lacking and (call.excinfo.value.name or "").partition(".")[0] not in (
            "tvm", "topi", "slipway"
        ):  # fmt: skip
            self.line(end=item.nodeid, state="skipped", cause=str(call.excinfo.value))
        elif report.failed and type(error).__name__ == "DownloadError":
            self.line(end=item.nodeid, state="skipped", cause=f"needs a download: {error}"[:300])
        elif report.failed and (who := reference_that_failed(error)):
            self.line(end=item.nodeid, state="skipped", cause=f"{who} itself: {error}"[:300])
        elif report.failed:
            self.line(end=item.nodeid, state="failed", cause=cause(call.excinfo.value))
        elif report.skipped:
            self.line(end=item.nodeid, state="skipped", cause=str(report.longrepr)[-300:])
        elif report.when == "call":
            self.line(end=item.nodeid, state="passed", cause="")


def reference_that_failed(error: BaseException) -> str:
    """Return the package, newer than the test, that refused to make its reference; "" if none."""
    frames = traceback.extract_tb(error.__traceback__)
    location = f"{type(error).__module__} {frames[-1].filename if frames else ''}"
    return next((p for p in ("onnxruntime", "tensorflow", "keras") if p in location), "")


def cause(error: BaseException) -> str:
    """Return an exception's type and first line, and where in Slipway or the test it arose."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if "/slipway/" in f.filename or "/tests/" in f.filename]
    last = own[-1] if own else None
    where = f"{Path(last.filename).name}:{last.lineno}" if last else "?"
    test = [f for f in frames if "/tests/" in f.filename]
    line = test[-1].line if test else ""
    text = (str(error).strip().splitlines() or [""])[0]
    return f"{type(error).__name__}: {text[:260]} [{where}] <{(line or '')[:120]}>"


def cause_of(longrepr: Any) -> str:
    """Return the last line of what pytest says about a file that it cannot collect."""
    lines = [line for line in str(longrepr).strip().splitlines() if line.startswith("E ")]
    return (lines or str(longrepr).strip().splitlines() or [""])[-1][:300]


def main() -> None:
    """Run the file's tests."""
    file, report, limit, done = sys.argv[1:5]
    sys.meta_path[:0] = [Alias(), Helpers()]
    if any(name in file for name in ("tensorflow", "tflite", "keras")):
        with contextlib.suppress(ImportError):  # before NumPy has its old names: it takes no other
            importlib.import_module("tensorflow")
    shut_network()
    stand_in()
    old_onnx("onnx" in file)
    if "tflite" in file:
        old_tensorflow()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, value in OLD_NUMPY.items():
            if not hasattr(np, name):
                setattr(np, name, value)
    pytest.main(
        [file, "-q", "--noconftest", "-p", "no:cacheprovider", "-p", "slipway.testing.plugin",
         "-p", "no:xdist", "-o", "addopts=", "--import-mode=prepend", "-c", "/dev/null",
         f"--timeout={limit}", "--timeout-method=signal", "-W", "ignore", "--tb=no"],
        plugins=[Report(Path(report), set(json.loads(Path(done).read_text())))],
    )  # fmt: skip


if __name__ == "__main__":
    main()
