"""The kernel cache: hits, damage, limits."""

from importlib import metadata

import kernels

from slipway.codegen import cache
from slipway.codegen.c import backend
from slipway.codegen.llvm import machine
from slipway.compiler.emit import build_module
from slipway.target import Target


def files(cache_folder):
    return [p for p in (cache_folder / "kernels").glob("*/*") if p.is_file()]


def count_compilations(monkeypatch):
    compiled = []
    original = machine._request

    def request(want, *rest):
        compiled.extend([1] * (want == "object"))
        return original(want, *rest)

    monkeypatch.setattr(machine, "_request", request)
    return compiled


def test_the_second_compilation_is_read_from_disk(cache_folder, monkeypatch):
    compiled = count_compilations(monkeypatch)
    first = build_module(kernels.vector_add(), Target("llvm")).objects
    assert compiled == [1]
    assert build_module(kernels.vector_add(), Target("llvm")).objects == first
    assert compiled == [1]
    build_module(kernels.vector_add(), Target("llvm -opt-level=1"))
    build_module(kernels.vector_add(n=512), Target("llvm"))
    assert compiled == [1, 1, 1]


def test_a_damaged_file_is_made_again(cache_folder, monkeypatch):
    first = build_module(kernels.vector_add(), Target("llvm")).objects
    for path in files(cache_folder):
        path.write_bytes(path.read_bytes()[:-1] + b"?")
    compiled = count_compilations(monkeypatch)
    machine.part_object.cache_clear()
    assert build_module(kernels.vector_add(), Target("llvm")).objects == first
    assert compiled == [1]


def test_it_can_be_turned_off(cache_folder, monkeypatch):
    monkeypatch.setenv("SLIPWAY_KERNEL_CACHE", "0")
    build_module(kernels.vector_add(), Target("llvm"))
    assert files(cache_folder) == []


def test_the_oldest_files_go_first(cache_folder):
    import os

    for number in range(10):
        key = cache.key_of(str(number))
        cache.store(key, bytes(1000))
        os.utime(cache._path(key), (number, number))
    cache.sweep(limit_bytes=5 * 1032)
    kept = [number for number in range(10) if cache.load(cache.key_of(str(number))) is not None]
    assert kept == [5, 6, 7, 8, 9]


def test_c_is_compiled_once(cache_folder, monkeypatch):
    compiled = []

    def run(command, text, target, what, suffix):
        compiled.append(what)
        return run_compiler(command, text, target, what, suffix)

    run_compiler = backend._run
    monkeypatch.setattr(backend, "_run", run)
    target = Target("c")
    first = build_module(kernels.vector_add(), target).objects
    assert compiled == ["generated C", "helpers"]
    assert build_module(kernels.vector_add(), target).objects == first
    assert compiled == ["generated C", "helpers"]
    build_module(kernels.vector_add(), Target("c -opt-level=1")).object_bytes()
    assert compiled == ["generated C", "helpers"] * 2


def test_the_folder_is_looked_at_once_in_so_many_bytes(cache_folder, monkeypatch):
    size = cache.SWEEP_BYTES // 100
    due = sum(cache.is_due(cache.key_of(str(number)), size) for number in range(10000))
    assert 60 < due < 140
    swept = []
    monkeypatch.setattr(cache, "sweep", lambda: swept.append(1))
    monkeypatch.setattr(cache, "SWEEP_BYTES", 1000)
    cache.store(cache.key_of("large"), bytes(1000))
    assert swept == [1]


def test_what_would_drive_out_all_others_is_not_kept(cache_folder, monkeypatch):
    monkeypatch.setattr(cache, "LARGEST_BYTES", 1000)
    cache.store(cache.key_of("a"), bytes(1001))
    assert files(cache_folder) == []


def test_the_version_of_a_compiler_is_part_of_every_key():
    assert cache._installed("llvmlite") == f"llvmlite-{metadata.version('llvmlite')}.dist-info"
    assert cache._installed("no_such_package") == ""


def test_a_package_without_a_folder_of_an_installer_is_named_by_itself(tmp_path, monkeypatch):
    (tmp_path / "unpacked_by_hand").mkdir()
    (tmp_path / "unpacked_by_hand" / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    assert cache._installed("unpacked_by_hand") == "unpacked_by_hand"
    (tmp_path / "unpacked_by_hand-2.1.dist-info").mkdir()
    assert cache._installed("unpacked_by_hand") == "unpacked_by_hand-2.1.dist-info"
