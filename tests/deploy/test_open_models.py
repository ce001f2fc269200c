"""`slipway.compile` of models with open dimensions: calls, questions, samples, refusals."""

import numpy as np
import pytest
import torch

import slipway
from slipway import rpc
from slipway.deploy.validate import Samples, validate
from slipway.errors import ExecutionError


@pytest.fixture(scope="module")
def net():
    torch.manual_seed(0)
    layers = [torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(1)]
    return torch.nn.Sequential(*layers, torch.nn.Flatten(), torch.nn.Linear(8, 2)).eval()


@pytest.fixture(scope="module")
def model(net):
    dims = {0: torch.export.Dim("n", min=1, max=4), 2: torch.export.Dim("h", min=8, max=40)}
    example = (torch.randn(2, 3, 16, 12),)
    return slipway.compile(torch.export.export(net, example, dynamic_shapes=(dims,)), quiet=True)


def expected(net, x):
    with torch.no_grad():
        return net(x).numpy()


@pytest.mark.parametrize("shape", [(1, 3, 8, 12), (4, 3, 40, 12), (3, 3, 17, 12)])
def test_every_size_in_the_range(model, net, shape):
    x = torch.randn(*shape)
    np.testing.assert_allclose(model(x), expected(net, x), rtol=1e-5, atol=1e-6)
    assert model(x).shape == (shape[0], 2)


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        ((5, 3, 8, 12), "is 1 to 4"),
        ((1, 3, 41, 12), "is 8 to 40"),
        ((0, 3, 8, 12), "is 1 to 4"),
        ((1, 4, 8, 12), r"the shape \[1, 4, 8, 12\]"),
        ((3, 8, 12), r"the shape \[3, 8, 12\]"),
    ],
)
def test_another_shape_is_refused(model, shape, words):
    with pytest.raises(ExecutionError, match=words):
        model(np.zeros(shape, "float32"))


def test_questions_are_answered_at_the_largest_sizes_or_those_given(model, net):
    (spec,) = model.inputs
    assert spec.largest == (4, 3, 40, 12)
    assert spec.is_open
    assert model.check(net)
    assert model.check(net, **{spec.name: torch.randn(2, 3, 9, 12)})
    some = np.zeros((1, 3, 8, 12), "float32")
    for given in ({}, {spec.name: some}):
        assert model.profile(number=1, repeat=1, **given).seconds > 0
        assert model.benchmark(number=1, repeat=1, **given).min > 0


def test_it_is_saved_loaded_and_run_elsewhere(model, net, tmp_path):
    again = slipway.load(model.save(tmp_path / "m.tar"))
    x = torch.randn(3, 3, 21, 12)
    np.testing.assert_allclose(again(x), expected(net, x), rtol=1e-5, atol=1e-6)
    with rpc.LocalSession() as session, again.on(session) as there:
        np.testing.assert_allclose(there(x), expected(net, x), rtol=1e-5, atol=1e-6)
        there.close()
        session.cpu(0)  # a session that was given is its owner's to close


def test_its_report_holds_numbers(model, tmp_path):
    page = model.report(tmp_path / "report.html").read_text()
    assert "agree" in page
    (spec,) = model.inputs
    small = {spec.name: np.ones((1, 3, 9, 12), "float32")}
    assert "agree" in model.report(tmp_path / "small.html", **small).read_text()


def test_samples_are_validated_row_by_row(model, net):
    (spec,) = model.inputs
    images = np.random.default_rng(0).standard_normal((6, 3, 24, 12)).astype("float32")
    labels = expected(net, torch.from_numpy(images)).argmax(1)
    found = validate(model, Samples({spec.name: images}, labels))
    assert (found.samples, found.top1) == (6, 1.0)


def test_the_session_of_a_model_ends_with_it(model):
    server = rpc.Server("127.0.0.1", 9700, 9790)
    try:
        with model.on(f"127.0.0.1:{server.port}") as there:
            assert there(np.zeros((1, 3, 8, 12), "float32")).shape == (1, 2)
        assert rpc.connect("127.0.0.1", server.port).ping(b"free") == b"free"
    finally:
        server.terminate()
