import json
import re
import tarfile

import pytest

from slipway import micro
from slipway.errors import ArtifactError
from slipway.micro.model_library import (
    ModelLibrary,
    only_model,
    ports_of,
    unpack_model_library,
)


def library():
    return ModelLibrary(
        "kws",
        {"memory": {"functions": {"main": [{"workspace_size_bytes": 7}]}}, "executors": ["aot"]},
        {"kws_lib0.c": "int x;\n"},
        {"tvmgen_kws.h": "#define X\n"},
        params=b"\1\2",
        relay_text="fn () {}",
    )


def test_layout_is_the_classic_one(tmp_path):
    path = micro.export_model_library_format(library(), tmp_path / "a.tar")
    with tarfile.open(path) as archive:
        names = {m.name for m in archive.getmembers() if m.isfile()}
    assert names == {
        "./metadata.json",
        "./codegen/host/src/kws_lib0.c",
        "./codegen/host/include/tvmgen_kws.h",
        "./parameters/kws.params",
        "./src/kws.relay",
    }


def test_metadata_is_found_where_each_version_of_the_format_has_it(tmp_path):
    path = micro.export_model_library_format(library(), tmp_path / "a.tar")
    metadata = unpack_model_library(path, tmp_path / "x")
    assert metadata["version"] == 7
    assert metadata["modules"]["kws"]["memory"] == metadata["memory"]
    assert only_model(metadata)["memory"]["functions"]["main"][0]["workspace_size_bytes"] == 7


def test_same_library_gives_the_same_bytes(tmp_path):
    a = micro.export_model_library_format(library(), tmp_path / "a.tar")
    b = micro.export_model_library_format(library(), tmp_path / "b.tar")
    assert a.read_bytes() == b.read_bytes()
    assert list(tmp_path.glob("*.part")) == []


def test_export_time_is_the_environments(tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    path = micro.export_model_library_format(library(), tmp_path / "a.tar")
    metadata = unpack_model_library(path, tmp_path / "x")
    assert metadata["export_datetime"] == "1970-01-02 00:00:00Z"


def test_what_is_no_archive_and_what_is_too_new_are_refused(tmp_path):
    (tmp_path / "a.tar").write_bytes(b"no tar")
    with pytest.raises(ArtifactError, match=r"a\.tar is no Model Library Format"):
        unpack_model_library(tmp_path / "a.tar", tmp_path / "x")
    newer = ModelLibrary("m")
    members = newer.members()
    members["metadata.json"] = json.dumps({"version": 8}).encode()
    newer.members = lambda: members
    path = micro.export_model_library_format(newer, tmp_path / "b.tar")
    with pytest.raises(ArtifactError, match="version 8"):
        unpack_model_library(path, tmp_path / "y")


def test_an_archive_with_the_runtime_has_what_its_ports_start_from(tmp_path):
    model = library()
    model.has_runtime = True
    unpack_model_library(micro.export_model_library_format(model, tmp_path / "a.tar"), tmp_path)
    assert "TVM_CRT_MAX_NDIM" in (tmp_path / "templates/crt_config.h.template").read_text()
    text = (tmp_path / "templates/platform.c.template").read_text()
    header = (tmp_path / "runtime/include/slipway/platform.h").read_text()
    wanted = set(re.findall(r"slw_platform_\w+(?=\()", header))
    assert wanted == set(re.findall(r"slw_platform_\w+(?=\()", text))


def test_models_of_one_name_are_refused_as_classic_callers_expect(tmp_path):
    with pytest.raises(AssertionError, match="Multiple modules should have unique names") as said:
        micro.export_model_library_format([library(), library()], tmp_path / "a.tar")
    assert isinstance(said.value, ArtifactError)


@pytest.mark.parametrize("where", ["memory", "interface"])
def test_what_is_known_of_an_input_is_found_where_each_version_has_it(where):
    size, more = {"dtype": "int8", "size": 6}, {"shape": [2, 3], "name": "x"}
    main = {"inputs": {"x": size | more if where == "memory" else size}}
    model = {"memory": {"functions": {"main": [main]}}}
    if where == "interface":
        model["interface"] = {"inputs": {"x": more}}
    assert ports_of(model, "inputs") == {"x": size | more}
    assert ports_of(model, "outputs") == ports_of({"memory": []}, "inputs") == {}


def test_what_cannot_be_exported_says_what_can(tmp_path):
    with pytest.raises(micro.UnsupportedInModelLibraryFormatError, match=r"relay\.build"):
        micro.export_model_library_format(object(), tmp_path / "a.tar")
