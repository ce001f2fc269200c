"""Pain 14: the component was removed under its users."""

import io
import json
import platform
import tarfile
from pathlib import Path

import numpy as np
import pytest

import slipway
from slipway.errors import ArtifactError
from slipway.runtime import artifact
from slipway.runtime.artifact import read_artifact

STORED = Path(__file__).parent / "artifacts"  # softmax(dense(x)), written on 2026-11-23
GIVEN = np.linspace(-1, 1, 24, dtype="float32").reshape(2, 12)
WANTED = [
    [0.05027697, 0.29887199, 0.64529818, 0.00426565, 0.00128719],
    [0.22386034, 0.00085140, 0.01041213, 0.06299160, 0.70188451],
]


@pytest.mark.parametrize("name", ["format_1.tar", "format_1.so"])
def test_a_model_of_an_earlier_version_still_runs(name):
    """These files are never written again: a format of a new number comes beside them."""
    held = read_artifact((STORED / name).read_bytes(), name, here=False)
    assert held.metadata["format_version"] == 1
    if platform.machine() == "x86_64":
        np.testing.assert_allclose(slipway.load(STORED / name)(GIVEN), WANTED, rtol=1e-5)


def test_a_format_that_is_to_come_is_told_with_both_numbers(tmp_path):
    with tarfile.open(STORED / "format_1.tar") as old:
        members = {m.name: old.extractfile(m).read() for m in old.getmembers()}
    metadata = json.loads(members["metadata.json"])
    metadata["format_version"] = artifact.FORMAT_VERSION + 41
    members["metadata.json"] = json.dumps(metadata).encode()
    import hashlib

    sums = [f"{hashlib.sha256(c).hexdigest()}  {n}" for n, c in members.items()
            if n != artifact.SUMS_MEMBER]  # fmt: skip
    members[artifact.SUMS_MEMBER] = ("\n".join(sums) + "\n").encode()
    with tarfile.open(tmp_path / "new.tar", "w") as new:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            new.addfile(info, io.BytesIO(content))
    with pytest.raises(ArtifactError, match=rf"{artifact.FORMAT_VERSION + 41}.*reads version 1"):
        slipway.load(tmp_path / "new.tar")(GIVEN)


def test_what_is_promised_is_written_down(repository):
    page = (repository / "docs" / "compatibility.md").read_text(encoding="utf-8")
    assert "an artifact (`.tar`, `.so`)" in page
    assert "the C interface of a device" in page
