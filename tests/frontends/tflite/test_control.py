"""Subgraphs and variables, run as LiteRT runs them."""

import numpy as np
import pytest
from builder import Node, T, const, program
from litert import Peer, compiled, outputs

from slipway.errors import ModelError
from slipway.frontends.tflite.importer import check_tflite, from_tflite, initial_state
from slipway.frontends.tflite.operators import control

RNG = np.random.default_rng(4)


def q8(*shape, scale=0.05, zero=3):
    return T(shape, "int8", scale, zero)


def compare(data, runs=3, rng=None):
    """Run here, feeding state back, and in LiteRT; results are equal, bit for bit."""
    peer, executor = Peer(data), compiled(data)
    state = list(initial_state(data).values())
    rng = rng or np.random.default_rng(8)
    for _ in range(runs):
        inputs = peer.random_inputs(rng)
        wanted = peer(inputs)
        got = outputs(executor, [*inputs, *state])
        results, state = got[: len(wanted)], got[len(wanted) :]
        for one, other in zip(results, wanted, strict=True):
            np.testing.assert_array_equal(one, other)


def unary_graph(kind, shape=(2, 5), options="", **fields):
    x, y = q8(*shape), q8(*shape)
    return [Node(kind, [x], [y], options, fields)], [x], [y]


def choice():
    condition, x, y = T((1,), "bool"), q8(2, 5), q8(2, 5)
    fields = {"thenSubgraphIndex": 1, "elseSubgraphIndex": 2}
    main = ([Node("IF", [condition, x], [y], "IfOptions", fields)], [condition, x], [y])
    return main, unary_graph("RELU"), unary_graph("RELU6")


def test_if():
    compare(program(*choice()), runs=6)


def test_if_with_a_known_condition():
    x, y = q8(2, 5), q8(2, 5)
    fields = {"thenSubgraphIndex": 1, "elseSubgraphIndex": 2}
    main = ([Node("IF", [const([False], "bool"), x], [y], "IfOptions", fields)], [x], [y])
    compare(program(main, unary_graph("RELU"), unary_graph("RELU6")))


@pytest.mark.parametrize("axis", [0, 1])
def test_if_whose_branches_give_unequal_sizes(axis):
    """What follows has the size of the branch that is taken."""
    condition, x, twice = T((1,), "bool"), q8(3, 4), q8(3, 4)
    y, z = (q8(*(-1 if a == axis else d for a, d in enumerate((3, 4)))) for _ in range(2))
    fields = {"thenSubgraphIndex": 1, "elseSubgraphIndex": 2}
    nodes = [Node("IF", [condition, x], [y], "IfOptions", fields), Node("RELU", [y], [z])]
    one, other = q8(3, 4), q8(3, 4)
    double = q8(*(2 * d if a == axis else d for a, d in enumerate((3, 4))))
    joined = Node("CONCATENATION", [one, one], [double], "ConcatenationOptions", {"axis": axis})
    alone = Node("RELU", [other], [twice])
    data = program(
        (nodes, [condition, x], [z]), ([joined], [one], [double]), ([alone], [other], [twice])
    )
    peer, executor = Peer(data), compiled(data)
    for taken in (True, False, True):
        given = RNG.integers(-128, 128, (3, 4)).astype(np.int8)
        (got,) = outputs(executor, [np.array([taken]), given])
        (wanted,) = peer([np.array([taken]), given])
        np.testing.assert_array_equal(got, wanted)


def counting(limit):
    """cond(i, x): i < limit.  body(i, x): i + 1, x + x, requantised."""
    i, x = T((1,), "int32"), q8(2, 4, scale=0.1)
    going = T((1,), "bool")
    condition = ([Node("LESS", [i, limit], [going], "LessOptions")], [i, x], [going])
    j, y = T((1,), "int32"), q8(2, 4, scale=0.1)
    more, z = T((1,), "int32"), q8(2, 4, scale=0.1)
    body = (
        [
            Node("ADD", [j, const([1])], [more], "AddOptions"),
            Node("ADD", [y, y], [z], "AddOptions"),
        ],
        [j, y],
        [more, z],
    )
    return condition, body


def loop(start, limit, inputs):
    x, count, y = q8(2, 4, scale=0.1), T((1,), "int32"), q8(2, 4, scale=0.1)
    fields = {"condSubgraphIndex": 1, "bodySubgraphIndex": 2}
    node = Node("WHILE", [start, x], [count, y], "WhileOptions", fields)
    return program(([node], [*inputs, x], [count, y]), *counting(limit))


@pytest.mark.parametrize("steps", [0, 1, 3])
def test_while_is_unrolled(steps):
    compare(loop(const([0]), const([steps]), []))


@pytest.mark.parametrize("steps", [control.MAX_STEPS - 1, control.MAX_STEPS + 1, 1000])
def test_a_while_of_many_steps(steps):
    compare(loop(const([0]), const([steps]), []))


