"""Targets, options and lists of passes as tvmc's command line writes them."""

import argparse

import pytest

from slipway.driver import tvmc
from slipway.driver.tvmc.pass_config import load_function, parse_configs
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
        ("a -b=c --d, e -f=g", ["a", "-b=c", "--d", ",", "e", "-f=g"]),
        ("a,b -x=1", ["a", ",", "b", "-x=1"]),
        ("a -b=+c,+d,-e, f", ["a", "-b=+c,+d,-e", ",", "f"]),
        ("a -b='c, d', e", ["a", "-b='c, d'", ",", "e"]),
        ('a -b="c, d"', ["a", '-b="c, d"']),
        ("raspberry-pi/4b", ["raspberry-pi/4b"]),
    ],
)
def test_the_words_of_a_target(text, tokens):
    assert tokenize_target(text) == tokens


def test_several_targets():
    first, second = parse_target("cmsis-nn -mcpu=cortex-m55, c -mcpu='cortex-m55' --system-lib")
    assert first == {
        "name": "cmsis-nn", "opts": {"mcpu": "cortex-m55"}, "raw": "cmsis-nn -mcpu=cortex-m55",
        "is_tvm_target": False,
    }  # fmt: skip
    assert second["is_tvm_target"]
    assert second["opts"] == {"mcpu": "cortex-m55", "system-lib": True}
    target, extras = target_from_cli("dnnl, cmsis-nn, llvm", {"llvm": {"mcpu": "skylake"}})
    assert (target.mcpu, [each["name"] for each in extras]) == ("skylake", ["dnnl", "cmsis-nn"])
    device, none = target_from_cli("opencl -device=mali, llvm -mtriple=aarch64-linux-gnu")
    assert (device.kind.name, device.host.arch, none) == ("opencl", "aarch64", [])


def test_a_target_as_json_file_tag_and_object(tmp_path):
    file = tmp_path / "target.json"
    file.write_text('{"kind": "llvm", "mcpu": "haswell"}')
    for text in (str(file), file.read_text(), "llvm -mcpu=haswell"):
        assert target_from_cli(text)[0].mcpu == "haswell"
    assert target_from_cli(str(file), {"llvm": {"num-cores": 2}})[0].attrs["num-cores"] == 2
    assert target_from_cli("raspberry-pi/4b-aarch64")[0].arch == "aarch64"


@pytest.mark.parametrize(
    ("text", "more", "words"),
    [
        ("llvm, llvm", {}, "Duplicate target"),
        ("cuda, opencl, llvm", {}, "Found: cuda, opencl, llvm"),
        ("llwm", {}, "Did you mean 'llvm'"),
        ("llvm, dnnl", {}, "The last target needs to be a kind of target"),
        ("dnln, llvm", {}, "Did you mean 'dnnl'"),
        ("llvm,", {}, "names no target"),
        ("[1]", {}, "JSON of a target is"),
        ("llvm mcpu=x", {}, "no option -name=value"),
        ("llvm", {"opencl": {"device": "mali"}}, "Passed --target-opencl-device but did not"),
    ],
)
def test_targets_that_cannot_be(text, more, words):
    with pytest.raises(ValueError, match=words):
        target_from_cli(text, more)


def test_options_of_kinds_as_arguments():
    parser = argparse.ArgumentParser()
    generate_target_args(parser)
    line = ["--target=cmsis-nn,c", "--target-c-mcpu=cortex-m55", "--target-cmsis-nn-mattr=+nofp"]
    wanted = {"c": {"mcpu": "cortex-m55"}, "cmsis-nn": {"mattr": "+nofp"}}
    assert reconstruct_target_args(parser.parse_args(line)) == wanted


def test_executors_and_runtimes_as_arguments():
    parser = argparse.ArgumentParser()
    generate_registry_args(parser, Executor, "aot")
    generate_registry_args(parser, Runtime)
    line = parser.parse_args(["--executor-aot-interface-api=c", "--executor-aot-unpacked-api=1"])
    made = reconstruct_registry_entity(line, Executor)
    assert (made.name, made["interface-api"], made["unpacked-api"]) == ("aot", "c", 1)
    assert reconstruct_registry_entity(line, Runtime) is None
    with pytest.raises(tvmc.TVMCException, match='Executor "woof" is not defined: there are'):
        reconstruct_registry_entity(parser.parse_args(["--executor=woof"]), Executor)
    line = parser.parse_args(["--executor=graph", "--executor-aot-unpacked-api=1"])
    with pytest.raises(tvmc.TVMCException, match="Passed --executor-aot-unpacked-api but did not"):
        reconstruct_registry_entity(line, Executor)


def test_options_of_a_context():
    found = parse_configs(
        ["tir.disable_vectorize=true", "relay.FuseOps.max_depth=3",
         'tir.UnrollLoop={"auto_max_step": 4}', "tir.add_lower_pass=1,tir.transform.UnrollLoop",
         "tir.add_lower_pass=2,tvm.tir.transform.Simplify,3,tir.transform.RemoveNoOp"]
    )  # fmt: skip
    added = found.pop("tir.add_lower_pass")
    assert found == {
        "tir.disable_vectorize": True, "relay.FuseOps.max_depth": 3,
        "tir.UnrollLoop": {"auto_max_step": 4},
    }  # fmt: skip
    assert [level for level, _ in added] == [1, 2, 3]
    assert parse_configs(None) == {}
    for text, words in (
        ("tir.disable_vectorize", "use <config>=<value>"),
        ("tir.disable_vectorise=1", "Did you mean 'tir.disable_vectorize'"),
        ("tir.disable_vectorize=perhaps", "takes a bool"),
        ("tir.UnrollLoop=4", "takes a dict as JSON"),
        ("tir.add_lower_pass=1,tir.transform.UnrollLoop,2", "of the form"),
        ("tir.add_lower_pass=a,tir.transform.UnrollLoop", "integers are levels"),
        ("tir.add_lower_pass=1,tir.transform.UnrolLoop", "Did you mean 'UnrollLoop'"),
    ):
        with pytest.raises(tvmc.TVMCException, match=words):
            parse_configs([text])
    with pytest.raises(tvmc.TVMCException, match="No function 'pth' found in module 'os'"):
        load_function("os.pth")


def test_lists_of_passes():
    assert parse_pass_list_str("") == [""]
    assert parse_pass_list_str("FoldScaleAxis, FuseOps") == ["FoldScaleAxis", "FuseOps"]
    with pytest.raises(argparse.ArgumentTypeError, match=r"FuseOp, My.*Did you mean 'FuseOps'"):
        parse_pass_list_str("FuseOp,My,FuseOps")
