"""Devices that are not here: kernels in their language, compiled as C++, run on this processor.

`languages/` has the headers that stand for CUDA's and Metal's.  Such a device is entered into the
runtime like a driver's (crt's device_api.h), so that whole programs launch its kernels.
"""

import ctypes
import hashlib
import re
import shutil
import subprocess
from pathlib import Path

from slipway.runtime.native_library import native_runtime

HEADERS = Path(__file__).parent / "languages"
_TYPES = {"cuda": 2, "metal": 8}
_C_TYPES = {
    "1": ctypes.c_int8, "2": ctypes.c_int16, "4": ctypes.c_int32, "8": ctypes.c_int64,
    "f": ctypes.c_float, "d": ctypes.c_double, "p": ctypes.c_void_p,
}  # fmt: skip
_SIZES = ctypes.c_size_t * 3
_OK, _FAILED, _EXIST, _INT = 0, 14, 0, 1


class _Any(ctypes.Structure):
    _fields_ = [("type_index", ctypes.c_int32), ("pad", ctypes.c_int32), ("value", ctypes.c_int64)]


class _Launch(ctypes.Structure):
    _fields_ = [
        ("digest", ctypes.c_char_p),
        ("kernel", ctypes.c_char_p),
        ("signature", ctypes.c_char_p),
        ("grid", _SIZES),
        ("block", _SIZES),
        ("args", ctypes.POINTER(_Any)),
    ]


_P, _N, _I = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int32
_FUNCTIONS = {
    "alloc": (_I, _I, _N, ctypes.POINTER(_P)),
    "release": (None, _P),
    "device_of": (_I, _P, ctypes.POINTER(_I)),
    "read": (_I, _P, _P, _N),
    "write": (_I, _P, _P, _N),
    "copy": (_I, _P, _P, _N),
    "add_code": (_I, ctypes.c_char_p, _P, _N),
    "launch": (_I, ctypes.POINTER(_Launch)),
    "synchronize": (_I, _I),
    "wait_all": (_I,),
    "attribute": (_I, _I, _I, ctypes.POINTER(_Any)),
}
_CALLS = {name: ctypes.CFUNCTYPE(*types) for name, types in _FUNCTIONS.items()}


class _Api(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), *_CALLS.items()]


class SimulatedDevice:
    """A kind of device whose memory is this process's and whose kernels are C++."""

    def __init__(self, kind, folder):
        self.kind, self.folder = kind, folder
        self.texts, self.libraries, self.memory = {}, {}, {}
        self.launched = []
        self.compiler = shutil.which("clang++") or shutil.which("g++")
        calls = {name: call(getattr(self, "_" + name)) for name, call in _CALLS.items()}
        self.api = _Api(kind.encode(), *calls.values())
        native_runtime().lib.slw_device_register(_TYPES[kind], ctypes.byref(self.api))

    def leave(self):
        """Take the device out of the runtime."""
        native_runtime().lib.slw_device_register(_TYPES[self.kind], None)

    def learn(self, module):
        """Run the text of a module's kernels where a program launches what the driver compiles."""
        digest = hashlib.sha256(module.text.encode()).hexdigest()
        self.texts[digest] = module.get_source(self.kind)

    def library(self, digest):
        """Return the compiled kernels of a program."""
        if digest not in self.libraries:
            text = self.texts[digest]
            names = re.findall(r"^(?:void |kernel void )?(\w+_kernel\d+)\(", text, re.MULTILINE)
            entries = "".join(f"SLW_ENTRY({name})\n" for name in names)
            source, made = (self.folder / f"{digest}.{suffix}" for suffix in ("cc", "so"))
            if self.kind == "cuda":
                text = '#include "cuda.h"\n' + text
            # A variable of a block is static here; in the type of a pointer the word is nothing.
            text = re.sub(
                r"^(\s*)threadgroup (?=\w+ \w+\[)", r"\1static ", text, flags=re.MULTILINE
            )
            source.write_text(text + entries)
            command = [self.compiler, "-std=c++17", "-O1", "-ffp-contract=off", "-shared", "-fPIC"]
            command += ["-Wno-unknown-attributes", "-Wno-attributes", "-Wno-unknown-pragmas"]
            command += [f"-I{HEADERS}", str(source), "-o", str(made)]
            subprocess.run(command, check=True, capture_output=True, text=True)
            self.libraries[digest] = ctypes.CDLL(str(made))
        return self.libraries[digest]

    # What the runtime calls.

    def _alloc(self, device_id, size, out):
        held = ctypes.create_string_buffer(max(1, size) + 64)
        at = (ctypes.addressof(held) + 63) & ~63
        self.memory[at] = held
        out[0] = at
        return _OK

    def _release(self, address):
        self.memory.pop(address, None)

    def _device_of(self, address, device_id):
        device_id[0] = 0
        return _OK

    def _read(self, source, host, size):
        ctypes.memmove(host, source, size)
        return _OK

    def _write(self, to, host, size):
        ctypes.memmove(to, host, size)
        return _OK

    def _copy(self, source, to, size):
        ctypes.memmove(to, source, size)
        return _OK

    def _add_code(self, digest, code, size):
        self.texts.setdefault(digest.decode(), ctypes.string_at(code, size).decode())
        return _OK

    def _launch(self, launch):
        one = launch[0]
        try:
            entry = getattr(self.library(one.digest.decode()), f"slw_entry_{one.kernel.decode()}")
        except subprocess.CalledProcessError as error:
            return self._fail(error.stderr)
        held = []
        for kind, arg in zip(one.signature.decode(), one.args[: len(one.signature)], strict=True):
            if kind in "fd":
                value = ctypes.c_double.from_buffer(ctypes.c_int64(arg.value)).value
            else:
                value = arg.value
            held.append(_C_TYPES[kind](value))
        pointers = (_P * len(held))(*[ctypes.addressof(value) for value in held])
        self.launched.append(one.kernel.decode())
        if entry(one.grid, one.block, pointers):
            return self._fail(f"{one.kernel.decode()}: only some threads of a block meet a barrier")
        return _OK

    def _fail(self, message):
        native_runtime().lib.slw_error_set(b"DeviceError", message.encode())
        return _FAILED

    def _synchronize(self, device_id):
        return _OK

    def _wait_all(self):
        return _OK

    def _attribute(self, device_id, attribute, out):
        out[0] = _Any(_INT, 0, int(device_id == 0)) if attribute == _EXIST else _Any(0, 0, 0)
        return _OK
