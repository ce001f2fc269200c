import dataclasses

import numpy as np
import pytest

from slipway.errors import ArtifactError, ExecutionError
from slipway.runtime import cpu, load_module
from slipway.runtime import ndarray as nd
from slipway.runtime.artifact_writer import write_artifact
from slipway.runtime.graph.graph_executor import GraphModule, create
from slipway.runtime.graph.graph_format import GraphEntry, GraphNode, GraphTables
from slipway.runtime.params import save_param_dict

SHAPE = (2, 3)


def tables():
    """y = (data + weight) + 1, and a reshape in place."""
    entry = GraphEntry(SHAPE, "float32", 0)
    at = [GraphEntry(SHAPE, "float32", i) for i in range(3)]
    return GraphTables(
        nodes=(
            GraphNode("data", None, ()),
            GraphNode("weight", None, ()),
            GraphNode("sum", "add", ((0, 0), (1, 0))),
            GraphNode("plus", "add_one", ((2, 0),)),
            GraphNode("flat", "__nop", ((3, 0),)),
        ),
        entries=(*at, entry.__class__(SHAPE, "float32", 3), GraphEntry((6,), "float32", 3)),
        inputs=(0, 1),
        outputs=((4, 0), (2, 0)),
    )


@pytest.fixture
def library(kernels_library):
    return load_module(kernels_library)


@pytest.fixture
def model(library):
    made = GraphModule(create(tables().to_json(), library, cpu(0)))
    made.load_params(save_param_dict({"weight": np.full(SHAPE, 10, "float32")}))
    return made


def test_runs_and_returns_outputs(model):
    data = np.arange(6, dtype="float32").reshape(SHAPE)
    model.set_input("data", data)
    model.run()
    np.testing.assert_array_equal(model.get_output(0).numpy(), (data + 11).ravel())
    np.testing.assert_array_equal(model.get_output(1).numpy(), data + 10)
    model.run(data=nd.array(data * 2))
    out = nd.empty((6,))
    assert model.get_output(0, out) is out
    np.testing.assert_array_equal(out.numpy(), (data * 2 + 11).ravel())


def test_inputs_by_number_keyword_and_list(model):
    model.set_input(0, np.ones(SHAPE, "float32"))
    model.run()
    assert model.get_output(1).numpy()[0, 0] == 11
    model.set_input(data=[[1, 2, 3], [4, 5, 6]], weight=np.zeros(SHAPE, "float32"))
    model.run()
    np.testing.assert_array_equal(model.get_output(0).numpy(), [2, 3, 4, 5, 6, 7])


@pytest.mark.parametrize("requested", [False, True])
@pytest.mark.parametrize("way", ["as it is", "read-only", "transposed", "shifted", "swapped bytes"])
def test_arrays_are_copied_from_wherever_they_lie(model, way, requested, monkeypatch):
    values = np.arange(6, dtype="float32").reshape(SHAPE)
    given = values.copy()
    if way == "read-only":
        given.setflags(write=False)
    elif way == "transposed":
        given = np.asfortranarray(values)
    elif way == "shifted":
        given = np.frombuffer(b"x" + values.tobytes(), "float32", offset=1).reshape(SHAPE)
    elif way == "swapped bytes":
        given = values.astype(">f4")
    if requested:
        model.get_input_info()
    if way == "as it is":  # C reads it where it lies, without another array
        monkeypatch.setattr("slipway.runtime.graph.graph_executor.array", None)
    model.set_input("data", given)
    given = np.zeros_like(given)  # the model has a copy
    model.run()
    np.testing.assert_array_equal(model.get_output(1).numpy(), values + 10)


def test_describes_itself(model):
    assert model.get_num_inputs() == 2
    assert model.get_num_outputs() == 2
    assert model.get_input_index("weight") == 1
    assert model.get_input_index("wait") == -1
    assert model.get_input_info() == ({"data": SHAPE}, {"data": "float32"})
    assert model.get_output_info() == [((6,), "float32"), (SHAPE, "float32")]
    assert model.get_input("weight").numpy()[0, 0] == 10


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("dta", np.ones(SHAPE, "float32"), r"no input 'dta'. Its inputs are: 'data'"),
        ("data", np.ones((3, 2), "float32"), r"'data' has shape \(2, 3\).*got \(3, 2\)"),
        ("data", np.full(SHAPE, 1e300), r"'data' has dtype float32.*got float64"),
        (7, np.ones(SHAPE, "float32"), r"no input 7"),
    ],
)
def test_wrong_inputs_are_explained(model, name, value, words):
    with pytest.raises((ExecutionError, IndexError), match=words):
        model.set_input(name, value)


