"""Memory in scope "global.texture": images of OpenCL, memory like any elsewhere."""

import numpy as np
import pytest
import run_kernels
from run_kernels import axis, built, random, run, source

import slipway as tvm
from slipway import te
from slipway.errors import CodegenError, DeviceError, LoweringError
from slipway.script import tir as T
from slipway.target import Target


def bound(stage, axes, threads=16):
    fused = stage.fuse(*axes) if len(axes) > 1 else axes[0]
    block, thread = stage.split(fused, factor=threads)
    stage.bind(block, axis("blockIdx.x"))
    stage.bind(thread, axis("threadIdx.x"))


def pooled(shape, scope, dtype="float32", vector=True, lanes=True):
    """Sums of neighbours along two axes, of a copy of A in a texture."""
    a = te.placeholder(shape, dtype, name="A")
    *front, rows, columns, four = shape
    k = te.reduce_axis((0, 3), name="k")

    def element(*i):
        *batch, y, x, c = i
        return te.sum(a(*batch, y, x + k, c).astype("float32") * 2.0, axis=[k])

    sums = te.compute((*front, rows, columns - 2, four), element, name="sums")
    s = te.create_schedule(sums.op)
    copy = s.cache_read(a, scope, [sums])
    stage = s[copy]
    if vector:
        stage.vectorize(stage.op.axis[-1])
        bound(stage, stage.op.axis[:-1])
    else:
        bound(stage, stage.op.axis)
    stage = s[sums]
    if lanes:
        stage.reorder(*stage.op.axis[:-1], k, stage.op.axis[-1])
        stage.vectorize(stage.op.axis[-1])
        bound(stage, stage.op.axis[:-1])
    else:
        bound(stage, stage.op.axis)
    return s, [a, sums]


def expected(x):
    wide = x.astype("float32") * 2
    return wide[..., :-2, :] + wide[..., 1:-1, :] + wide[..., 2:, :]


CASES = [
    ((5, 7, 4), "global.texture", True),
    ((2, 3, 5, 9, 4), "global.texture", True),
    ((2, 3, 5, 9, 4), "global.texture", False),
    ((6, 3, 5, 9, 4), "global.texture-weight", True),
    ((3, 5, 4), "global.texture-nhwc", False),
    ((2, 3, 7, 8, 4), "global.texture-nhwc", True),
]


@pytest.mark.parametrize(("shape", "scope", "lanes"), CASES)
def test_a_stage_in_a_texture(device, shape, scope, lanes):
    """Odd sizes, each of the three ways to lay out an image, texels whole and number by number."""
    function = built(*pooled(shape, scope, lanes=lanes))
    x = random(*shape)
    wanted = expected(x)
    np.testing.assert_allclose(run(function, device, [x], wanted.shape), wanted, rtol=1e-6)


@pytest.mark.parametrize("language", ["vulkan", "ll", "wgsl"])
def test_other_languages_have_memory_like_any(language, request, simulators):
    if language == "vulkan":
        target, simulator, there = run_kernels.VULKAN, None, request.getfixturevalue("vulkan")
    else:
        simulator = simulators(language)
        target, there = Target(simulator.kind, host="llvm"), tvm.device(simulator.kind, 0)
    function = tvm.build(*pooled((2, 3, 5, 9, 4), "global.texture"), target=target)
    if simulator is not None:
        simulator.learn(function.imported_modules[0])
        simulator.enter()
    x = random(2, 3, 5, 9, 4)
    wanted = expected(x)
    np.testing.assert_allclose(run(function, there, [x], wanted.shape), wanted, rtol=1e-6)
    if simulator is not None:
        simulator.leave()


@pytest.mark.parametrize("lanes", [True, False])
def test_texels_of_float16(device, lanes):
    s, args = pooled((3, 4, 6, 4), "global.texture", "float16", lanes=lanes)
    function = built(s, args)
    x = random(3, 4, 6, 4).astype("float16")
    wanted = expected(x)
    np.testing.assert_allclose(run(function, device, [x], wanted.shape), wanted, rtol=1e-6)
    text = source(function)
    assert text.count("read_imagef") == text.count("write_imagef") == 1
    second = text.split("kernel void")[-1] if "kernel void" in text else text.split("__kernel")[-1]
    assert "slw_to_half" not in second  # a number of a texel is a float already


def test_an_image_is_what_the_driver_gets():
    text = source(tvm.build(*pooled((5, 7, 4), "global.texture"), target=run_kernels.OPENCL))
    assert "__write_only image2d_t" in text
    assert "__read_only image2d_t" in text
    for kind, language in (("vulkan", "spirv"), ("cuda", "cuda"), ("metal", "metal")):
        s, args = pooled((5, 7, 4), "global.texture")
        other = tvm.build(s, args, target=Target(kind, host="llvm"))
        assert "image" not in source(other, language).lower()


def build(*args, target="opencl", **named):
    return tvm.build(*pooled(*args, **named), target=Target(target, host="llvm"))


def test_what_no_image_is_of_is_said():
    with pytest.raises(LoweringError, match=r"rows of texels of 4 numbers.*last axis is 4"):
        build((5, 7, 3), "global.texture", vector=False, lanes=False)
    with pytest.raises(LoweringError, match="is of int32; images have float32 and float16"):
        build((5, 7, 4), "global.texture", "int32")
    with pytest.raises(CodegenError, match=r"no scope 'global\.texture-height'"):
        build((5, 7, 4), "global.texture-height")
    with pytest.raises(CodegenError, match=r"one number of a texel .* Vectorize the last axis"):
        build((5, 7, 4), "global.texture", vector=False)
    with pytest.raises(LoweringError, match=r"an image of 7 x 20000 texels; .* has 16384 along"):
        build((20000, 7, 4), "global.texture")
    with pytest.raises(LoweringError, match="has 64 along a side"):
        build((5, 70, 4), "global.texture", target="opencl -texture_spatial_limit=64")


@pytest.mark.parametrize("image", ["a", "c"])
def test_an_image_that_a_caller_would_have_to_bring(image):
    """Its array is memory, and no driver has to say that it is no image: PoCL ends the process."""
    there = {name: "global.texture" if name == image else "global" for name in "ac"}

    @T.prim_func
    def twice(p: T.handle, q: T.handle):
        a = T.match_buffer(p, (5, 7, 4), "float32", scope=there["a"])
        c = T.match_buffer(q, (5, 7, 4), "float32", scope=there["c"])
        for b in T.thread_binding(5, thread="blockIdx.x"):
            for t in T.thread_binding(7, thread="threadIdx.x"):
                for lane in T.vectorized(4):
                    c[b, t, lane] = a[b, t, lane] * T.float32(2)

    with pytest.raises(LoweringError, match=f"argument '{image}' is in scope .*cache_read"):
        tvm.build(twice, target=run_kernels.OPENCL)
    tvm.build(twice, target=run_kernels.VULKAN)  # memory like any there


def test_a_device_without_such_images_says_so(simulators, device):
    """Its driver is asked when the function runs."""
    function = build((5, 7, 4), "global.texture")
    simulator = simulators("cuda")
    host = tvm.get_global_func("slipway.device.alloc_image")
    simulator.enter()
    with pytest.raises(DeviceError, match="cuda has no images here"):
        host(2, 0, 8, 8, 32)
    simulator.leave()
    with pytest.raises(DeviceError, match=r"has no image of 99999 x 2 texels.*the largest is"):
        host(4, 0, 99999, 2, 32)
    x = random(5, 7, 4)
    np.testing.assert_allclose(run(function, device, [x], (5, 5, 4)), expected(x), rtol=1e-6)
