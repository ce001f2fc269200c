"""Run a program under a kernel that lacks some system calls: they answer ENOSYS, or as told.

    python without_calls.py fallocate,getrandom=22 program arguments...

A seccomp filter on this process and its children; no root is needed.
"""

import ctypes
import os
import platform
import struct
import sys

NUMBERS = {  # x86_64, aarch64
    "accept4": (288, 242),
    "fallocate": (285, 47),
    "flock": (73, 32),
    "getrandom": (318, 278),
    "memfd_create": (319, 279),
    "prlimit64": (302, 261),
    "renameat2": (316, 276),
    "statx": (332, 291),
}
MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
ENOSYS = 38


def is_possible():
    return sys.platform == "linux" and platform.machine() in MACHINES


def forbid(calls):
    column, machine = MACHINES[platform.machine()]
    load, jump_equal, leave = 0x20, 0x15, 0x06
    allow = (leave, 0, 0, 0x7FFF0000)
    program = [(load, 0, 0, 4), (jump_equal, 1, 0, machine), allow, (load, 0, 0, 0)]
    for name, code in calls.items():
        program += [(jump_equal, 0, 1, NUMBERS[name][column]), (leave, 0, 0, 0x00050000 | code)]
    program.append(allow)
    raw = b"".join(struct.pack("<HBBI", *line) for line in program)
    buffer = ctypes.create_string_buffer(raw, len(raw))
    head = struct.pack("HxxxxxxP", len(program), ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, head, 0, 0):
        raise OSError(ctypes.get_errno(), "no seccomp filter")


if __name__ == "__main__":
    wanted = dict(part.partition("=")[::2] for part in sys.argv[1].split(","))
    forbid({name: int(code or ENOSYS) for name, code in wanted.items()})
    os.execvp(sys.argv[2], sys.argv[2:])
