"""WebGPU as a device of the tests: kernels in WGSL, run by `wgpu` on whatever adapter there is."""

import ctypes
import re
import struct

import numpy as np
import pytest
from simulated import _OK, SimulatedDevice


def adapter():
    """Return an adapter; skip the test where there is none."""
    wgpu = pytest.importorskip("wgpu", reason="no wgpu: pip install wgpu")
    found = [a for a in wgpu.gpu.enumerate_adapters_sync() if a.info["backend_type"] == "Vulkan"]
    if not found:
        pytest.skip("no adapter for WebGPU: apt-get install libvulkan1 mesa-vulkan-drivers")
    return found[0]


class WgslDevice(SimulatedDevice):
    """A kind of device whose memory is this process's, copied to buffers for each launch."""

    def __init__(self, folder):
        super().__init__("wgsl", folder)

    def dispatch(self, name, text, grid, given, numbers):
        """Run a kernel of a module; return the bytes of what it wrote, by binding.

        `given` has the access and the bytes of each tensor by binding, `numbers` the binding and
        the bytes of the uniform, or None.
        """
        raise NotImplementedError

    def _launch(self, launch):
        one = launch[0]
        name, text = one.kernel.decode(), self.texts[one.digest.decode()]
        try:
            self._run(one, name, text)
        except self.refusals as error:
            return self._fail(f"{name}: {error}")
        self.launched.append(name)
        return _OK

    def _run(self, one, name, text):
        args = list(zip(one.signature.decode(), one.args[: len(one.signature)], strict=True))
        addresses = [arg.value for kind, arg in args if kind == "p"]
        declared = rf"@binding\((\d+)\) var<storage, (\w+)> {name}_p\d+:"
        given = {}
        for number, access in re.findall(declared, text):
            address = addresses[int(number)]
            data = ctypes.string_at(address, self._left(address))
            given[int(number)] = access, data + bytes(-len(data) % 8)
        numbers = None
        scalars = [_word(kind, arg) for kind, arg in args if kind != "p"]
        if scalars:
            words = b""
            for scalar in scalars:
                words += bytes(-len(words) % len(scalar)) + scalar
            numbers = len(addresses), words + bytes(-len(words) % 16)
        written = self.dispatch(name, text, list(one.grid), given, numbers)
        for number, data in written.items():  # of which others may hold a part
            address = addresses[number]
            after = np.frombuffer(data, "uint8")
            (changed,) = np.nonzero(after != np.frombuffer(given[number][1], "uint8"))
            held = np.ctypeslib.as_array(
                (ctypes.c_uint8 * self._left(address)).from_address(address)
            )
            held[changed] = after[changed]

    def _left(self, address):
        """Return how many bytes are there from an address on."""
        for base, held in self.memory.items():
            end = ctypes.addressof(held) + len(held)
            if base <= address < end:
                return end - address
        raise AssertionError("a kernel was given an address that is not the device's")


class WebGpuDevice(WgslDevice):
    """WGSL by `wgpu`: Naga compiles it."""

    def __init__(self, folder):
        found = adapter()
        wanted = found.features & {"shader-f16"}
        self.device = found.request_device_sync(required_features=sorted(wanted))
        super().__init__(folder)
        self.pipelines = {}

    @property
    def refusals(self):
        """The errors that say why a kernel does not run."""
        import wgpu

        return wgpu.GPUError

    def _pipeline(self, name, text):
        if (name, text) not in self.pipelines:
            module = self.device.create_shader_module(code=text)
            self.pipelines[name, text] = self.device.create_compute_pipeline(
                layout="auto", compute={"module": module, "entry_point": name}
            )
        return self.pipelines[name, text]

    def dispatch(self, name, text, grid, given, numbers):
        """Run a kernel."""
        import wgpu

        usage = wgpu.BufferUsage
        entries, written = [], {}
        for number, (access, data) in given.items():
            buffer = self.device.create_buffer_with_data(
                data=data, usage=usage.STORAGE | usage.COPY_SRC
            )
            entries.append({"binding": number, "resource": {"buffer": buffer}})
            if access == "read_write":
                written[number] = buffer
        if numbers is not None:
            buffer = self.device.create_buffer_with_data(data=numbers[1], usage=usage.UNIFORM)
            entries.append({"binding": numbers[0], "resource": {"buffer": buffer}})
        pipeline = self._pipeline(name, text)
        group = self.device.create_bind_group(
            layout=pipeline.get_bind_group_layout(0), entries=entries
        )
        encoder = self.device.create_command_encoder()
        work = encoder.begin_compute_pass()
        work.set_pipeline(pipeline)
        work.set_bind_group(0, group)
        work.dispatch_workgroups(*grid)
        work.end()
        self.device.queue.submit([encoder.finish()])
        return {n: bytes(self.device.queue.read_buffer(b)) for n, b in written.items()}


def _word(kind, arg):
    if kind == "f":
        return struct.pack("<f", ctypes.c_double.from_buffer(ctypes.c_int64(arg.value)).value)
    return struct.pack("<q" if kind == "8" else "<i", arg.value)
