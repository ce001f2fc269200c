"""What a library has for a device: the code of its kernels, and what is in it."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass

from slipway.target import Target


def packed_code(target: Target, code: bytes) -> bytes:
    """Return the bytes of ``__slipway_device_code`` (crt/posix/devices/device_code.c)."""
    head = struct.pack("<4siQ", b"SLWD", target.kind.device_type, len(code))
    return head + code + bytes(-len(code) % 8)


@dataclass(frozen=True)
class KernelInfo:
    """A kernel of a device: the types of its arguments, and the axes of its threads."""

    name: str
    arg_types: tuple[str, ...]
    axes: tuple[str, ...]


@dataclass(frozen=True)
class DeviceCode:
    """What a library has for a device: code of kernels, by whose SHA-256 it is known.

    `code` is what the device's driver takes, `sources` the same kernels as texts by format.
    `host` is the target of the code that launches the kernels.  A library for several kinds of
    device has `others` too.
    """

    target: Target
    code: bytes
    sources: Mapping[str, str]
    kernels: tuple[KernelInfo, ...]
    host: Target
    others: tuple[DeviceCode, ...] = ()

    def packed(self) -> bytes:
        """Return the bytes of ``__slipway_device_code``: the code of each kind of device."""
        return b"".join(packed_code(part.target, part.code) for part in (self, *self.others))

    def metadata(self) -> str:
        """Return the text of the ``.tvm_meta.json`` beside the code: what it has, for people."""
        functions = {
            kernel.name: {
                "name": kernel.name,
                "arg_types": list(kernel.arg_types),
                "launch_param_tags": list(kernel.axes),
            }
            for kernel in self.kernels
        }
        return json.dumps({"tvm_version": "0.1.0", "func_info": functions}, indent=2) + "\n"
