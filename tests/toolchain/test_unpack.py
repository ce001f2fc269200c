import io
import os
import tarfile

import pytest

from slipway.errors import ArtifactError
from slipway.toolchain.unpack import unpack_tar


def archive(path, name, kind=tarfile.REGTYPE, mode=0o644):
    with tarfile.open(path, "w:gz") as out:
        info = tarfile.TarInfo(name)
        info.type, info.mode, info.size, info.linkname = kind, mode, 2, "/etc/passwd"
        out.addfile(info, io.BytesIO(b"ab"))
    return path


def test_files_come_out_with_their_folders_and_executable_bit(tmp_path):
    unpack_tar(archive(tmp_path / "x.tar", "a/b/run.sh", mode=0o755), tmp_path / "out")
    made = tmp_path / "out" / "a" / "b" / "run.sh"
    assert made.read_bytes() == b"ab"
    assert os.access(made, os.X_OK)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("../evil", tarfile.REGTYPE),
        ("/tmp/evil", tarfile.REGTYPE),
        ("a/../../evil", tarfile.REGTYPE),
        ("link", tarfile.SYMTYPE),
        ("link", tarfile.LNKTYPE),
        ("pipe", tarfile.FIFOTYPE),
    ],
)
def test_what_leads_out_is_refused(tmp_path, name, kind):
    with pytest.raises(ArtifactError, match="not to be trusted"):
        unpack_tar(archive(tmp_path / "x.tar", name, kind), tmp_path / "out")
    assert not (tmp_path / "evil").exists()


def test_what_is_no_archive_is_said(tmp_path):
    path = tmp_path / "x.tar"
    path.write_bytes(b"nothing")
    with pytest.raises(ArtifactError, match="is no tar archive"):
        unpack_tar(path, tmp_path / "out")
