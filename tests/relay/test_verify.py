"""Each law of graphs, broken on purpose."""

import numpy as np
import pytest

from slipway import relay
from slipway.compiler.optimize import optimize
from slipway.errors import InternalError
from slipway.ir.function import GlobalVar, IRModule
from slipway.relay import op_registry, verify
from slipway.relay.expr import Call, Constant, Expr, Function, If, Let, Op, Tuple, TupleGetItem, Var
from slipway.relay.types import TensorType
from slipway.relay.verify import graph_faults
from slipway.transform.manager import Pass, Setting, run_pass

F = TensorType((2, 3))
X, Y = Var("x", F), Var("y", F)
set_type = Expr.__dict__["_type"].__set__


def kernel(body, *params):
    return Function(params, body, None, (("Primitive", 1),))


def retyped(expr, shape=(3, 2)):
    """An expression whose stored type is another than its own."""
    set_type(expr, TensorType(shape))
    return expr


def changed(node, **fields):
    """A node with fields that its constructor would not take."""
    for name, value in fields.items():
        next(c for c in type(node).__mro__ if name in c.__dict__).__dict__[name].__set__(
            node, value
        )
    return node


def outside():
    """The parameter of a called function, used next to the call."""
    inner = Var("inner", F)
    return Function((X,), relay.add(Call(Function((inner,), relay.exp(inner)), (X,)), inner))


def twice():
    shared = Var("shared", F)
    first, second = (Function((shared,), f(shared)) for f in (relay.exp, relay.tanh))
    return Function((X,), relay.add(Call(first, (X,)), Call(second, (X,))))


def let_outside():
    v = Var("v", F)
    return Function((X,), relay.add(Let(v, relay.exp(X), relay.tanh(v)), v))


def let_before():
    v = Var("v", F)
    return Function((X,), Let(v, relay.exp(v), relay.tanh(v)))


def capturing():
    p = Var("p", F)
    return Function((X,), Call(kernel(relay.add(p, X), p), (X,)))


def with_let():
    p, v = Var("p", F), Var("v", F)
    return Function((X,), Call(kernel(Let(v, relay.exp(p), relay.tanh(v)), p), (X,)))


def softmax(**fields):
    call = relay.nn.softmax(X)
    return Function((X,), changed(call, attrs=changed(call.attrs.replace(), **fields)))


def scan(body):
    h = Var("h", TensorType((4,)))
    attrs = op_registry.get("scan").attrs_type(body, 1, 0, False, 3)
    return Function(
        (h,),
        TupleGetItem(Call(Op("scan"), (Tuple((h,)), Tuple(()), Tuple(())), attrs), 0),
    )


def leaking():
    s, other = (Var(n, TensorType((4,))) for n in ("s", "other"))
    return scan(Function((s,), Tuple((relay.add(s, other),))))


