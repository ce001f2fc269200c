"""Devices that are not here: kernels in their language, compiled for this processor.

CUDA C and Metal's language compile as C++ with the headers of `languages/`; LLVM IR for NVIDIA's
GPUs compiles for this processor once the functions that give a thread's number are renamed.  Such
a device is entered into the runtime like a driver's (crt's device_api.h), so that whole programs
launch its kernels.
"""

import atexit
import ctypes
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

from entries import entries

from slipway.codegen.llvm.machine import CompiledText
from slipway.ir.instructions.warp_products import WARP_PRODUCTS
from slipway.runtime.libraries.native_library import native_runtime
from slipway.target import Target

HEADERS = Path(__file__).parent / "languages"
_KINDS = {"cuda": ("cuda", 2), "metal": ("metal", 8), "ll": ("cuda", 2), "amd": ("rocm", 10),
          "wgsl": ("webgpu", 15)}  # fmt: skip # by language
_C_TYPES = {
    "1": ctypes.c_int8, "2": ctypes.c_int16, "4": ctypes.c_int32, "8": ctypes.c_int64,
    "f": ctypes.c_float, "d": ctypes.c_double, "p": ctypes.c_void_p,
}  # fmt: skip
_SIZES = ctypes.c_size_t * 3
_GIVEN_MOST = 1 << 18  # bytes of shared memory that there are for a launch to give
_UNTOUCHED = b"\xa5" * _GIVEN_MOST
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
    "drop_code": (None, ctypes.c_char_p),
    "launch": (_I, ctypes.POINTER(_Launch)),
    "synchronize": (_I, _I),
    "wait_all": (_I,),
    "attribute": (_I, _I, _I, ctypes.POINTER(_Any)),
}
_CALLS = {name: ctypes.CFUNCTYPE(*types) for name, types in _FUNCTIONS.items()}


class _Api(ctypes.Structure):
    # It has no clock, keeps no memory, has one queue and no images: the last six stay null.
    _fields_ = [
        ("name", ctypes.c_char_p),
        *_CALLS.items(),
        *(
            (name, ctypes.c_void_p)
            for name in ("launches", "mark", "between", "trim", "streams", "alloc_image")
        ),
    ]


def _named(race, kernel, module):
    """Return what is said of a race with the buffers' names, which are those of stages.

    LLVM IR numbers them; the text for people has them in the same order.
    """
    text = module.get_source("hip" if module.type_key == "rocm" else "cuda")
    found = re.search(rf"\b{kernel}\((.*?)\) \{{(.*?)^\}}", text, re.DOTALL | re.MULTILINE)
    parameters = [word.split()[-1].lstrip("*") for word in found[1].split(",")]
    shared = re.findall(r"__shared__ [^;]*?(\w+)\[", found[2])
    race = re.sub(r"\bp(\d+)$", lambda at: parameters[int(at[1])], race)
    race = re.sub(r"\bshared-1$", "that the launch gives", race)
    return re.sub(r"\bshared(\d+)$", lambda at: shared[int(at[1])], race)


def _said(tell):
    """Return what a function of a library says."""
    tell.restype = ctypes.c_char_p
    return tell().decode()


class Banks(NamedTuple):
    """Requests of warps for shared memory in a launch, and passes that they take (banks.h)."""

    loads: int
    load_passes: int
    stores: int
    store_passes: int


_ENTERED = []  # the runtime has their functions as long as it lives


