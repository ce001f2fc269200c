"""The onnx package's C++ code, in a process of its own.

Shape inference, the checker and the version converter are native code made for sound models: an
operator of a foreign domain, an attribute of another type or a function that calls itself ends the
process, or never ends.  A model is a stranger's file, so none of them runs here.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

from slipway.frontends.onnx.reader import onnx_package

LIMIT_S = 5  # of processor time of the child: the largest sound models need tenths of it
MEMORY_BYTES = 4 << 30  # address space of the child, and so many times the model's own size:
MEMORY_FACTOR = 8

# The child reads a model, writes a model, or says why not and exits with REFUSED.
REFUSED = 3
_CHILD = f"""
import sys
try:
    import resource
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, ({LIMIT_S}, {LIMIT_S}))
    resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[2]), int(sys.argv[2])))
except (ImportError, ValueError, OSError):
    pass
import onnx, onnx.checker, onnx.shape_inference, onnx.version_converter
data = sys.stdin.buffer.read()
try:
    if sys.argv[1] == "infer":
        made = onnx.shape_inference.infer_shapes(data)
    elif sys.argv[1] == "check":
        made = onnx.ModelProto()
        made.ParseFromString(data)
        context = onnx.checker.C.CheckerContext()
        context.ir_version = made.ir_version
        context.opset_imports = {{e.domain: e.version for e in made.opset_import}}
        for node in made.graph.node:  # bodies read names from outside, which it does not know of
            if not any(a.type in (a.GRAPH, a.GRAPHS) for a in node.attribute):
                onnx.checker.check_node(node, context)
        made = onnx.shape_inference.infer_shapes(data, check_type=True, strict_mode=True)
    else:
        made = onnx.ModelProto()
        made.ParseFromString(data)
        made = onnx.version_converter.convert_version(made, int(sys.argv[1]))
except MemoryError:
    sys.exit(1)
except Exception as error:
    text = str(error).strip() or type(error).__name__
    sys.stderr.write(text)
    sys.stderr.flush()
    sys.exit({REFUSED})
sys.stdout.buffer.write(made if isinstance(made, bytes) else made.SerializeToString())
"""


class ModelRefused(Exception):
    """What onnx said against a model; an empty text when its process died or ran out of time."""


def inferred(proto: Any) -> Any:
    """Return the model with the types that ONNX's inference finds, or raise `ModelRefused`."""
    return _run("infer", proto)


def objection(proto: Any) -> str:
    """Return what the checker or strict shape inference holds against the nodes, "" for nothing.

    A process that dies of the model is no objection: it says nothing about the model.
    """
    try:
        _run("check", proto)
    except ModelRefused as refused:
        return str(refused)
    return ""


def converted(proto: Any, opset: int) -> Any:
    """Return the model in another opset, or raise `ModelRefused`."""
    return _run(str(opset), proto)


def _run(task: str, proto: Any) -> Any:
    try:
        data = proto.SerializeToString()
        memory = MEMORY_BYTES + MEMORY_FACTOR * len(data)
        ended = subprocess.run(
            [sys.executable, "-c", _CHILD, task, str(memory)],
            input=data,
            capture_output=True,
            timeout=2 * LIMIT_S,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            check=False,
        )
    except Exception as error:  # no interpreter, too slow, more than protobuf can write
        raise ModelRefused("") from error
    if ended.returncode == REFUSED:
        raise ModelRefused(ended.stderr.decode(errors="replace").strip())
    made = onnx_package().ModelProto()
    try:
        if ended.returncode == 0 and ended.stdout:
            made.ParseFromString(ended.stdout)
            return made
    except Exception as error:  # protobuf's DecodeError lives in a private module
        raise ModelRefused("") from error
    raise ModelRefused("")