BROKEN = {
    "a call of another type": (
        lambda: Function((X,), relay.tanh(retyped(relay.exp(X), (2, 3, 1)))),
        "call of exp has type",
    ),
    "a tuple of another type": (lambda: Function((X,), retyped(Tuple((X,)))), "a Tuple has type"),
    "a constant of another type": (
        lambda: Function((), retyped(Constant(np.zeros(2, "float32")))),
        "a Constant has type",
    ),
    "a call that lost its type": (
        lambda: Function((X,), relay.exp(X), F).replace(body=changed(relay.exp(X), _type=None)),
        "call of exp has type None",
    ),
    "an argument that does not fit": (
        lambda: Function((X,), changed(relay.add(X, Y), args=(X, Var("z", TensorType((5,)))))),
        "call of add does not type",
    ),
    "too few arguments": (
        lambda: Function((X,), changed(relay.add(X, X), args=(X,))),
        "takes 2 arguments",
    ),
    "an argument that is no expression": (
        lambda: Function((X,), changed(relay.exp(X), args=(1.0,))),
        "call of exp has the args",
    ),
    "a callee that is none": (
        lambda: Function((X,), changed(relay.exp(X), op="exp")),
        "a call calls 'exp'",
    ),
    "an operator that there is not": (
        lambda: Function((X,), changed(relay.exp(X), op=Op("expp"))),
        "no operator 'expp'",
    ),
    "attributes of another operator": (
        lambda: Function((X,), changed(relay.nn.softmax(X), attrs=relay.nn.leaky_relu(X).attrs)),
        "its attributes are",
    ),
    "an attribute of another type": (lambda: softmax(axis="last"), "attribute 'axis'.*str 'last'"),
    "attributes that are no record": (
        lambda: Function((X,), changed(relay.exp(X), attrs={"a": 1})),
        "which are no record",
    ),
    "a field that there is not": (
        lambda: Function((X,), changed(TupleGetItem(Tuple((X, X)), 1), index=2)),
        "no field 2",
    ),
    "branches that differ": (
        lambda: Function(
            (c := Var("c", TensorType((), "bool")), X),
            changed(If(c, X, X), false_branch=Var("w", TensorType((7,)))),
        ),
        "its branches differ",
    ),
    "a condition that is none": (
        lambda: Function((X,), changed(If(Var("c", TensorType((), "bool")), X, X), cond=X)),
        "its condition is",
    ),
    "a Let of another type": (
        lambda: Function((X,), Let(Var("v", TensorType((9,))), X, X)),
        "a Let does not type",
    ),
    "a result that was declared otherwise": (
        lambda: changed(Function((X,), X), ret_type=TensorType((1,))),
        "declared as",
    ),
    "a free variable": (lambda: Function((X,), relay.add(X, Y)), "variable %y is free"),
    "a parameter outside its function": (outside, "%inner is used outside its scope"),
    "a Let's name outside the Let": (let_outside, "%v is used outside its scope"),
    "a Let's name in its own value": (let_before, "%v is used outside its scope"),
    "a parameter of two functions": (twice, "%shared is bound twice"),
    "a parameter twice": (lambda: Function((X, X), X), "%x is bound twice"),
    "a kernel that is not closed": (capturing, "kernel in function 'main' uses %x"),
    "a kernel with a Let": (with_let, "a kernel has a Let"),
    "a loop's body that is not closed": (leaking, "%other is free in the body of the call of scan"),
    "a name of no function": (
        lambda: Function((X,), Call(GlobalVar("nowhere"), (X,)), F),
        "@nowhere, which is no function",
    ),
    "a module's function over others": (
        lambda: Function((X,), Call(GlobalVar("other"), (X, X)), F),
        "@other over .* is called with",
    ),
}


@pytest.mark.parametrize("law", BROKEN)
def test_what_breaks_a_law_is_named(law):
    make, words = BROKEN[law]
    z = Var("z", F)
    start = IRModule((("main", Function((X,), X)), ("other", Function((z,), z))))
    breaker = Pass("Breaker", 0, lambda m, s: m.update("main", make()), by_user=False)
    with pytest.raises(InternalError, match=rf"(?s)after pass Breaker:.*{words}"):
        run_pass(breaker, start, Setting())


def sound():
    """Graphs that are unusual, and legal."""
    p, q, v, f = Var("p", F), Var("q", F), Var("v", F), Var("f")
    exp = Function((p,), relay.exp(p))
    yield Function((X,), relay.add(Call(exp, (X,)), Call(exp, (Call(exp, (X,)),))))
    yield Function((X,), Let(v, relay.exp(X), relay.add(v, v)))
    yield Function((X,), Let(f, Function((q,), relay.add(q, X)), relay.exp(X)))  # a closure
    yield Function((), Tuple(()))
    s = Var("s", TensorType((4,)))
    yield scan(Function((s,), Tuple((relay.tanh(s),))))
    yield Function((X,), Call(GlobalVar("main"), (X,)), F)  # calls itself
    untyped = Var("w")
    yield Function((X, untyped), relay.nn.dense(X, untyped, units=5))


@pytest.mark.parametrize("function", list(sound()))
def test_sound_graphs_have_no_fault(function):
    assert not graph_faults(IRModule((("main", function),)))


def test_a_deep_graph_with_many_variables_is_checked():
    names = [Var(f"w{n}", F) for n in range(300)]
    body = X
    for step in range(5000):
        body = relay.add(body, names[step % 300])
    assert not graph_faults(IRModule((("main", Function((X, *names), body)),)))
    faults = graph_faults(IRModule((("main", Function((X, *names[1:]), body)),)))
    assert faults == ["variable %w0 is free in function 'main'"]


