"""Small PrimFuncs written by hand, and how the tests run them."""

import ctypes

import numpy as np
import tvm_ffi

from slipway.compiler.emit import build_module
from slipway.ir import expr as E
from slipway.ir import stmt as S
from slipway.ir.buffer import decl_buffer
from slipway.ir.function import PrimFunc
from slipway.ir.ops import as_expr, const
from slipway.runtime.libraries.library import DsoLibrary
from slipway.target import Target
from slipway.toolchain.link import linked_bytes


def prim_func(name, buffers, body, scalars=(), attrs=()):
    """Make a function of Buffers (passed as tensors) and scalar Vars."""
    handles = [E.Var(f"{b.name}_handle", "handle") for b in buffers]
    return PrimFunc(
        (*handles, *scalars),
        body,
        tuple(zip(handles, buffers, strict=True)),
        (("global_symbol", name), *attrs),
    )


def loop(var, extent, body, kind="serial"):
    return S.For(var, const(0, var.dtype), as_expr(extent), kind, body)


def ramp(base, lanes, stride=1):
    base = as_expr(base)
    return E.Ramp(base, const(stride, base.dtype), lanes)


def vector_add(n=1024, lanes=16, kind="serial", dtype="float32"):
    a, b, c = (decl_buffer((n,), dtype, name) for name in "ABC")
    i = E.Var("i")
    at = ramp(i * lanes, lanes)
    body = S.BufferStore(c, E.Add(a[at], b[at]), (at,))
    return prim_func("vector_add", [a, b, c], loop(i, n // lanes, body, kind))


_ERROR = ctypes.CDLL(tvm_ffi.libinfo.find_libtvm_ffi())
_ERROR_SETTER = ctypes.cast(_ERROR.TVMFFIErrorSetRaisedFromCStr, ctypes.c_void_p).value


def load(func, target="llvm"):
    """Compile and load; return {name: callable}, and the module."""
    module = build_module(func, Target(target))
    linked = linked_bytes(module.objects, module.target.triple)
    library = DsoLibrary(module.entry, linked)
    slot = library.address("__TVMFFIErrorSetRaisedFromCStr")
    ctypes.c_void_p.from_address(slot).value = _ERROR_SETTER
    functions = {
        name: tvm_ffi.Function.__from_extern_c__(
            library.address(f"__tvm_ffi_{name}"), keep_alive_object=library
        )
        for name in module.functions
    }
    return functions, module, library


def random(shape, dtype="float32", seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal(shape).astype(dtype)


def round_to(x, half):
    """Round an array to float16 or bfloat16 and back."""
    if half == "float16":
        with np.errstate(over="ignore"):
            return x.astype("float16").astype(x.dtype)
    wide = x.astype("float64")
    mantissa, exponent = np.frexp(wide)
    rounded = np.ldexp(np.rint(np.ldexp(mantissa, 8)), exponent - 8)
    return rounded.astype(x.dtype)


def exact_fma(a, b):
    """a * b + a, rounded once."""
    from fractions import Fraction

    out = np.empty_like(a)
    for k, (x, y) in enumerate(zip(a, b, strict=True)):
        exact = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(x))
        if a.dtype == np.float64:
            out[k] = float(exact)
        else:
            rounded = np.float32(float(exact))
            choices = [np.nextafter(rounded, np.float32(-np.inf)), rounded,
                       np.nextafter(rounded, np.float32(np.inf))]  # fmt: skip
            out[k] = min(choices, key=lambda c: abs(Fraction(float(c)) - exact))
    return out