def failing(function):
    return GraphTables(
        nodes=(GraphNode("x", None, ()), GraphNode("boom", function, ((0, 0),))),
        entries=(GraphEntry((4,), "float32", 0), GraphEntry((4,), "float32", 1)),
        inputs=(0,),
        outputs=((1, 0),),
    )


def test_failing_layer_is_named(library):
    model = create(failing("fail").to_json(), library, cpu(0))
    with pytest.raises(ValueError, match=r"layer 'boom' \(function fail\) failed: this kernel"):
        model.run()


def test_layer_that_fails_without_a_reason_is_named(library):
    """Such a run returned -1 with no error set, on which tvm-ffi ends the process."""
    model = create(failing("silent").to_json(), library, cpu(0))
    for _ in range(2):
        with pytest.raises(ExecutionError, match=r"'boom' \(function silent\) failed without"):
            model.run()


def test_missing_function_is_named(library):
    lost = GraphTables(
        nodes=(GraphNode("x", None, ()), GraphNode("y", "not_there", ((0, 0),))),
        entries=(GraphEntry((4,), "float32", 0), GraphEntry((4,), "float32", 1)),
        inputs=(0,),
        outputs=((1, 0),),
    )
    with pytest.raises(AttributeError, match="not_there"):
        create(lost.to_json(), library, cpu(0))


def test_zero_copy_uses_the_given_memory(model):
    data, out = nd.array(np.ones(SHAPE, "float32")), nd.empty((6,))
    model.set_input_zero_copy("data", data)
    data[:] = 5
    model.run()
    assert model.get_output(1).numpy()[0, 0] == 15
    model.set_output_zero_copy(0, out)
    model.run()
    np.testing.assert_array_equal(out.numpy(), np.full(6, 16))


def test_a_bound_output_is_the_layer_behind_the_reshape(model):
    """Output 0 is a reshape in place; binding an input later must not undo it."""
    flat, total = nd.empty((6,)), nd.empty(SHAPE)
    model.set_output_zero_copy(0, flat)
    model.set_output_zero_copy(1, total)
    data = nd.array(np.ones(SHAPE, "float32"))
    model.set_input_zero_copy("data", data)
    model.run()
    np.testing.assert_array_equal(flat.numpy(), np.full(6, 12))
    np.testing.assert_array_equal(total.numpy(), np.full(SHAPE, 11))
    np.testing.assert_array_equal(model.debug_get_output("plus").numpy(), np.full(SHAPE, 12))


def made_of(library, outputs, *reshapes):
    """Make a graph of x, its reshapes one after the other, and y = x + 1."""
    nodes = [GraphNode("x", None, ())]
    nodes += [GraphNode(f"r{i}", "__nop", ((i, 0),)) for i in range(len(reshapes))]
    nodes.append(GraphNode("y", "add_one", ((0, 0),)))
    entries = [GraphEntry(shape, "float32", 0) for shape in (SHAPE, *reshapes)]
    entries.append(GraphEntry(SHAPE, "float32", 1))
    graph = GraphTables(tuple(nodes), tuple(entries), (0,), tuple((o, 0) for o in outputs))
    return create(graph.to_json(), library, cpu(0))


def test_an_output_without_memory_of_its_own_cannot_be_bound(library):
    model = made_of(library, (2, 3, 3), (6,), (3, 2))
    with pytest.raises(ExecutionError, match="output 0 of this graph is its input 'x'"):
        model.set_output_zero_copy(0, nd.empty((3, 2)))
    with pytest.raises(ExecutionError, match="outputs 1 and 2 of this graph are one tensor"):
        model.set_output_zero_copy(1, nd.empty(SHAPE))


def test_one_buffer_for_two_is_refused_at_the_run(library):
    model = made_of(library, (1,))
    one, two = nd.array(np.ones(SHAPE, "float32")), nd.array(np.ones(SHAPE, "float32"))
    for given, result in ((one, two), (two, one)):  # they change places between two runs
        model.set_input_zero_copy("x", given)
        model.set_output_zero_copy(0, result)
        model.run()
    assert one.numpy()[0, 0] == 3
    model.set_input_zero_copy("x", one)
    for run in (model.run, model.profile, lambda: model.module["run_node"](1)):
        with pytest.raises(ExecutionError, match="output 0 and input 'x' were given the same"):
            run()