class SimulatedDevice:
    """A kind of device whose memory is this process's and whose kernels are C++."""

    def __init__(self, language, folder):
        self.kind, self.device_type = _KINDS[language]
        self.language, self.folder = "ll" if language == "amd" else language, folder
        self.texts, self.libraries, self.memory, self.modules = {}, {}, {}, {}
        self.is_here = False
        self.launched = []
        self.shared = None  # what launches give
        self.shift = 0  # bytes between what memory is usually aligned to, and its begin
        self.banks = None  # a list: of each launch, what is told of the banks of shared memory
        calls = {name: call(getattr(self, "_" + name)) for name, call in _CALLS.items()}
        self.api = _Api(self.kind.encode(), *calls.values())

    def enter(self):
        """Make the device known to the runtime."""
        _ENTERED.append(self)
        self.is_here = True
        native_runtime().lib.slw_device_register(self.device_type, ctypes.byref(self.api))

    def leave(self):
        """Be no device any more: what lies in its memory is still given back."""
        self.is_here = False
        native_runtime().lib.slw_devices_setup()  # a kind that has a driver

    def learn(self, module):
        """Run the text of a module's kernels where a program launches what the driver compiles."""
        digest = hashlib.sha256(module.code).hexdigest()
        self.modules[digest] = module
        self.texts[digest] = as_nvidias(module.get_source(self.language))

    def library(self, digest):
        """Return the compiled kernels of a program."""
        if digest not in self.libraries:
            made = self.folder / f"{digest}.so"
            _compile(self.texts[digest], self.language, made)
            self.libraries[digest] = ctypes.CDLL(str(made))
        return self.libraries[digest]

    # What the runtime calls.

    def _alloc(self, device_id, size, out):
        held = ctypes.create_string_buffer(max(1, size) + 64 + self.shift)
        at = ((ctypes.addressof(held) + 63) & ~63) + self.shift
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
        text = ctypes.string_at(code, size).decode(errors="replace")
        self.texts.setdefault(digest.decode(), text)
        return _OK

    def _drop_code(self, digest):
        """Keep it: what stands behind a text is cached by its digest."""

    def _launch(self, launch):
        one = launch[0]
        try:
            entry = getattr(self.library(one.digest.decode()), f"slw_entry_{one.kernel.decode()}")
        except subprocess.CalledProcessError as error:
            return self._fail(error.stderr)
        held, given = [], 0
        for kind, arg in zip(one.signature.decode(), one.args[: len(one.signature)], strict=True):
            if kind == "s":
                given = arg.value
                if self.language == "metal":
                    held.append(_P(ctypes.addressof(self._given(_GIVEN_MOST, None))))
                continue
            if kind in "fd":
                value = ctypes.c_double.from_buffer(ctypes.c_int64(arg.value)).value
            else:
                value = arg.value
            held.append(_C_TYPES[kind](value))
        pointers = (_P * len(held))(*[ctypes.addressof(value) for value in held])
        self.launched.append(one.kernel.decode())
        name, library = one.kernel.decode(), self.library(one.digest.decode())
        if given:
            memory = self._given(given, library)
        if self.banks is not None:
            library.slw_banks_count(1)
        failed = entry(one.grid, one.block, pointers)
        if self.banks is not None:
            library.slw_banks_counted.restype = ctypes.POINTER(ctypes.c_int64)
            self.banks.append(Banks(*library.slw_banks_counted()[:4]))
            library.slw_banks_count(0)
        if failed:
            why = _said(library.slw_stuck) or "threads of a warp request one that is not with them"
            return self._fail(
                f"{name}: only some threads of a block meet a barrier, or of a warp: {why}"
            )
        if given and bytes(memory[given:]) != _UNTOUCHED[given:]:
            return self._fail(
                f"{name}: more than the {given} shared bytes of its launch are written"
            )
        if self.language == "ll":
            race = _said(library.slw_race)
            if race:
                module = self.modules[one.digest.decode()]
                return self._fail(f"{name}: a race: {_named(race, name, module)}")
        return _OK

    def _given(self, size, library):
        """Return the shared memory that launches give, `size` bytes of it floats that are none."""
        if self.language != "metal":
            self.shared = (ctypes.c_char * _GIVEN_MOST).in_dll(library, "slw_dynamic")
        elif self.shared is None:
            self.shared = (ctypes.c_char * _GIVEN_MOST)()
        ctypes.memmove(self.shared, b"\xff" * size + _UNTOUCHED[size:], _GIVEN_MOST)
        return self.shared

    def _fail(self, message):
        native_runtime().lib.slw_error_set(b"DeviceError", message.encode())
        return _FAILED

    def _synchronize(self, device_id):
        return _OK

    def _wait_all(self):
        return _OK

    def _attribute(self, device_id, attribute, out):
        out[0] = (
            _Any(_INT, 0, int(device_id == 0 and self.is_here))
            if attribute == _EXIST
            else _Any(0, 0, 0)
        )
        return _OK


