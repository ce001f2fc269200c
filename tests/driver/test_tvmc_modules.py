"""The submodules of classic tvmc that scripts import from."""

import argparse
import importlib
import sys

import numpy as np
import pytest

from slipway import relay
from slipway.driver import tvmc
from slipway.driver.tvmc.model import TVMCResult

MODULES = {
    "autotuner": "tune_model", "common": "parse_shape_string", "compiler": "compile_model",
    "composite_target": "get_codegen_names", "fmtopt": "format_times", "frontends": "load_model",
    "main": "main", "model": "TVMCModel", "result_utils": "get_top_results",
    "pass_config": "parse_configs", "pass_list": "parse_pass_list_str",
    "registry": "generate_registry_args", "runner": "run_module",
    "shape_parser": "parse_shape_string", "target": "target_from_cli",
    "tracker": "tracker_host_port_from_cli", "transform": "convert_graph_layout",
    "workspace_pools": "workspace_pools_recombobulate",
}  # fmt: skip


@pytest.mark.parametrize("module", MODULES)
def test_a_module_has_what_scripts_take_of_it(module):
    imported = importlib.import_module(f"slipway.driver.tvmc.{module}")
    assert callable(getattr(imported, MODULES[module]))
    assert getattr(tvmc, module) is imported


def test_they_do_what_they_say(capsys, monkeypatch):
    from slipway.driver.tvmc.composite_target import get_codegen_names
    from slipway.driver.tvmc.frontends import get_frontend_names
    from slipway.driver.tvmc.main import _main, main
    from slipway.driver.tvmc.result_utils import format_times, get_top_results
    from slipway.driver.tvmc.runner import generate_tensor_data, make_inputs_dict
    from slipway.driver.tvmc.shape_parser import parse_shape_string
    from slipway.driver.tvmc.tracker import tracker_host_port_from_cli

    assert parse_shape_string("a:[1,3] b:[2]") == {"a": [1, 3], "b": [2]}
    assert parse_shape_string("gpu_0/data_0: [1, 3],x.1:0:[2]") == {
        "gpu_0/data_0": [1, 3], "x.1:0": [2]
    }  # fmt: skip
    assert isinstance(parse_shape_string("a:[-1,3]")["a"][0], type(relay.Any()))
    for text in ("a:[a,10]", "a:5,10 b:10,10", "a/:5 b:[1"):
        with pytest.raises(argparse.ArgumentTypeError, match="is not of the form"):
            parse_shape_string(text)
    assert tracker_host_port_from_cli("lab:9191") == ("lab", 9191)
    assert "cmsis-nn" in get_codegen_names()
    assert get_frontend_names() == ["keras", "onnx", "pb", "tflite", "pytorch", "relay"]
    result = TVMCResult({"output_0": np.array([[0.1, 0.7, 0.2]])}, [])
    np.testing.assert_array_equal(get_top_results(result, 2), [[1, 2], [0.7, 0.2]])
    assert format_times(result.times) == result.format_times()
    given = make_inputs_dict(
        {"a": (2,), "b": (3,)}, {"a": "int8", "b": "float32"}, {"a": [1, 2]}, "ones"
    )
    assert given["a"] == [1, 2]
    np.testing.assert_array_equal(given["b"], np.ones(3, "float32"))
    with pytest.raises(tvmc.TVMCException, match="no input 'c'"):
        make_inputs_dict({"a": (2,)}, {"a": "int8"}, {"c": [1]})
    with pytest.raises(tvmc.TVMCException, match="Did you mean 'ones'"):
        generate_tensor_data((2,), "int8", "one")
    assert _main(["--version"]) == 0
    monkeypatch.setattr(sys, "argv", ["tvmc", "--version"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    assert capsys.readouterr().out.count(".") >= 2