def test_two_outputs_in_one_buffer_are_refused(library):
    graph = GraphTables(
        nodes=(
            GraphNode("x", None, ()),
            GraphNode("y", "add_one", ((0, 0),)),
            GraphNode("z", "add_one", ((1, 0),)),
        ),
        entries=tuple(GraphEntry(SHAPE, "float32", i) for i in range(3)),
        inputs=(0,),
        outputs=((1, 0), (2, 0)),
    )
    model = create(graph.to_json(), library, cpu(0))
    out = nd.empty(SHAPE)
    model.set_output_zero_copy(0, out)
    model.set_output_zero_copy(1, out)
    with pytest.raises(ExecutionError, match="outputs 0 and 1 were given the same memory"):
        model.run()
    model.set_output_zero_copy(1, nd.empty(SHAPE))
    model.run(x=np.ones(SHAPE, "float32"))
    np.testing.assert_array_equal(out.numpy(), np.full(SHAPE, 2))


@pytest.mark.parametrize("value", [np.zeros(6, "float32"), [0.0] * 6, None])
def test_only_a_tensor_can_be_bound(model, value):
    with pytest.raises(ExecutionError, match=r"takes a tensor of this process: nd\.array"):
        model.set_output_zero_copy(0, value)


def test_output_stays_alive_without_the_model(library):
    made = create(tables().to_json(), library, cpu(0))
    made.run(data=np.ones(SHAPE, "float32"), weight=np.ones(SHAPE, "float32"))
    out = made.get_output(0)
    del made
    np.testing.assert_array_equal(out.numpy(), np.full(6, 3))


def test_profile_names_layers_and_benchmark_measures(model):
    rows = model.profile(number=2, repeat=2, data=np.ones(SHAPE, "float32"))
    assert [row[:2] for row in rows] == [("sum", "add"), ("plus", "add_one"), ("flat", "__nop")]
    assert all(0 <= seconds < 1 for _, _, seconds in rows)
    result = model.benchmark(cpu(0), repeat=3, number=2)
    assert len(result.results) == 3
    assert result.mean > 0
    whole = model.benchmark(cpu(0), repeat=2, number=2, end_to_end=True, data=np.ones(SHAPE, "f4"))
    assert whole.mean > 0
    assert len(model.module.time_evaluator("run", cpu(0), repeat=2, number=1)().results) == 2


def test_debug_get_output(model):
    model.run(data=np.ones(SHAPE, "float32"))
    assert model.debug_get_output("sum").numpy()[0, 0] == 11
    assert model.debug_get_output(3).numpy()[0, 0] == 12


@pytest.fixture
def artifact(kernels_library, tmp_path):
    graph = tables()
    return write_artifact(
        tmp_path / "model.tar",
        kernels_library.read_bytes(),
        metadata={"target": "llvm", "compiler": "test"},
        graph_json=graph.to_json(),
        graph_binary=graph.to_binary(),
        params=save_param_dict({"weight": np.full(SHAPE, 10, "float32")}),
    )


def test_artifact_round_trip(artifact):
    lib = load_module(artifact)
    model = GraphModule(lib["default"](cpu(0)))
    model.run(data=np.ones(SHAPE, "float32"))
    assert model.get_output(1).numpy()[0, 0] == 11
    graph, code, params = lib
    assert "weight" in params
    assert code["add_one"] is not None
    assert GraphTables.from_json(graph).functions() == ["add", "add_one"]


def test_artifact_opens_in_the_c_runtime_too(artifact):
    from slipway.runtime.graph.graph_executor import NativeModule
    from slipway.runtime.libraries.native_library import native_runtime

    library = native_runtime().packed("module_open")(str(artifact))
    find = native_runtime().packed("module_get_function")
    made = find(library, "default")(cpu(0))
    model = GraphModule(NativeModule(made))
    model.run(data=np.ones(SHAPE, "float32"))
    assert model.get_output(1).numpy()[0, 0] == 11
    a, b = nd.array(np.ones(8, "float32")), nd.empty((8,))
    find(library, "__tvm_main__")(a, b)
    assert b.numpy()[0] == 2
    with pytest.raises(AttributeError, match=r"default, .*add_one"):
        find(library, "adone")


def test_same_artifact_twice_gives_same_bytes(artifact, kernels_library, tmp_path):
    graph = tables()
    again = write_artifact(
        tmp_path / "again.tar",
        kernels_library.read_bytes(),
        metadata={"compiler": "test", "target": "llvm"},
        graph_json=graph.to_json(),
        graph_binary=graph.to_binary(),
        params=save_param_dict({"weight": np.full(SHAPE, 10, "float32")}),
    )
    assert again.read_bytes() == artifact.read_bytes()