def write_for_fake_cuda(module, folder):
    """Put a module's kernels where the driver of `fake_cuda.cc` looks for those of its PTX."""
    name = 14695981039346656037
    for byte in module.code:
        name = (name ^ byte) * 1099511628211 % 2**64
    _compile(as_nvidias(module.get_source("ll")), "ll", Path(folder) / f"{name:016x}.so")


def write_for_fake_metal(module, folder):
    """Put a module's kernels where the framework of `fake_metal.cc` looks for those of its text."""
    text = module.get_source("metal")
    name = 14695981039346656037
    for byte in text.encode():
        name = (name ^ byte) * 1099511628211 % 2**64
    _compile(text, "metal", Path(folder) / f"{name:016x}.so")


def as_nvidias(text):
    """Return LLVM IR for AMD's GPUs as that for NVIDIA's, which `_object_of` reads."""
    if "amdgpu_kernel" not in text:
        return text
    numbers = {"workgroup.id": "ctaid", "workitem.id": "tid"}
    for own, other in numbers.items():
        text = text.replace(f"llvm.amdgcn.{own}", f"llvm.nvvm.read.ptx.sreg.{other}")
    text = text.replace("llvm.amdgcn.mbcnt.lo", "slw_mbcnt_lo")
    text = text.replace("llvm.amdgcn.mbcnt.hi", "slw_mbcnt_hi")
    text = text.replace("llvm.amdgcn.ds.bpermute", "slw_bpermute")
    barrier = "llvm.nvvm.barrier.cta.sync.aligned.all"
    text = text.replace(
        "void @llvm.amdgcn.s.barrier()\n  fence", f"void @{barrier}(i32 0)\n  fence"
    )
    text = text.replace("declare void @llvm.amdgcn.s.barrier()", f"declare void @{barrier}(i32)")
    text = re.sub(r"^  fence .*\n", "", text, flags=re.MULTILINE)
    text = re.sub(r"addrspacecast ptr addrspace\(5\) (%\w+) to ptr", _SAME, text)
    return text.replace(", addrspace(5)", "").replace("amdgpu_kernel", "ptx_kernel")


_SAME = r"getelementptr i8, ptr \1, i64 0"


def _compile(text, language, made):
    """Compile kernels to a library with an entry for each (threads.h)."""
    header, library = _given(language)
    code = made.with_suffix(".o")
    if language == "ll":
        code.write_bytes(_object_of(text))
    else:
        source = made.with_suffix(".cc")
        source.write_text(_with_entries(text))
        _run([*_COMPILER, "-O1", "-c", str(source), "-include", str(header), "-o", str(code)])
    # As the compiler links, which takes as long as it takes to compile most kernels.
    linked = ["-shared", str(code), str(library), "-lm", "-lc", "-rpath", str(library.parent)]
    _run([shutil.which("ld") or "ld", *linked, "-o", str(made)])


_COMPILER = [
    shutil.which("clang++") or shutil.which("g++") or "c++", "-std=c++17", "-fPIC",
    "-ffp-contract=off", "-Wno-unknown-attributes", "-Wno-attributes", "-Wno-unknown-pragmas",
    f"-I{HEADERS}",
]  # fmt: skip


def _run(command):
    subprocess.run(command, check=True, capture_output=True, text=True)


