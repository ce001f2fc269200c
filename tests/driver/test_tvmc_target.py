"""Targets, options of passes, executors: what lines of tvmc say of them."""

import argparse

import pytest

from slipway.driver.tvmc import TVMCException
from slipway.driver.tvmc.pass_config import parse_configs
from slipway.driver.tvmc.pass_list import parse_pass_list_str
from slipway.driver.tvmc.registry import generate_registry_args, reconstruct_registry_entity
from slipway.driver.tvmc.target import (
    generate_target_args,
    parse_target,
    reconstruct_target_args,
    target_from_cli,
    tokenize_target,
)
from slipway.relay.backend import Executor, Runtime


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("llvm", ["llvm"]),
        ("cmsis-nn,c", ["cmsis-nn", ",", "c"]),
        ("raspberry-pi/4b-aarch64", ["raspberry-pi/4b-aarch64"]),
        ("llvm -mattr=+a,+dotprod --lib", ["llvm", "-mattr=+a,+dotprod", "--lib"]),
        ("a -b=+c, d", ["a", "-b=+c", ",", "d"]),
        ("a -b='c, d', e", ["a", "-b='c, d'", ",", "e"]),
        ('a -b="c, d" , e', ["a", '-b="c, d"', ",", "e"]),
        ("a -b=, c", ["a", "-b=", ",", "c"]),
    ],
)  # fmt: skip
def test_words_of_targets(text, tokens):
    assert tokenize_target(text) == tokens


def test_options_of_each_target():
    first, second = parse_target("cmsis-nn -accelerator='x, y', llvm -device=arm_cpu --system-lib")
    assert (first["name"], first["opts"]) == ("cmsis-nn", {"accelerator": "x, y"})
    assert not first["is_tvm_target"]
    assert second["opts"] == {"device": "arm_cpu", "system-lib": True}
    assert second["is_tvm_target"]
    assert second["raw"] == "llvm -device=arm_cpu --system-lib"


def test_a_target_and_its_host():
    target, libraries = target_from_cli(
        "opencl -device=mali, llvm -mtriple=aarch64-linux-gnu",
        {"llvm": {"mcpu": "cortex-a73"}, "opencl": {"max_num_threads": 404}},
    )
    assert libraries == []
    assert (target.kind.name, target.attrs["max_num_threads"]) == ("opencl", 404)
    assert target.keys[0] == "mali"
    assert (target.host.mcpu, target.host.triple) == ("cortex-a73", "aarch64-linux-gnu")


def test_a_library_and_the_target_behind_it():
    options = {"cmsis-nn": {"mcpu": "m"}, "c": {"mcpu": "cortex-m55"}}
    target, (library,) = target_from_cli("cmsis-nn, c", options)
    assert target.mcpu == "cortex-m55"
    assert (library["name"], library["opts"]) == ("cmsis-nn", {"mcpu": "m"})


def test_targets_as_json(tmp_path):
    text = '{"kind": "llvm", "mcpu": "skylake"}'
    (tmp_path / "target.json").write_text(text)
    for given in (text, str(tmp_path / "target.json")):
        target, _ = target_from_cli(given, {"llvm": {"num-cores": 2}})
        assert (target.mcpu, target.attrs["num-cores"]) == ("skylake", 2)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("llvm, llvm", "names 'llvm' twice"),
        ("cuda, opencl, llvm", "more than libraries, a target and its host"),
        ("llvm, cmsis-nn", "in this order"),
        ("nothing", "unknown target kind 'nothing'"),
        ("cmsis-nn", "cmsis-nn needs a target behind it"),
        ("ethos-n77", "unknown target kind 'ethos-n77'"),
        ("", "names no kind before its end"),
        ("-mcpu=x llvm", "names no kind before '-mcpu=x'"),
        ("llvm,", "names no kind before a comma"),
        ("llvm -x='y", "cannot be read from"),
        ("{", "is no JSON"),
        ("{}", r"\w"),
        ('{"kind": [1]}', r"\w"),
        ("llvm -mtriple", r"\w"),
    ],
)
def test_what_is_no_target(text, words):
    with pytest.raises(TVMCException, match=words):
        target_from_cli(text)


def test_options_of_a_target_that_is_not_there():
    with pytest.raises(TVMCException, match="--target-opencl-arch but did not specify opencl"):
        target_from_cli("llvm", {"opencl": {"arch": "x"}})


def test_options_of_targets_in_a_line():
    parser = argparse.ArgumentParser()
    generate_target_args(parser)
    line = ["--target=cmsis-nn,llvm", "--target-llvm-mattr=+fp,+mve", "--target-cmsis-nn-mcpu=m",
            "--target-llvm-num-cores=2", "--target-llvm-system-lib=true"]  # fmt: skip
    found, rest = parser.parse_known_args([*line, "--target-cmsis-nn-from_device=1"])
    assert (found.target, found.target_llvm_mattr) == ("cmsis-nn,llvm", "+fp,+mve")
    assert rest == ["--target-cmsis-nn-from_device=1"]
    assert reconstruct_target_args(found) == {
        "llvm": {"mattr": "+fp,+mve", "num-cores": 2, "system-lib": 1},
        "cmsis-nn": {"mcpu": "m"},
    }
    assert parser.parse_args([]).target == "llvm"


def test_options_of_passes():
    assert parse_configs(None) == {}
    assert parse_configs(
        ["tir.disable_vectorize=true", "relay.FuseOps.max_depth = 10", "schedules.records=a=b"]
    ) == {"tir.disable_vectorize": True, "relay.FuseOps.max_depth": 10, "schedules.records": "a=b"}
    for text, words in (
        ("", "not of the form"),
        ("=1", "not of the form"),
        ("tir.disable_vectorize", "not of the form"),
        ("tir.disable_vectorise=1", "no config key .*tir.disable_vectorize"),
        ("tir.UnrollLoop=1", "takes a dict .*give it in Python"),
        ("relay.FuseOps.max_depth=x", "takes a int .*not 'x'"),
        ("tir.disable_vectorize=2", "takes a bool .*not '2'"),
    ):
        with pytest.raises(TVMCException, match=words):
            parse_configs([text])


def test_names_of_passes():
    assert parse_pass_list_str("") == [""]
    for text in ("FoldScaleAxis,FuseOps", "tir.UnrollLoop,qnn.Legalize"):
        assert parse_pass_list_str(text) == text.split(",")
    with pytest.raises(
        argparse.ArgumentTypeError, match=r"Mine, qnn\.Yours\. There are: .*FuseOps"
    ):
        parse_pass_list_str("Mine,FuseOps,qnn.Yours")


def test_executors_and_runtimes_of_a_line():
    parser = argparse.ArgumentParser()
    generate_registry_args(parser, Executor)
    generate_registry_args(parser, Runtime, "crt")
    found = parser.parse_args(["--executor=aot", "--executor-aot-interface-api=c",
                               "--executor-aot-workspace-byte-alignment=8"])  # fmt: skip
    assert reconstruct_registry_entity(found, Executor) == Executor(
        "aot", {"interface-api": "c", "workspace-byte-alignment": 8}
    )
    assert reconstruct_registry_entity(found, Runtime) == Runtime("crt")
    assert reconstruct_registry_entity(parser.parse_args([]), Executor) is None
    for line, words in (
        (["--executor=woof"], 'Executor "woof" is not defined'),
        (["--executor=aot", "--executor-graph-link-params=1"], "did not specify graph executor"),
    ):
        with pytest.raises(TVMCException, match=words):
            reconstruct_registry_entity(parser.parse_args(line), Executor)