@pytest.mark.parametrize("native", [False, True])
def test_damage_anywhere_is_an_error(artifact, tmp_path, native):
    from slipway.runtime.libraries.native_library import native_runtime

    def open_it(path):
        if native:
            native_runtime().packed("module_open")(str(path))
        else:
            load_module(path)

    good = artifact.read_bytes()
    bad = tmp_path / "bad.tar"
    for at in range(0, len(good) - 1024, 997):
        changed = bytearray(good)
        changed[at] ^= 0x40
        bad.write_bytes(changed)
        try:
            open_it(bad)
        except ArtifactError:
            continue
        # Padding and unused header fields carry nothing.
        assert good[at] == 0, f"a changed byte at {at} went unseen"
    content = len(good.rstrip(b"\0"))  # what follows is the archive's end mark and padding
    for size in (0, 100, 512, 5000, content // 2, content - 600, content - 1):
        bad.write_bytes(good[:size])
        with pytest.raises(ArtifactError):
            open_it(bad)


def test_every_listed_function_is_there(model):
    for name in model.module.function_names():
        assert model.module[name] is not None
    with pytest.raises(AttributeError, match="no function 'runn'"):
        model.module["runn"]


LONG = "serving_default/" + "é" * 150  # 316 bytes of UTF-8; names in TFLite files have no limit


def named(first, second):
    entries = tuple(GraphEntry(SHAPE, "float32", i) for i in range(3))
    return GraphTables(
        nodes=(
            GraphNode(first, None, ()),
            GraphNode(second, None, ()),
            GraphNode("sum", "add", ((0, 0), (1, 0))),
        ),
        entries=entries,
        inputs=(0, 1),
        outputs=((2, 0),),
    )


@pytest.mark.parametrize("length", [254, 255, 256, 300, 5000])
def test_inputs_are_told_apart_by_names_of_any_length(library, length):
    first, second = "n" * length + "a", "n" * length + "b"
    model = GraphModule(create(named(first, second).to_json(), library, cpu(0)))
    model.load_params(save_param_dict({second: np.full(SHAPE, 10, "float32")}))
    model.set_input(first, np.ones(SHAPE, "float32"))
    model.run()
    np.testing.assert_array_equal(model.get_output(0).numpy(), np.full(SHAPE, 11))
    assert model.get_input_index(second) == 1
    assert model.get_input_index("n" * length) == -1


@pytest.mark.parametrize("extra", range(4))
def test_a_long_name_is_cut_between_its_characters(library, extra):
    """Whatever byte the limit falls on, the message stays text."""
    model = GraphModule(create(named("a", "x" * extra + LONG * 3).to_json(), library, cpu(0)))
    with pytest.raises(ExecutionError, match=r"no input 'x*serving_default/é+'\. Its inputs are"):
        model.set_input("x" * extra + LONG, np.ones(SHAPE, "float32"))


def test_outputs_go_by_the_names_that_the_tables_give(library):
    tables = named("a", "b")
    tables = dataclasses.replace(tables, output_names=("the sum",))
    assert GraphTables.from_json(tables.to_json()) == tables
    assert GraphTables.from_binary(tables.to_binary()) == tables
    model = GraphModule(create(tables.to_json(), library, cpu(0)))
    model.set_input(a=np.ones(SHAPE, "float32"), b=np.ones(SHAPE, "float32"))
    model.run()
    np.testing.assert_array_equal(model.get_output("the sum").numpy(), np.full(SHAPE, 2))
    assert model.module["get_output_info"]().startswith("the sum\tfloat32")
    with pytest.raises(ExecutionError, match=r"no output 'sum'. Its outputs are: 'the sum'\."):
        model.get_output("sum")


def test_outputs_without_names_have_numbers(library):
    model = GraphModule(create(named("a", "b").to_json(), library, cpu(0)))
    with pytest.raises(
        ExecutionError, match="no output 'c': its outputs have numbers only, 0 to 0"
    ):
        model.get_output("c")


def test_inputs_of_run_are_set_in_the_same_call(library, monkeypatch):
    """One function call for all of them; what C cannot take as it is, is set one by one."""
    model = GraphModule(create(tables().to_json(), library, cpu(0)))
    monkeypatch.setattr(model, "_set_input", None)  # is not called
    a, b = np.arange(6, dtype="float32").reshape(SHAPE), np.ones(SHAPE, "float32")
    model.run(data=a, weight=b)
    np.testing.assert_array_equal(model.get_output(1).numpy(), a + b)
    model.run(weight=nd.array(a))
    np.testing.assert_array_equal(model.get_output(1).numpy(), a + a)
    monkeypatch.undo()
    model = GraphModule(model.module)
    model.run(data=[[1, 2, 3], [4, 5, 6]], weight=b.T.copy().T)
    np.testing.assert_array_equal(model.get_output(1).numpy(), a + 2)
    with pytest.raises(ExecutionError, match="no input 'z'"):
        model.run(z=a)
    with pytest.raises(ExecutionError, match="shape"):
        model.run(data=np.ones((3, 2), "float32"))
    with pytest.raises(TypeError, match="name and a tensor"):
        model.module["run"]("data")
