"""Scales and labels of TFLite files: in archives, in headers, rounded as LiteRT rounds."""

import ctypes
import io
import shutil
import subprocess
import zipfile

import flatbuffers
import numpy as np
import pytest
from builder import T, model, schema
from litert import Peer

from slipway import relay
from slipway.frontends.tflite.importer import from_tflite

SCALE, ZERO = 0.0371, -5


def relu(dtype="int8", classes=3):
    x = T((1, classes), dtype, SCALE, ZERO, name="x")
    return model("RELU", [x], [T((1, classes), dtype, SCALE, ZERO, name="y")])


def with_files(data, **texts):
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as made:
        for name, text in texts.items():
            made.writestr(f"{name}.txt", text)
    return data + archive.getvalue()


def metadata(file):
    """Metadata that gives the only output a file of labels, written field by field."""
    b = flatbuffers.Builder(256)
    name = b.CreateString(file)
    b.StartObject(5)
    b.PrependUOffsetTRelativeSlot(0, name, 0)
    b.PrependInt8Slot(2, 2, 0)
    associated = b.EndObject()

    def vector(item):
        b.StartVector(4, 1, 4)
        b.PrependUOffsetTRelative(item)
        return b.EndVector()

    files = vector(associated)
    b.StartObject(7)
    b.PrependUOffsetTRelativeSlot(6, files, 0)
    outputs = vector(b.EndObject())
    b.StartObject(5)
    b.PrependUOffsetTRelativeSlot(3, outputs, 0)
    graphs = vector(b.EndObject())
    b.StartObject(4)
    b.PrependUOffsetTRelativeSlot(3, graphs, 0)
    b.Finish(b.EndObject(), b"M001")
    return bytes(b.Output())


def with_metadata(data, described):
    whole = schema.ModelT.InitFromPackedBuf(data, 0)
    buffer, entry = schema.BufferT(), schema.MetadataT()
    buffer.data = np.frombuffer(described, np.uint8)
    entry.name, entry.buffer = "TFLITE_METADATA", len(whole.buffers)
    whole.buffers.append(buffer)
    whole.metadata = [entry]
    packer = flatbuffers.Builder(1024)
    packer.Finish(whole.Pack(packer), b"TFL3")
    return bytes(packer.Output())


def labels(data):
    mod, _ = from_tflite(data)
    return mod["main"].attr("meanings")[-1][-1]


def test_labels_lie_in_an_archive_behind_the_model():
    assert labels(with_files(relu(), labels="yes\nno\nnoise\n")) == ("yes", "no", "noise")
    assert labels(with_files(relu(), labels="yes\nno\n")) == ()  # of another number of classes
    assert labels(with_files(relu(), a="1\n2\n3", b="4\n5\n6")) == ()  # whose?
    both = with_files(with_metadata(relu(), metadata("b.txt")), a="1\n2\n3", b="4\n5\n6")
    assert labels(both) == ("4", "5", "6")
    damaged = bytearray(both)
    damaged[-60:-40] = bytes(20)
    assert labels(bytes(damaged)) in ((), ("4", "5", "6"))
    assert labels(with_files(with_metadata(relu(), b"M001" * 9), a="1\n2\n3")) == ("1", "2", "3")


@pytest.mark.parametrize("dtype", ["int8", "int16"])
def test_real_numbers_become_integers_as_litert_makes_them(dtype, tmp_path):
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    zero = ZERO if dtype == "int8" else 0
    x = T((1, 3), dtype, SCALE, zero, name="x")
    mod, params = from_tflite(model("RELU", [x], [T((1, 3), dtype, SCALE, zero, name="y")]))
    lib = relay.build(
        mod, "c", params=params, executor=relay.backend.Executor("aot"), mod_name="net"
    )
    (tmp_path / "tvmgen_net.h").write_text(lib.sources.header)
    (tmp_path / "user.c").write_text(
        '#include "tvmgen_net.h"\nint to_integer(float v) { return tvmgen_net_quantize_x(v); }\n'
        "float to_real(int v) { return tvmgen_net_dequantize_output(v); }\n"
    )
    command = ["gcc", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", "-o"]
    subprocess.run([*command, tmp_path / "user.so", tmp_path / "user.c"], check=True)
    user = ctypes.CDLL(str(tmp_path / "user.so"))
    user.to_integer.argtypes, user.to_real.restype = [ctypes.c_float], ctypes.c_float
    halves = (np.arange(-200, 200) + np.float32(0.5)) * np.float32(SCALE)
    rng = np.random.default_rng(2)
    values = np.concatenate([halves, np.nextafter(halves, 0), rng.uniform(-9, 9, 400)])
    values = values.astype("float32")
    shape = values.shape
    quantize = model("QUANTIZE", [T(shape)], [T(shape, dtype, SCALE, zero)], "QuantizeOptions")
    wanted = Peer(quantize)([values])[0]
    np.testing.assert_array_equal([user.to_integer(float(v)) for v in values], wanted)
    back = model("DEQUANTIZE", [T(shape, dtype, SCALE, zero)], [T(shape)], "DequantizeOptions")
    real = Peer(back)([wanted])[0]
    np.testing.assert_array_equal([user.to_real(int(v)) for v in wanted], real)
