"""The C program that runs models compiled ahead of time, and compares their outputs.

Names are classic's, which the `prologue` of a runner may use: ``tvmgen_<model>_input_data_<x>``,
``tvmgen_<model>_output_data_<y>``, ``tvmgen_<model>_expected_output_data_<y>``, and the structs
``tvmgen_<model>_inputs``, ``_outputs`` and ``_workspace_pools``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from slipway import dtypes
from slipway.codegen.c.spelling import c_type
from slipway.codegen.c.unpacked import constant_text

SUCCESS = "AOT_TEST_SUCCESS"
FAILURE = "AOT_TEST_FAILURE"
_FLOAT_TOLERANCE = 0.001
_TENSOR = """\
    {{.data = {data}, .device = {{kDLCPU, 0}}, .ndim = {ndim}, \
.dtype = {{{code}, {bits}, {lanes}}}, .shape = {shape}}},"""


def program_text(
    models: Sequence[Any],
    runner: Any,
    interface_api: str,
    linkage: Any,
    use_workspace_io: bool,
) -> str:
    """Return the program for compiled models; `models`, `runner` are those of `testing.aot`."""
    includes = [f'#include "{name}"' for name in runner.includes]
    attribute = ""
    if linkage is not None:
        attributes = f'section("{linkage.section}"), aligned({linkage.alignment})'
        attribute = f"__attribute__(({attributes})) "
    data, calls, checks = [], [], []
    for compiled in models:
        factory, model = compiled.executor_factory, compiled.model
        prefix = f"tvmgen_{factory.module_name}"
        includes.append(f"#include <{factory.sources.header_name}>")
        program = factory.program
        data += _data(prefix, "input_data", model.inputs, attribute)
        data += _data(prefix, "expected_output_data", model.outputs, attribute)
        zeros = {name: np.zeros_like(value) for name, value in model.outputs.items()}
        data += _data(prefix, "output_data", zeros, attribute)
        if interface_api == "packed":
            data.append(f"extern int __tvm_ffi_{prefix}_run(void *, const TVMFFIAny *, int32_t, "
                        "TVMFFIAny *);")  # fmt: skip
            calls += _packed_call(prefix, model)
        else:
            calls += _c_call(prefix, factory, program, model, runner, use_workspace_io)
        for port, (name, wanted) in zip(program.outputs, model.outputs.items(), strict=True):
            found = f"{prefix}_output_data_{_word(name)}"
            if use_workspace_io:
                word = c_type(str(np.asarray(wanted).dtype))
                found = f"(({word} *){prefix}_outputs.{port.c_name})"
            checks += _check(prefix, name, found, np.asarray(wanted), model)
    return "\n".join([
        "#include <math.h>", "#include <stdint.h>", "#include <stdio.h>", "#include <stdlib.h>",
        '#include "slipway/abi.h"',
        *includes,
        *data,
        "int main(void) {",
        runner.prologue,
        *calls,
        *checks,
        runner.epilogue,
        f'  printf("{SUCCESS}\\n");',
        "  return 0;",
        "}",
        "",
    ])  # fmt: skip


def tolerance_of(wanted: np.ndarray[Any, Any], given: float | None) -> float:
    """Return the largest difference that an output may have."""
    is_float = np.issubdtype(wanted.dtype, np.floating)
    return float(given or (_FLOAT_TOLERANCE if is_float else 0))


def _word(name: str) -> str:
    return re.sub(r"\W", "_", name)


def _data(prefix: str, what: str, arrays: Any, attribute: str) -> list[str]:
    lines = []
    for name, value in arrays.items():
        array = np.asarray(value)
        dtype = str(array.dtype)
        elements = ", ".join(constant_text(dtype, array.ravel())) or "0"
        own = f"{prefix}_{what}_{_word(name)}"
        lines.append(f"const size_t {own}_len = {array.size};")
        lines.append(f"{attribute}{c_type(dtype)} {own}[] __attribute__((aligned(16))) = "
                     f"{{{elements}}};")  # fmt: skip
    return lines


def _status(call: str, prefix: str) -> list[str]:
    return [
        f"  if ({call} != 0) {{",
        f'    printf("{FAILURE}: {prefix}_run failed\\n");',
        "    return 1;",
        "  }",
    ]


def _packed_call(prefix: str, model: Any) -> list[str]:
    """Return C that calls the packed function with tensors."""
    arrays = {f"{prefix}_input_data_{_word(n)}": v for n, v in model.inputs.items()}
    arrays |= {f"{prefix}_output_data_{_word(n)}": v for n, v in model.outputs.items()}
    tensors = [_tensor(name, np.asarray(value)) for name, value in arrays.items()]
    values = [
        f"    {{.type_index = kTVMFFIDLTensorPtr, .v_ptr = &{prefix}_tensors[{i}]}},"
        for i in range(len(arrays))
    ]
    return [
        f"  DLTensor {prefix}_tensors[] = {{", *tensors, "  };",
        f"  TVMFFIAny {prefix}_values[] = {{", *values, "  };",
        f"  TVMFFIAny {prefix}_result = {{0}};",
        *_status(f"__tvm_ffi_{prefix}_run(NULL, {prefix}_values, {len(arrays)}, "
                 f"&{prefix}_result)", prefix),
    ]  # fmt: skip


def _tensor(name: str, value: np.ndarray[Any, Any]) -> str:
    """Return C that describes the array `name`, whose values are these."""
    code, bits, lanes = dtypes.parse(str(value.dtype))
    extents = ", ".join(map(str, value.shape)) or "0"
    return _TENSOR.format(
        data=name, ndim=value.ndim, shape=f"(int64_t[]){{{extents}}}",
        code=dtypes.DLPACK_CODE[code], bits=bits, lanes=lanes,
    )  # fmt: skip


def _c_call(
    prefix: str, factory: Any, program: Any, model: Any, runner: Any, use_workspace_io: bool
) -> list[str]:
    """Return C that fills the structs of the interface, and calls it."""
    lines, arguments = [], []
    if not use_workspace_io:  # else the runner's prologue has mapped them
        for side, ports, what, names in (
            ("inputs", program.inputs, "input_data", list(model.inputs)),
            ("outputs", program.outputs, "output_data", list(model.outputs)),
        ):
            by_word = {_word(name): name for name in names}
            members = []
            for number, port in enumerate(ports):
                name = by_word.get(port.c_name, names[number] if number < len(names) else "")
                members.append(f".{port.c_name} = {prefix}_{what}_{_word(name)}")
            lines.append(f"  struct {prefix}_{side} {prefix}_{side} = {{{', '.join(members)}}};")
            arguments.append(f"&{prefix}_{side}")
    if factory.workspace_memory_pools is not None:
        arguments.append(f"&{prefix}_workspace_pools")
        if not use_workspace_io:
            lines += _pools(prefix, program, runner)
    return [*lines, *_status(f"{prefix}_run({', '.join(arguments)})", prefix)]


def _pools(prefix: str, program: Any, runner: Any) -> list[str]:
    """Return C that gives the model its pools: those of the prologue, else memory of its own."""
    lines, members = [], []
    for number, pool in enumerate(program.plan.pools):
        memory = pool.name
        if not re.search(rf"\b{re.escape(pool.name)}\s*\[", runner.prologue):
            memory = f"{prefix}_pool_{pool.name}"
            size = max(1, program.plan.pool_bytes(number))
            lines.append(f"  static uint8_t {memory}[{size}] __attribute__((aligned(256)));")
        members.append(f".{pool.name} = {memory}")
    struct = f"struct {prefix}_workspace_pools"
    return [*lines, f"  {struct} {prefix}_workspace_pools = {{{', '.join(members)}}};"]


def _check(prefix: str, name: str, found: str, wanted: Any, model: Any) -> list[str]:
    limit = tolerance_of(wanted, model.output_tolerance)
    expected = f"{prefix}_expected_output_data_{_word(name)}"
    return [
        f"  for (size_t i = 0; i < {expected}_len; ++i) {{",
        f"    if (!(fabs((double){found}[i] - (double){expected}[i]) <= {limit})) {{",
        f'      printf("{FAILURE}: {model.name}: {_word(name)}[%zu] is %g, not %g\\n",',
        f"             i, (double){found}[i], (double){expected}[i]);",
        "      return 1;",
        "    }",
        "  }",
    ]
