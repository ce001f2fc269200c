"""A .pt2 file is data: nothing in it is run, and a damaged one is refused in words."""

import io
import json
import pickle
import zipfile

import pytest

from slipway import relay
from slipway.errors import ModelError
from slipway.frontends.torch.sizes_text import check_size_text

torch = pytest.importorskip("torch")


class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 4, 3)
        self.register_buffer("shift", torch.ones(4))

    def forward(self, x):
        return {"a": self.conv(x).relu().mean((2, 3)) + self.shift, "b": torch.cat([x, x])}


@pytest.fixture(scope="module")
def members(tmp_path_factory):
    """The parts of a saved program with an open size, by their names without the first folder."""
    path = tmp_path_factory.mktemp("pt2") / "network.pt2"
    size = torch.export.Dim("n", min=2, max=64)
    program = torch.export.export(
        Network().eval(), (torch.ones(2, 3, 6, 6),), dynamic_shapes={"x": {0: size}}
    )
    torch.export.save(program, path)
    with zipfile.ZipFile(path) as archive:
        return {name.partition("/")[2]: archive.read(name) for name in archive.namelist()}


def written(members, path, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(f"network/{name}", content)
    return path


def changed(members, path, name, edit):
    document = json.loads(members[name])
    edit(document)
    return written({**members, name: json.dumps(document).encode()}, path)


class Touches:
    """What a pickle calls when it is read."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


MODEL = "models/model.json"
WEIGHTS = "data/weights/model_weights_config.json"
CONSTANTS = "data/constants/model_constants_config.json"


def graph_of(document):
    return document["graph_module"]["graph"]


def test_a_saved_program_is_read_as_it_is(members, tmp_path):
    module, _ = relay.frontend.from_pytorch(written(members, tmp_path / "m.pt2"))
    assert "nn.conv2d" in str(module)


def test_sizes_are_no_python(members, tmp_path):
    mark = tmp_path / "mark"

    def edit(document):
        values = graph_of(document)["tensor_values"]
        values["x"]["sizes"][0]["as_expr"]["expr_str"] = f"open({str(mark)!r}, 'w')"

    with pytest.raises(ModelError, match="no arithmetic of symbols"):
        relay.frontend.from_pytorch(changed(members, tmp_path / "m.pt2", MODEL, edit))
    assert not mark.exists()


@pytest.mark.parametrize(
    "target",
    ["torch.os.system", "torch.serialization.os.system", "_operator.call", "math.__loader__.x",
     "torch.ops.aten.from_file.default", "torch.hub.download_url_to_file"],
)  # fmt: skip
@pytest.mark.parametrize("part", ["target", "argument"])
def test_operators_are_no_other_functions(members, tmp_path, target, part):
    mark = tmp_path / "mark"

    def edit(document):
        node = graph_of(document)["nodes"][0]
        if part == "target":
            node["target"] = target
            node["inputs"] = [{"name": "c", "arg": {"as_string": f"touch {mark}"}, "kind": 1}]
        else:
            node["inputs"].append({"name": "f", "arg": {"as_operator": target}, "kind": 1})

    with pytest.raises(ModelError, match="as an operator"):
        relay.frontend.from_pytorch(changed(members, tmp_path / "m.pt2", MODEL, edit))
    assert not mark.exists()


def test_names_are_no_source(members, tmp_path):
    """torch writes Python with the names of a graph in it."""
    mark = tmp_path / "mark"
    name = f"x=open({str(mark)!r}, 'w')"
    text = members[MODEL].decode().replace('"conv2d"', json.dumps(name))
    with pytest.raises(ModelError, match="the name"):
        relay.frontend.from_pytorch(written({**members, MODEL: text.encode()}, tmp_path / "m.pt2"))
    assert not mark.exists()


@pytest.mark.parametrize("kind", ["weight", "opaque_obj", "custom_obj"])
def test_weights_and_constants_are_tensors(members, tmp_path, kind):
    mark = tmp_path / "mark"
    folder, config = ("weights", WEIGHTS) if kind == "weight" else ("constants", CONSTANTS)
    name = "conv.weight" if kind == "weight" else "object"

    def edit(document):
        document["config"][name] = {
            **json.loads(members[WEIGHTS])["config"]["conv.weight"],
            "path_name": f"{kind}_7", "use_pickle": True,
        }  # fmt: skip

    parts = {**members, f"data/{folder}/{kind}_7": pickle.dumps(Touches(mark))}
    with pytest.raises(ModelError, match=r"no tensor|damaged"):
        relay.frontend.from_pytorch(changed(parts, tmp_path / "m.pt2", config, edit))
    assert not mark.exists()


def test_example_inputs_of_other_classes_are_left_out(members, tmp_path):
    """Programs of other packages have such inputs, and the compiler needs none."""
    mark = tmp_path / "mark"
    made = io.BytesIO()
    torch.save(((Touches(mark),), {}), made)
    parts = {**members, "data/sample_inputs/model.pt": made.getvalue()}
    module, _ = relay.frontend.from_pytorch(written(parts, tmp_path / "m.pt2"))
    assert "nn.conv2d" in str(module)
    assert not mark.exists()


def test_compiled_libraries_are_not_loaded(members, tmp_path):
    parts = {**members, "data/aotinductor/model/wrapper.so": b"\x7fELF"}
    with pytest.raises(ModelError, match="compiled library"):
        relay.frontend.from_pytorch(written(parts, tmp_path / "m.pt2"))


@pytest.mark.parametrize(
    "context",
    [{"default_factory_module": "antigravity", "default_factory_name": "x", "dict_context": []},
     [{"__enum__": True, "fqn": "antigravity:x", "name": "y"}]],
)  # fmt: skip
def test_containers_import_nothing(members, tmp_path, context):
    def edit(document):
        signature = document["graph_module"]["module_call_graph"][0]["signature"]
        spec = json.loads(signature["out_spec"])
        spec[1]["context"] = context if isinstance(context, dict) else json.dumps(context)
        signature["out_spec"] = json.dumps(spec)

    with pytest.raises(ModelError, match="a container that imports"):
        relay.frontend.from_pytorch(changed(members, tmp_path / "m.pt2", MODEL, edit))


def test_what_swells_is_not_unpacked(members, tmp_path):
    parts = {**members, "extra/zeros": bytes(2**26)}
    path = written(parts, tmp_path / "m.pt2", zipfile.ZIP_DEFLATED)
    assert path.stat().st_size < 2**20
    with pytest.raises(ModelError, match="unpacks to"):
        relay.frontend.from_pytorch(path)


@pytest.mark.parametrize(
    "text",
    ["9**9**9**9", "Pow(Integer(9), Pow(Integer(9), Integer(99)))", "(9**8)**8", "9**99",
     "LShift(1, 10000000000)", "__import__('os')", "Symbol('x').free_symbols", "[1 for _ in 'x']",
     "lambdify(x, x)", "preview(x)", "Symbol('a b')", "x if 1 else y", "(" * 300 + ")" * 300,
     "-" * 5000 + "1", "-" * 250 + "1", "+".join(["s0"] * 300), "1" * 30000, "", "f'{x}'",
     "factorial(100000000)"],
)  # fmt: skip
def test_other_texts_than_arithmetic_are_refused(text):
    with pytest.raises(ModelError, match="no arithmetic"):
        check_size_text(text, "it")


@pytest.mark.parametrize(
    "text",
    ["Symbol('s77', positive=True, integer=True)", "s0", "2*s0 + 1", "s0**2", "(s0 + 3)//4",
     "Add(Mul(Integer(2), Symbol('s0', integer=True)), Integer(-1))", "Max(1, s0 - 1)",
     "Pow(Symbol('s0', integer=True), Integer(2))", "FloorDiv(Symbol('u0', integer=True), 2)",
     "Eq(Mod(s0, 2), 0)", "-" * 90 + "1", "+".join(["s0"] * 90), "PowByNatural(2, s0)",
     "s0*s1 > 4", "Rational(1, 2)"],
)  # fmt: skip
def test_arithmetic_of_sizes_is_taken(text):
    check_size_text(text, "it")


def test_an_operator_that_nobody_registered_is_named(members, tmp_path):
    """That of a package which was imported where the program was saved, for example."""
    text = members[MODEL].decode()
    assert "torch.ops.aten.conv2d.default" in text
    text = text.replace("torch.ops.aten.conv2d.default", "torch.ops.elsewhere.fold.default")
    path = written({**members, MODEL: text.encode()}, tmp_path / "m.pt2")
    with pytest.raises(ModelError, match=r"does not have: elsewhere::fold\. Import the package"):
        relay.frontend.from_pytorch(path)