_GIVEN = {
    "cuda": ("cuda.h", "fibres.cc", "warp.cc", "exchange.cc", "copies.cc"),
    "metal": ("metal_stdlib", "fibres.cc", "exchange.cc", "simdgroup.cc"),
    "ll": (
        "threads.h",
        "fibres.cc",
        "warp.cc",
        "exchange.cc",
        "copies.cc",
        "races.cc",
        "banks.cc",
        "matrices.cc",
        "nvptx.cc",
    ),
}


# Where this program and those that it starts keep what all kernels of a language share.
_PLACE = "SLIPWAY_TESTED_LANGUAGES"


def _folder():
    if _PLACE not in os.environ:  # outside of pytest
        os.environ[_PLACE] = tempfile.mkdtemp(prefix="slipway-languages-")
        atexit.register(shutil.rmtree, os.environ[_PLACE], ignore_errors=True)
    return Path(os.environ[_PLACE])


def _given(language):
    """Return the header that kernels in a language are compiled with, and the library behind it.

    Most kernels are smaller than either: what the compiler has read of the header lies beside it,
    which it takes for the options that it was read with.  Who comes first makes them for all.
    """
    name, *sources = _GIVEN[language]
    header = _folder() / f"given_{language}.h"
    library = header.with_name(f"lib{language}.so")
    with header.with_name(f"{language}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not library.is_file():
            header.write_text(f'#include "{name}"\n')
            if language != "ll":
                _run([*_COMPILER, "-O1", "-x", "c++-header", str(header), "-o", f"{header}.gch"])
            files = [str(HEADERS / source) for source in sources]
            made = library.with_suffix(".new")
            _run([*_COMPILER, "-O2", "-shared", *files, "-o", str(made)])
            made.replace(library)
    return header, library


def _with_entries(text):
    """Return kernels as C++, with their entries."""
    names = re.findall(r"^(?:void |kernel void )?(\w+_kernel\d+)\(", text, re.MULTILINE)
    text = text.replace(" [[threadgroup(0)]]", "")
    if "slw_dynamic[]" in text:
        text = text.replace("  extern __shared__ __align__(16) uint8_t slw_dynamic[];\n", "")
        text = f"alignas(16) unsigned char slw_dynamic[{_GIVEN_MOST}];\n{text}"
    # A variable of a block is static here; in the type of a pointer the word is nothing.
    text = re.sub(r"^(\s*)threadgroup (?=\w+ \w+\[)", r"\1static ", text, flags=re.MULTILINE)
    return text + "".join(f"SLW_ENTRY({name})\n" for name in names)


def _object_of(text):
    """Return LLVM IR for NVIDIA's GPUs as an object for this processor, with an entry for each."""
    started = entries(text)
    text = re.sub(r"llvm\.nvvm\.read\.ptx\.sreg\.(\w+)\.([xyz])", r"slw_\1_\2", text)
    text = text.replace("llvm.nvvm.barrier.cta.sync.aligned.all", "slw_barrier")
    text = re.sub(r"llvm\.nvvm\.shfl\.sync\.(\w+)\.i32", r"slw_shfl_\1", text)
    text = text.replace("llvm.nvvm.activemask", "slw_activemask")
    text = re.sub(r"llvm\.nvvm\.cp\.async\.c[ag]\.shared\.global\.", "slw_cp_async_", text)
    text = re.sub(r"llvm\.nvvm\.cp\.async\.(\w+)\.group", r"slw_cp_async_\1", text)
    text = re.sub(r"addrspacecast ptr (%\w+) to ptr addrspace\([13]\)", _SAME, text)
    text = text.replace(
        "@slw_dynamic = external addrspace(3) global [0 x i8]",
        f"@slw_dynamic = global [{_GIVEN_MOST} x i8] zeroinitializer",
    )
    text = re.sub(r"addrspacecast ptr addrspace\(3\) (%\w+) to ptr", _SAME, text)
    text = text.replace("ptx_kernel ", "").replace(" addrspace(3)", "").replace(" addrspace(1)", "")
    text = re.sub(r"llvm\.nvvm\.idp4a\.([su])\.([su])", r"slw_dp4a_\1\2", text)
    text = text.replace("@llvm.slw.matrix_", "@slw_matrix_")  # test_cooperative.py
    text = _amds_modelled(text)
    text = _MMA.sub(_model, text).replace("@llvm.nvvm.mma.", "@nvvm.mma.")
    text = _watched(text)
    text = re.sub(
        r"= addrspacecast ptr (@[\w.]+) to ptr", r"= getelementptr i8, ptr \1, i64 0", text
    )
    return CompiledText(text + started, Target("llvm"), "kernels").object_bytes


_AMDS = re.compile(r"call (<\d x \w+>) @llvm\.amdgcn\.((?:wmma|mfma)[\w.]+)\((.*)\)$", re.MULTILINE)
_MFMAS = {"16f16": "f16", "16bf16.1k": "bf16", "4f32": "f32", "16i8": "s8", "32.i8": "s8_wide"}


def _amds_model(name, given, kind):
    """Return the name of the model in `warp.cc` of a product of AMD's."""
    if name.startswith("mfma"):
        return f"mfma_{_MFMAS[name.partition('.16x16x')[2]]}"
    signs = [word[3] for word in given.split(", ") if word in ("i1 true", "i1 false")]
    of = "_".join({"t": "s8", "f": "u8"}[sign] for sign in signs[:2])
    whole = kind in ("<16 x half>", "<16 x i16>", "<4 x i32>")  # steps of a row, on gfx11
    return f"{'wmma' if whole else 'wmma12'}_{of or ('bf16' if 'bf16' in name else 'f16')}"


def _amds_modelled(text):
    """Return the text with functions that call the models in `warp.cc` for AMD's products."""
    functions = {}

    def called(found):
        result, name, given = found.groups()
        operands = re.findall(r"(?:<[^>]+>|float|i32|i64) %\w+", given)
        kind = operands[0].rpartition(" ")[0]
        model = _amds_model(name, given, kind)
        lines = [
            *(
                f"%{to} = alloca {k}, align 32"
                for to, k in (("p", kind), ("q", kind), ("s", result))
            ),
            f"store {kind} %a, ptr %p, align 32",
            f"store {kind} %b, ptr %q, align 32",
            f"store {result} %c, ptr %s, align 32",
            f"call void @slw_model_{model}(ptr %p, ptr %q, ptr %s)",
            f"%r = load {result}, ptr %s, align 32",
            f"ret {result} %r",
        ]
        body = "".join(f"{' ' * 4}{line}\n" for line in lines)
        arguments = f"{kind} %a, {kind} %b, {result} %c"
        functions[model] = (
            f"declare void @slw_model_{model}(ptr, ptr, ptr)\n"
            f"define internal {result} @{model}({arguments}) noinline {{\n{body}}}\n"
        )
        return f"call {result} @{model}({', '.join(operands)})"

    text = _AMDS.sub(called, text)
    text = re.sub(r"^declare <\d x \w+> @llvm\.amdgcn\.w?mf?ma.*\n", "", text, flags=re.MULTILINE)
    return text + "".join(functions.values())


_MMA = re.compile(r"^declare (\{.*\}) (@llvm\.nvvm\.mma\.[\w.]+)\((.*)\).*$", re.MULTILINE)


def _model(declared):
    """Return a product of a warp as a function that calls the model in `warp.h`."""
    result, symbol, given = declared.groups()
    kinds = given.split(", ")
    of = {}
    for name, whole in WARP_PRODUCTS.items():
        for entry in filter(None, (whole, whole.parts)):
            of[entry.llvm] = name.replace(".", "_"), entry
    name, entry = of[symbol.removeprefix("@llvm.nvvm.mma.")]
    right, sums = entry.rows * entry.halves, (entry.rows + 1) * entry.halves
    lines = ["%r = alloca [10 x i32], align 16"]
    for at, kind in enumerate(kinds):
        lines.append(f"%p{at} = getelementptr i32, ptr %r, i64 {at}")
        lines.append(f"store {kind} %x{at}, ptr %p{at}")
    model = f"slw_model_{name}" if entry.halves == 2 else f"slw_model_part_{name}"
    lines.append(f"call void @{model}(ptr %r, ptr %p{right}, ptr %p{sums})")
    for at in range(2 * entry.rows):
        lines.append(f"%v{at} = load {kinds[sums + at]}, ptr %p{sums + at}")
        last = "poison" if at == 0 else f"%s{at - 1}"
        lines.append(f"%s{at} = insertvalue {result} {last}, {kinds[sums + at]} %v{at}, {at}")
    lines.append(f"ret {result} %s{2 * entry.rows - 1}")
    body = "\n".join(f"{' ' * 4}{line}" for line in lines)
    arguments = ", ".join(f"{kind} %x{at}" for at, kind in enumerate(kinds))
    return (
        f"declare void @{model}(ptr, ptr, ptr)\n"
        f"define internal {result} @{symbol[6:]}({arguments}) noinline {{\n{body}\n}}"
    )


_BYTES = {
    "ptr": 8,
    "half": 2,
    "i1": 1,
    "i8": 1,
    "i16": 2,
    "i32": 4,
    "i64": 8,
    "float": 4,
    "double": 8,
}
_ACCESS = re.compile(
    r"^  (?:%\w+ = load (?P<loaded>[^,]+)|store (?P<stored><[^>]*>|\S+) [^,]+)"
    r", ptr (?P<at>[%@][\w.]+)",
    re.MULTILINE,
)
_ENTRY = re.compile(r"^define void @\w+\((?P<given>.*)\) nounwind.*\{\nentry:\n", re.MULTILINE)
_SHARED = re.compile(r"^  (?P<at>%\w+) = addrspacecast ptr @(?P<name>[\w.]+) to ptr$", re.MULTILINE)


def _size_of(kind):
    lanes, _, of = kind.strip("<>").rpartition(" x ")
    return int(lanes or 1) * _BYTES[of]


def _watched(text):
    """Return LLVM IR that tells `races.h` of each access, and of memory that a block shares."""

    def access(found):
        size = _size_of(found["loaded"] or found["stored"])
        given = f"ptr {found['at']}, i64 {size}, i32 {int(found['stored'] is not None)}"
        return f"  call void @slw_access({given}, i32 {found.start()})\n{found[0]}"

    def shared(found):
        count, of = re.search(rf"@{found['name']} = .*\[(\d+) x (\w+)\]", text).groups()
        size, number = int(count) * _BYTES[of], re.search(r"\d+$", found["name"])[0]
        return f"{found[0]}\n  call void @slw_shared(ptr {found['at']}, i64 {size}, i64 {number})"

    def buffers(found):
        numbers = re.findall(r"ptr [^,]*%p(\d+)", found["given"])
        calls = [f"  call void @slw_buffer(ptr %p{n}, i64 {n})\n" for n in numbers]
        if "@slw_dynamic" in text:
            calls.append(f"  call void @slw_shared(ptr @slw_dynamic, i64 {_GIVEN_MOST}, i64 -1)\n")
        return found[0] + "".join(calls)

    text = _SHARED.sub(shared, _ACCESS.sub(access, text))
    return (
        "declare void @slw_access(ptr, i64, i32, i32)\ndeclare void @slw_shared(ptr, i64, i64)\n"
        "declare void @slw_buffer(ptr, i64)\n" + _ENTRY.sub(buffers, text)
    )