def test_a_while_whose_length_the_inputs_decide():
    start = T((1,), "int32")
    data = loop(start, const([9]), [start])
    assert [e.status for e in check_tflite(data) if e.kind == "WHILE"] == ["native"]
    peer, executor = Peer(data), compiled(data)
    x = np.arange(-4, 4, dtype="int8").reshape(2, 4)
    for first in (-3, 0, 7, 9, 20):  # which steps there are, and none
        inputs = [np.array([first], "int32"), x]
        for got, wanted in zip(outputs(executor, inputs), peer(inputs), strict=True):
            np.testing.assert_array_equal(got, wanted)


def test_a_while_that_never_ends_is_named():
    x, y = q8(2, 5), q8(2, 5)
    fields = {"condSubgraphIndex": 1, "bodySubgraphIndex": 2}
    main = ([Node("WHILE", [x], [y], "WhileOptions", fields)], [x], [y])
    always = ([], [q8(2, 5)], [const([True], "bool")])
    with pytest.raises(ModelError, match="it never ends"):
        from_tflite(program(main, always, unary_graph("RELU")))


def handle(name="v"):
    made = T((), "resource")
    return made, Node("VAR_HANDLE", [], [made], "VarHandleOptions", {"sharedName": name})


def accumulator(initial=None):
    """total += x, kept between runs; a CALL_ONCE graph sets its first value."""
    graphs = []
    own, make = handle()
    x, before, after = T((1, 3), "float32"), T((1, 3), "float32"), T((1, 3), "float32")
    nodes = [
        make,
        Node("READ_VARIABLE", [own], [before], "ReadVariableOptions"),
        Node("ADD", [before, x], [after], "AddOptions"),
        Node("ASSIGN_VARIABLE", [own, after], [], "AssignVariableOptions"),
    ]
    if initial is not None:
        once = Node("CALL_ONCE", [], [], "CallOnceOptions", {"initSubgraphIndex": 1})
        nodes.insert(0, once)
        other, make_other = handle()
        value = const(initial, "float32")
        assign = Node("ASSIGN_VARIABLE", [other, value], [], "AssignVariableOptions")
        graphs.append(([make_other, assign], [], []))
    return program((nodes, [x], [after]), *graphs)


def test_variables_keep_their_values():
    compare(accumulator([[5.0, -1.0, 0.5]]), runs=4)


def test_the_state_before_the_first_run():
    start = initial_state(accumulator([[5.0, -1.0, 0.5]]))
    np.testing.assert_array_equal(start["v"], [[5.0, -1.0, 0.5]])
    np.testing.assert_array_equal(initial_state(accumulator())["v"], np.zeros((1, 3)))
    mod, _ = from_tflite(accumulator())
    assert [p.name for p in mod["main"].params][1:] == ["v"]
    assert mod["main"].attr("output_names")[1:] == ("v",)


def test_a_variable_that_is_only_assigned_once():
    """What CALL_ONCE gives a value, and nothing reads, is state all the same."""
    once = Node("CALL_ONCE", [], [], "CallOnceOptions", {"initSubgraphIndex": 1})
    own, make = handle()
    value = const([[1.0, 2.0]], "float32")
    init = [make, Node("ASSIGN_VARIABLE", [own, value], [], "AssignVariableOptions")], [], []
    x, y = q8(2, 5), q8(2, 5)
    data = program(([once, Node("RELU", [x], [y])], [x], [y]), init)
    mod, _ = from_tflite(data)
    assert mod["main"].attr("output_names")[1:] == ("v",)
    compare(data)


def test_variables_assigned_in_a_branch():
    condition, x, y = T((1,), "bool"), T((1, 3)), T((1, 3))
    fields = {"thenSubgraphIndex": 1, "elseSubgraphIndex": 2}

    def branch(assigns):
        own, make = handle()
        a, old, new = T((1, 3)), T((1, 3)), T((1, 3))
        nodes = [
            make,
            Node("READ_VARIABLE", [own], [old], "ReadVariableOptions"),
            Node("ADD", [old, a], [new], "AddOptions"),
        ]
        if assigns:
            nodes.append(Node("ASSIGN_VARIABLE", [own, new], [], "AssignVariableOptions"))
        return nodes, [a], [new]

    once = Node("CALL_ONCE", [], [], "CallOnceOptions", {"initSubgraphIndex": 3})
    other, make_other = handle()
    start = const([[1.0, 2.0, 3.0]], "float32")
    init = (
        [make_other, Node("ASSIGN_VARIABLE", [other, start], [], "AssignVariableOptions")],
        [],
        [],
    )
    own, make = handle()
    del own
    main = ([once, make, Node("IF", [condition, x], [y], "IfOptions", fields)], [condition, x], [y])
    compare(program(main, branch(True), branch(False), init), runs=8)