def test_a_type_that_changes_in_place_is_seen():
    """What was found right is not inferred again, unless somebody wrote to it."""
    inner = relay.exp(X)
    start = IRModule((("main", Function((X,), relay.tanh(inner))),))

    def run(mod, setting):
        retyped(inner, (2, 3, 1))
        return mod

    with pytest.raises(InternalError, match="call of exp has type"):
        run_pass(Pass("Writes", 0, run, by_user=False), start, Setting())


def test_a_constant_that_a_pass_writes_to_is_seen():
    weights = np.arange(100_000, dtype="float32")
    start = IRModule((("main", Function((), relay.exp(Constant(weights)))),))

    def run(mod, setting):
        weights[:] *= 2
        return mod

    with pytest.raises(InternalError, match="wrote into a constant"):
        run_pass(Pass("Writes", 0, run, by_user=False), start, Setting())


def test_a_pass_keeps_inputs_and_outputs():
    start = IRModule((("main", Function((X,), relay.exp(X))),))
    for made in (Function((X, Y), relay.exp(X)), Function((X,), relay.sum(X))):
        step = Pass("Other", 0, lambda m, s, made=made: m.update("main", made), by_user=False)
        with pytest.raises(InternalError, match="function 'main' had type"):
            run_pass(step, start, Setting())


@pytest.mark.parametrize(
    ("name", "body", "words"),
    [
        ("InferType", relay.nn.dense(X, Var("w"), units=4), "has no type"),
        ("ToGraphNormalForm", Let(Y, relay.exp(X), Y), "Let %y is left"),
        ("KernelPerOp", relay.exp(X), "exp is in no kernel"),
    ],
)
def test_a_pass_keeps_its_promise(name, body, words):
    weight = [e for e in getattr(body, "args", ()) if isinstance(e, Var) and e is not X]
    start = IRModule((("main", Function((X, *weight), body)),))
    with pytest.raises(InternalError, match=words):
        run_pass(Pass(name, 0, lambda m, s: m, by_user=False), start, Setting())


def test_what_is_compiled_is_legal():
    """A graph with everything: shared calls, a Let, a called function, a loop."""
    image = Var("image", TensorType((1, 4, 8, 8)))
    weights = relay.const(np.ones((8, 4, 3, 3), "float32"))
    conv = relay.nn.conv2d(image, weights, channels=8, kernel_size=(3, 3))
    p, v = Var("p", conv.type), Var("v", conv.type)
    body = Let(v, relay.nn.relu(conv), Call(Function((p,), relay.add(p, relay.exp(p))), (v,)))
    assert optimize(IRModule.from_expr(Function((image,), body)), layout_lanes=4) is not None


def test_what_a_pass_leaves_is_walked_once(monkeypatch):
    """Each of the passes looked through all of the graph three times."""
    walked = []
    real = verify.children
    monkeypatch.setattr(verify, "children", lambda expr: walked.append(expr) or real(expr))
    body = X
    for _ in range(200):
        body = relay.exp(body)
    start = IRModule((("main", Function((X,), body)),))
    setting = Setting()
    monkeypatch.setenv("SLIPWAY_VERIFY", "1")
    for number in range(20):
        run_pass(
            Pass(f"Leaves{number}", 0, lambda mod, setting: mod, by_user=False), start, setting
        )
    assert 200 <= len(walked) < 1000


def test_a_function_that_stays_may_call_another_one():
    """What a name means is the module's: asked again, though the caller is the same object."""
    caller = Function((X,), Call(GlobalVar("g"), (X,), None))
    callee = Function((Y,), relay.exp(Y))
    start = IRModule((("main", caller), ("g", callee)))
    other = Var("other", TensorType((5,)))
    wrong = IRModule((("main", caller), ("g", Function((other,), relay.exp(other)))))

    with pytest.raises(InternalError, match="@g over"):
        run_pass(Pass("Wrong", 0, lambda mod, setting: wrong, by_user=False), start, Setting())
    gone = IRModule((("main", caller),))
    with pytest.raises(InternalError, match="no function of the module"):
        run_pass(Pass("Gone", 0, lambda mod, setting: gone, by_user=False), start, Setting())
