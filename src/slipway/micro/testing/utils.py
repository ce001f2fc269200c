"""Boards, targets, messages of firmware, archives and logs, as classic's tests ask for them."""

from __future__ import annotations

import io
import json
import tarfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from slipway import relay
from slipway.errors import ArgumentValueError, TuningError
from slipway.ir.function import IRModule
from slipway.micro.board import board_names, find_board
from slipway.micro.project_api.server import IoTimeoutError
from slipway.target import Target
from slipway.target.models import micro
from slipway.transform.graph.classic import InferType

TIMEOUT_SEC = 10


def create_header_file(
    tensor_name: str,
    npy_data: np.ndarray[Any, Any],
    output_path: str | Path,
    tar_file: tarfile.TarFile,
) -> None:
    """Add a header with an array's elements to an archive, as `output_path`/`tensor_name`.h.

    It defines ``tensor_name[]`` in row-major order and ``tensor_name_len``, their number.
    """
    types = {"float32": "float", "float64": "double", "bool": "uint8_t"}
    dtype = npy_data.dtype.name
    if dtype not in types and npy_data.dtype.kind not in "iu":
        raise ArgumentValueError(f"create_header_file: no type of C stands for {dtype}")
    ctype = types.get(dtype, f"{dtype}_t")
    flat = npy_data.ravel()
    if not np.isfinite(flat).all():
        raise ArgumentValueError(
            f"create_header_file: {tensor_name} has elements that C cannot write"
        )
    literals = [repr(v) if npy_data.dtype.kind == "f" else str(int(v)) for v in flat.tolist()]
    lines = [", ".join(literals[i : i + 12]) for i in range(0, len(literals), 12)]
    text = (
        "#include <stddef.h>\n#include <stdint.h>\n#include <dlpack/dlpack.h>\n"
        f"const size_t {tensor_name}_len = {npy_data.size};\n"
        f"{ctype} {tensor_name}[] = {{\n" + ",\n".join(lines) + "\n};\n"
    ).encode()
    entry = tarfile.TarInfo(str(Path(output_path) / f"{tensor_name}.h"))
    entry.size, entry.mode = len(text), 0o644
    tar_file.addfile(entry, io.BytesIO(text))


def get_supported_platforms() -> list[str]:
    """Return the templates for boards that classic has, too."""
    return ["arduino", "zephyr"]


def get_supported_boards(platform: str) -> dict[str, dict[str, Any]]:
    """Return the boards that there is a description of; each template serves all of them."""
    del platform
    return {name: {"model": name, "target": find_board(name).target} for name in board_names()}


def get_target(platform: str, board: str | None = None) -> Target:
    """Return the target for a board; of the platform "crt", this machine's."""
    if platform == "crt":
        return micro("host")
    if not board:
        raise ArgumentValueError(f"the platform {platform!r} needs the name of a board")
    return Target(find_board(board).target)


def check_tune_log(log_path: str | Path) -> None:
    """Raise TuningError for a record of a tuning log that measured nothing."""
    for number, line in enumerate(Path(log_path).read_text().splitlines(), 1):
        if line.strip() and not json.loads(line)["result"][0][0] < 1e9:
            raise TuningError(f"{log_path}:{number} is of a trial that failed")


def aot_transport_init_wait(transport: Any) -> None:
    """Send the opening message until firmware says that it is awake."""
    while True:
        try:
            aot_transport_find_message(transport, "wakeup", timeout_sec=TIMEOUT_SEC)
            return
        except IoTimeoutError:
            transport.write(b"init%", timeout_sec=TIMEOUT_SEC)


def aot_transport_find_message(transport: Any, expression: str, timeout_sec: float) -> str:
    """Return the first line of a transport that holds `expression`; IoTimeoutError without one."""
    end = time.monotonic() + timeout_sec
    while True:
        line = _line(transport, max(0.0, end - time.monotonic()))
        if expression in line:
            return line


def _line(transport: Any, timeout_sec: float) -> str:
    data = bytearray()
    while not data.endswith(b"\n"):
        data += transport.read(1, timeout_sec=timeout_sec)
    return data.decode("utf-8", errors="replace")


def mlf_extract_workspace_size_bytes(mlf_tar_path: str | Path) -> int:
    """Return the workspace of all models of a Model Library Format archive, in bytes."""
    with tarfile.open(mlf_tar_path, "r:*") as archive:
        member = archive.extractfile("./metadata.json")
        assert member is not None
        modules = json.load(member)["modules"].values()
    return sum(m["memory"]["functions"]["main"][0]["workspace_size_bytes"] for m in modules)


def get_conv2d_relay_module() -> IRModule:
    """Return a module of one int8 convolution, of 8 channels over 64 by 64 points."""
    data = relay.var("data", relay.TensorType((1, 3, 64, 64), "int8"))
    weight = relay.var("weight", relay.TensorType((8, 3, 5, 5), "int8"))
    result = relay.nn.conv2d(
        data, weight, padding=(2, 2), channels=8, kernel_size=(5, 5), out_dtype="int32"
    )
    module: IRModule = InferType()(IRModule.from_expr(relay.Function((data, weight), result)))
    return module
