"""Artifacts are what tarfile writes, and are written without a copy of what they hold."""

import io
import tarfile
import tracemalloc

import numpy as np
import pytest

from slipway.runtime.artifact_writer import artifact_bytes, tar_bytes, write_artifact
from slipway.runtime.params import param_pieces, read_params, save_param_dict


@pytest.mark.parametrize("sizes", [(0,), (1, 512), (511, 513, 7000), (8192,), (9216, 0)])
def test_an_archive_is_the_one_that_tarfile_writes(sizes):
    members = {f"member{number}": b"x" * size for number, size in enumerate(sizes)}
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, content in members.items():
            header = tarfile.TarInfo(name)
            header.size, header.mode = len(content), 0o644
            archive.addfile(header, io.BytesIO(content))
    assert tar_bytes(members) == out.getvalue()


def test_parameters_in_pieces_are_written_without_a_copy(tmp_path):
    values = {
        "weight": np.arange(1 << 22, dtype="float32").reshape(2048, -1),
        "nothing": np.zeros((0, 3), "float32"),
        "scalar": np.float32(2),
    }
    path = tmp_path / "model.tar"
    tracemalloc.start()
    write_artifact(path, b"code", metadata={"target": "llvm"}, params=param_pieces(values))
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak_bytes < values["weight"].nbytes / 8
    joined = bytes(save_param_dict(values))
    content = artifact_bytes(b"code", {"target": "llvm"}, params=joined)
    assert path.read_bytes() == content
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        found = read_params(archive.extractfile("params.bin").read())
    for name, array in values.items():
        np.testing.assert_array_equal(found[name], array)
