"""What a function's "output_tensor_names" say is what the outputs are called in C."""

import json
import re
import tarfile

import numpy as np
import pytest

import slipway as tvm
from slipway import micro, relay
from slipway.relay.backend import Executor, Runtime
from slipway.testing.aot import AOTTestModel, AOTTestRunner, compile_and_run, generate_ref_data


def model(*names, **attrs):
    x = relay.var("x", shape=(3, 4), dtype="int32")
    outputs = [x + relay.const(i) for i in range(len(names))]
    body = outputs[0] if len(names) == 1 else relay.Tuple(outputs)
    given = tvm.ir.make_node("DictAttrs", output_tensor_names=list(names), **attrs)
    return tvm.IRModule.from_expr(relay.Function([x], body, attrs=given))


@pytest.mark.parametrize(
    ("names", "fields"),
    [
        (("labels",), ["labels"]),
        (("a/scores:0", "boxes"), ["a_scores_0", "boxes"]),
        (("x", "x", "workspace"), ["x", "x_1", "workspace_1"]),
    ],
)
def test_fields_of_the_interface_and_of_the_archive(names, fields, tmp_path):
    executor = Executor("aot", {"unpacked-api": True, "interface-api": "c"})
    built = relay.build(model(*names), tvm.target.Target("c"), executor=executor,
                        runtime=Runtime("crt"), mod_name="named")  # fmt: skip
    micro.export_model_library_format(built, tmp_path / "named.tar")
    with tarfile.open(tmp_path / "named.tar") as archive:
        metadata = json.load(archive.extractfile("./metadata.json"))
        header = archive.extractfile("./codegen/host/include/tvmgen_named.h").read().decode()
    main = metadata["modules"]["named"]["memory"]["functions"]["main"][0]
    assert list(main["outputs"]) == fields
    struct = header.partition("struct tvmgen_named_outputs {")[2].partition("};")[0]
    assert re.findall(r"(\w+);", struct) == fields


def test_a_model_with_named_outputs_runs(tmp_path):
    mod = model("first", "second")
    inputs = {"x": np.arange(12, dtype="int32").reshape(3, 4)}
    wanted = generate_ref_data(mod, inputs)
    assert list(wanted) == ["first", "second"]
    tested = AOTTestModel(module=mod, inputs=inputs, outputs=wanted)
    compile_and_run(tested, AOTTestRunner(), "c", True, test_dir=str(tmp_path))
