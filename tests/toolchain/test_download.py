"""Fetching files, and archives of them; the server is one of this process."""

import http.server
import os
import tarfile
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from slipway.contrib import tar
from slipway.contrib.download import download, download_testdata
from slipway.errors import DownloadError, ToolchainError


@pytest.fixture(scope="module")
def server():
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            if self.path == "/gone":
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Length", "9" if self.path == "/short" else "5")
            self.end_headers()
            self.wfile.write(b"hello")

        def log_message(self, *_):
            pass

    made = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=made.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{made.server_port}"
    made.shutdown()
    made.server_close()


def test_a_file_is_fetched_once(server, tmp_path, monkeypatch):
    path = tmp_path / "deep" / "file.bin"
    download(f"{server}/a", path)
    assert path.read_bytes() == b"hello"
    path.write_bytes(b"mine")
    download(f"{server}/a", path)
    assert path.read_bytes() == b"mine"
    download(f"{server}/a", path, size_compare=True)
    assert path.read_bytes() == b"hello"
    path.write_bytes(b"12345")
    download(f"{server}/a", path, size_compare=True)
    assert path.read_bytes() == b"12345"
    download(f"{server}/a", path, overwrite=True)
    assert path.read_bytes() == b"hello"
    monkeypatch.setenv("TEST_DATA_ROOT_PATH", str(tmp_path / "kept"))
    found = download_testdata(f"{server}/a", "m.onnx", module=["onnx", "v1"])
    assert found == str(tmp_path / "kept" / "onnx" / "v1" / "m.onnx")


@pytest.mark.parametrize("what", ["/gone", "/short", "nowhere"])
def test_what_cannot_be_fetched_leaves_nothing_behind(server, tmp_path, what):
    url = "http://127.0.0.1:9/x" if what == "nowhere" else server + what
    with pytest.raises(DownloadError, match=r"404|ended after 5 of 9 bytes|cannot fetch"):
        download(url, tmp_path / "f")
    assert not list(tmp_path.iterdir())
    with pytest.raises(DownloadError, match="no address"):
        download("not an address", tmp_path / "f")
    with pytest.raises(DownloadError, match="name a file"):
        download(url, tmp_path)


def test_archives_go_there_and_back(tmp_path):
    first, second = tmp_path / "a.o", tmp_path / "b.o"
    first.write_bytes(b"1")
    second.write_bytes(b"2")
    tar.tar(tmp_path / "all.tar", [str(first), str(second)])
    tar.untar(tmp_path / "all.tar", tmp_path / "out")
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["a.o", "b.o"]
    files = tar.normalize_file_list_by_unpacking_tars(
        tmp_path / "more", [str(first), str(tmp_path / "all.tar")]
    )
    assert [name.rpartition("/")[2] for name in files] == ["a.o", "a.o", "b.o"]
    with pytest.raises(ToolchainError, match=r"two files .* are called a\.o"):
        tar.tar(tmp_path / "x.tar", [str(first), str(tmp_path / "out" / "a.o")])
    with pytest.raises(ToolchainError, match="no such file"):
        tar.tar(tmp_path / "x.tar", str(tmp_path / "none"))


def test_what_is_packed_is_unpacked(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b").write_text("here")
    with tarfile.open(tmp_path / "good.tar", "w") as archive:
        archive.add(tmp_path / "a", "a")
    tar.untar(tmp_path / "good.tar", tmp_path / "in")
    assert (tmp_path / "in" / "a" / "b").read_text() == "here"


def test_an_archive_cannot_leave_its_folder(tmp_path):
    link = tarfile.TarInfo("link")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc"
    for member in (tarfile.TarInfo("a/../../outside"), link):
        with tarfile.open(tmp_path / "bad.tar", "w") as archive:
            archive.addfile(member)
        with pytest.raises(ToolchainError, match="cannot unpack"):
            tar.untar(tmp_path / "bad.tar", tmp_path / "in")
    with tarfile.open(tmp_path / "bad.tar", "w") as archive:
        archive.addfile(tarfile.TarInfo("../outside"))
    with pytest.raises(ToolchainError, match="cannot unpack"):
        tar.untar(tmp_path / "bad.tar", tmp_path / "in")
    (tmp_path / "no.tar").write_bytes(b"no archive")
    with pytest.raises(ToolchainError, match="cannot unpack"):
        tar.untar(tmp_path / "no.tar", tmp_path / "in")


def test_a_pipe_gets_what_is_fetched_and_stays(server, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as pool:
        read = pool.submit(pipe.read_bytes)
        download(f"{server}/a", pipe, overwrite=True)
        assert read.result(timeout=60) == b"hello"
    assert pipe.is_fifo()
