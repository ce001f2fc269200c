"""`slipway chat` and `slipway serve` with a trained model on an emulated aarch64, over RPC."""

import contextlib
import http.client
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from slipway.toolchain import emulators, native

sys.path.insert(0, str(Path(__file__).parents[1] / "llm"))  # character_model
from character_model import FILE, TEXT

OPENING = "When yellow leaves, or none, or few, do"
BEHIND = TEXT[TEXT.index(OPENING) + len(OPENING) :]
TARGET = "llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72"
ENVIRONMENT = {**os.environ, "NO_COLOR": "1", "COLUMNS": "100"}


@pytest.fixture(scope="module")
def port():
    """The port of an emulated device's server."""
    emulator = emulators.find("aarch64")
    if emulator is None:
        pytest.skip(emulators.install_hint("aarch64"))
    server = native.build_device_server("aarch64")
    command = [*emulator, str(server), "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        yield process.stderr.readline().rsplit(":", 1)[1].strip()
        process.kill()


@pytest.fixture(scope="module")
def chatted(port, tmp_path_factory):
    """What `slipway chat` says, and the folder where it keeps the model."""
    folder = tmp_path_factory.mktemp("chat") / "kept"
    command = [
        sys.executable, "-m", "slipway", "chat", str(FILE), "--raw", "--prompt", OPENING,
        "--temperature", "0", "--max-tokens", "22", "--context", "128", "--target", TARGET,
        "--rpc-host", "127.0.0.1", "--rpc-port", port, "--save", str(folder),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, timeout=240)
    assert done.returncode == 0, done.stderr
    return done.stdout, folder


def test_chat_goes_on_with_the_verse(chatted):
    assert chatted[0] == BEHIND[:22] + "\n"


@contextlib.contextmanager
def serving(folder, port):
    """Start `slipway serve` for the model on the device; give a connection to it."""
    command = [
        sys.executable, "-m", "slipway", "serve", str(folder), "--port", "0",
        "--rpc-host", "127.0.0.1", "--rpc-port", port,
    ]  # fmt: skip
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT) as process:
        try:
            for line in process.stderr:
                if "http://" in line:
                    address = line.partition("http://")[2].split("/")[0]
                    break
            yield address
        finally:
            process.terminate()


def ask(address, path, body=None):
    connection = http.client.HTTPConnection(address, timeout=120)
    connection.request("POST" if body else "GET", path, json.dumps(body) if body else None)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


def test_serve(chatted, port):
    pytest.importorskip("starlette")
    pytest.importorskip("uvicorn")
    request = {"prompt": OPENING, "temperature": 0, "max_tokens": 12}
    with serving(chatted[1], port) as address:
        status, text = ask(address, "/v1/models")
        assert (status, json.loads(text)["data"][0]["id"]) == (200, "verse")
        status, text = ask(address, "/v1/completions", request)
        assert status == 200
        answer = json.loads(text)
        assert answer["choices"] == [
            {"index": 0, "text": BEHIND[:12], "finish_reason": "length", "logprobs": None}
        ]
        assert answer["usage"]["prompt_tokens"] == len(OPENING) + 1
        # a client that goes away in the middle leaves the model to the next
        for _ in range(2):
            connection = http.client.HTTPConnection(address, timeout=120)
            many = {**request, "max_tokens": 60, "stream": True}
            connection.request("POST", "/v1/completions", json.dumps(many))
            connection.getresponse().read(20)
            connection.close()
        status, text = ask(address, "/v1/completions", {**request, "stream": True})
        events = [line[6:] for line in text.splitlines() if line.startswith("data: ")]
        assert events[-1] == "[DONE]"
        pieces = [json.loads(event)["choices"][0]["text"] for event in events[:-1]]
        assert "".join(pieces) == BEHIND[:12]
        status, text = ask(address, "/v1/completions", {"prompt": "x" * 200})
        assert status == 400
        assert "201 tokens; the model's context is 128" in json.loads(text)["error"]["message"]
