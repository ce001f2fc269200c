"""What LLVM says of this machine's processor: asked in another process, and remembered."""

import json
import subprocess
import sys

import llvmlite.binding
import pytest

from slipway.target import host


@pytest.fixture(autouse=True)
def fresh(tmp_path, monkeypatch):
    monkeypatch.setenv("SLIPWAY_CACHE", str(tmp_path))
    host.host_cpu.cache_clear()
    yield
    host.host_cpu.cache_clear()


def files(tmp_path):
    return list((tmp_path / "host").glob("*"))


def test_it_is_what_llvm_says_here(tmp_path):
    name, words = host.host_cpu()
    assert name == llvmlite.binding.get_host_cpu_name()
    said = llvmlite.binding.get_host_cpu_features()
    assert [word[1:] for word in words] == sorted(said)
    assert {w[1:]: w[0] == "+" for w in words if "amx" not in w} == {
        name: on for name, on in said.items() if "amx" not in name
    }
    assert len(files(tmp_path)) == 1


def test_the_second_process_asks_nobody(monkeypatch):
    first = host.host_cpu()
    host.host_cpu.cache_clear()
    monkeypatch.setattr(host, "_from_llvm", lambda packages: pytest.fail("it was known"))
    assert host.host_cpu() == first


@pytest.mark.parametrize("text", ["", "{", "3", "[1, 2]", '["name", []]', '["a", {}, 1]'])
def test_a_damaged_file_counts_as_none(tmp_path, text):
    first = host.host_cpu()
    (path,) = files(tmp_path)
    path.write_text(text)
    host.host_cpu.cache_clear()
    assert host.host_cpu() == first
    assert json.loads(path.read_text())[0] == first[0]


def test_another_processor_is_asked_anew(tmp_path, monkeypatch):
    host.host_cpu()
    other = tmp_path / "cpuinfo"
    other.write_text("processor: 0\nflags: fpu\n")
    monkeypatch.setattr(host, "_CPUINFO", other)
    host.host_cpu.cache_clear()
    host.host_cpu()
    assert len(files(tmp_path)) == 2


def test_where_llvm_does_not_load_the_processor_is_unknown(tmp_path, monkeypatch):
    (tmp_path / "llvmlite").mkdir()
    (tmp_path / "llvmlite" / "__init__.py").write_text("raise OSError('damaged')")
    monkeypatch.setattr(host, "find_spec", lambda name: type("S", (), {
        "origin": str(tmp_path / "llvmlite" / "__init__.py")}))  # fmt: skip
    assert host.host_cpu() == ("", ())


def test_without_llvmlite_the_processor_is_unknown(monkeypatch):
    monkeypatch.setattr(host, "find_spec", lambda name: None)
    assert host.host_cpu() == ("", ())


def test_a_compilation_does_not_load_llvm():
    code = (
        "import sys, slipway as tvm\n"
        "from slipway import relay\n"
        "x = relay.var('x', shape=(1, 8))\n"
        "relay.build(tvm.IRModule.from_expr(relay.Function([x], x + x)), 'llvm')\n"
        "print('llvmlite.binding' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