@pytest.mark.parametrize("steps", [3, 40])
def test_variables_assigned_in_a_loop(steps):
    """Each step adds what it carries to a variable, and halves it: unrolled, and as a loop."""
    fields = {"condSubgraphIndex": 1, "bodySubgraphIndex": 2}
    i, going = T((1,), "int32"), T((1,), "bool")
    less = Node("LESS", [i, const([steps])], [going], "LessOptions")
    condition = ([less], [i, T((1, 3))], [going])
    j, more, y, half = T((1,), "int32"), T((1,), "int32"), T((1, 3)), T((1, 3))
    (own, make), old, new = handle(), T((1, 3)), T((1, 3))
    body = [
        make,
        Node("READ_VARIABLE", [own], [old], "ReadVariableOptions"),
        Node("ADD", [old, y], [new], "AddOptions"),
        Node("ASSIGN_VARIABLE", [own, new], [], "AssignVariableOptions"),
        Node("MUL", [y, const([0.5], "float32")], [half], "MulOptions"),
        Node("ADD", [j, const([1])], [more], "AddOptions"),
    ]
    once = Node("CALL_ONCE", [], [], "CallOnceOptions", {"initSubgraphIndex": 3})
    other, make_other = handle()
    start = const([[1.0, 2.0, 3.0]], "float32")
    assign = Node("ASSIGN_VARIABLE", [other, start], [], "AssignVariableOptions")
    x, count, left = T((1, 3)), T((1,), "int32"), T((1, 3))
    (held, read), found = handle(), T((1, 3))
    nodes = [
        once, Node("WHILE", [const([0]), x], [count, left], "WhileOptions", fields),
        read, Node("READ_VARIABLE", [held], [found], "ReadVariableOptions"),
    ]  # fmt: skip
    main = (nodes, [x], [count, left, found])
    compare(
        program(main, condition, (body, [j, y], [more, half]), ([make_other, assign], [], [])),
        runs=3,
    )


def test_circular_buffer():
    """A sliding window over a stream; LiteRT has no such operator."""
    flexbuffers = pytest.importorskip("flatbuffers.flexbuffers")
    packer = flexbuffers.Builder()
    with packer.Map():
        packer.Key("cycles_max")
        packer.Int(1)
    x, y = q8(1, 1, 1, 4), q8(1, 3, 1, 4)
    options = bytes(packer.Finish())
    node = Node("CIRCULAR_BUFFER", [x], [y], custom_options=options)
    data = program(([node], [x], [y]))
    executor, (state,) = compiled(data), initial_state(data).values()
    seen = [np.zeros((1, 4), np.int8)] * 3
    for _ in range(5):
        fresh = RNG.integers(-128, 128, (1, 1, 1, 4)).astype(np.int8)
        got, state = outputs(executor, [fresh, state])
        seen = [*seen[1:], fresh.reshape(1, 4)]
        np.testing.assert_array_equal(got.reshape(3, 4), np.concatenate(seen))


@pytest.mark.parametrize(("name", "words"), [("ethos-u", "Ethos-U"), ("TFLM_DECODE", "compressed")])
def test_programs_of_others_are_refused(name, words):
    x, y = q8(1, 4), q8(1, 4)
    data = program(([Node(name, [x], [y], custom_options=b"\0")], [x], [y]))
    with pytest.raises(ModelError, match=words):
        from_tflite(data)


def test_a_program_of_an_accelerator_is_refused_before_what_it_reads_is_missed():
    """Vela gives its program memory to work in, a tensor that nothing makes."""
    x, y, memory = q8(1, 4), q8(1, 4), T((64,), "uint8")
    data = program(([Node("ethos-u", [x, memory], [y], custom_options=b"\0")], [x], [y]))
    with pytest.raises(ModelError, match="Ethos-U"):
        from_tflite(data)


def test_the_audio_front_end_is_named():
    x, y = T((480,), "int16"), T((480,), "int16")
    data = program(([Node("SignalWindow", [x], [y], custom_options=b"\0")], [x], [y]))
    with pytest.raises(ModelError, match="audio front end"):
        from_tflite(data)


@pytest.mark.parametrize("version", [4, 5])
def test_non_max_suppression(version):
    boxes, scores = T((20, 4)), T((20,))
    limits = [const(np.int32(6)),
              const(np.float32(0.3), "float32"), const(np.float32(0.2), "float32")]  # fmt: skip
    picked, amount = T((6,), "int32"), T((), "int32")
    results = [picked, amount]
    if version == 5:
        limits.append(const(np.float32(0), "float32"))
        results = [picked, T((6,)), amount]
    kind = f"NON_MAX_SUPPRESSION_V{version}"
    node = Node(kind, [boxes, scores, *limits], results, f"NonMaxSuppressionV{version}Options")
    data = program(([node], [boxes, scores], results))
    peer, executor = Peer(data), compiled(data)
    for _ in range(4):
        corners = RNG.uniform(0, 1, (20, 4)).astype(np.float32)
        values = [corners, RNG.uniform(0, 1, 20).astype(np.float32)]
        for got, want in zip(outputs(executor, values), peer(values), strict=True):
            np.testing.assert_array_equal(got, want)
