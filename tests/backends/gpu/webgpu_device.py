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


class WebGpuDevice(SimulatedDevice):
    """A kind of device whose memory is this process's, copied to buffers for each launch."""

    def __init__(self, folder):
        self.device = adapter().request_device_sync()
        super().__init__("wgsl", folder)
        self.pipelines = {}

    def _launch(self, launch):
        import wgpu

        one = launch[0]
        name, text = one.kernel.decode(), self.texts[one.digest.decode()]
        try:
            self._run(wgpu, one, name, text)
        except wgpu.GPUError as error:
            return self._fail(f"{name}: {error}")
        self.launched.append(name)
        return _OK

    def _pipeline(self, name, text):
        if (name, text) not in self.pipelines:
            module = self.device.create_shader_module(code=text)
            self.pipelines[name, text] = self.device.create_compute_pipeline(
                layout="auto", compute={"module": module, "entry_point": name}
            )
        return self.pipelines[name, text]

    def _run(self, wgpu, one, name, text):
        usage = wgpu.BufferUsage
        given = list(zip(one.signature.decode(), one.args[: len(one.signature)], strict=True))
        addresses = [arg.value for kind, arg in given if kind == "p"]
        entries, written = [], []
        declared = rf"@binding\((\d+)\) var<storage, (\w+)> {name}_p\d+:"
        for number, access in re.findall(declared, text):
            address = addresses[int(number)]
            data = ctypes.string_at(address, self._left(address))
            data += bytes(-len(data) % 8)
            buffer = self.device.create_buffer_with_data(
                data=data, usage=usage.STORAGE | usage.COPY_SRC
            )
            entries.append({"binding": int(number), "resource": {"buffer": buffer}})
            if access == "read_write":
                written.append((address, data, buffer))
        scalars = [_word(kind, arg) for kind, arg in given if kind != "p"]
        if scalars:
            words = b""
            for scalar in scalars:
                words += bytes(-len(words) % len(scalar)) + scalar
            words += bytes(-len(words) % 16)
            buffer = self.device.create_buffer_with_data(data=words, usage=usage.UNIFORM)
            entries.append({"binding": len(addresses), "resource": {"buffer": buffer}})
        pipeline = self._pipeline(name, text)
        group = self.device.create_bind_group(
            layout=pipeline.get_bind_group_layout(0), entries=entries
        )
        encoder = self.device.create_command_encoder()
        work = encoder.begin_compute_pass()
        work.set_pipeline(pipeline)
        work.set_bind_group(0, group)
        work.dispatch_workgroups(*one.grid)
        work.end()
        self.device.queue.submit([encoder.finish()])
        for address, before, buffer in written:  # of which others may hold a part
            after = np.frombuffer(self.device.queue.read_buffer(buffer), "uint8")
            (changed,) = np.nonzero(after != np.frombuffer(before, "uint8"))
            size = self._left(address)
            held = np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))
            held[changed] = after[changed]

    def _left(self, address):
        """Return how many bytes are there from an address on."""
        for base, held in self.memory.items():
            end = ctypes.addressof(held) + len(held)
            if base <= address < end:
                return end - address
        raise AssertionError("a kernel was given an address that is not the device's")


def _word(kind, arg):
    if kind == "f":
        return struct.pack("<f", ctypes.c_double.from_buffer(ctypes.c_int64(arg.value)).value)
    return struct.pack("<q" if kind == "8" else "<i", arg.value)
