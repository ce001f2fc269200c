"""Saved programs that take or return objects of a class this process does not know."""

import contextlib
import dataclasses
import importlib
import zipfile

import pytest
import torch
from compare import assert_same, interpreted
from torch import nn
from torch.utils import _pytree

from slipway import relay
from slipway.errors import ModelError


@dataclasses.dataclass
class Result:
    scores: torch.Tensor
    parts: list


class Pair:
    """What a package registers with a context of its own kind."""

    def __init__(self, first, second):
        self.first, self.second = first, second


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(6, 4)

    def forward(self, x):
        scores = self.head(x)
        return Result(scores, [Pair(scores.relu(), x + 1), {"sum": x.sum(1)}])


X = torch.randn(3, 6)


@pytest.fixture
def registered():
    """Register both classes, as the import of their package would; return what forgets them."""
    torch.export.register_dataclass(Result, serialized_type_name="elsewhere.Result")
    _pytree.register_pytree_node(
        Pair,
        lambda pair: ([pair.first, pair.second], {"of": "pair"}),
        lambda children, context: Pair(*children),
        serialized_type_name="elsewhere.Pair",
        to_dumpable_context=lambda context: [context],
        from_dumpable_context=lambda context: context[0],
    )

    def forget():
        for kind in (Result, Pair):
            if kind in _pytree.SUPPORTED_NODES:
                _pytree._deregister_pytree_node(kind)
            with contextlib.suppress(ImportError, ValueError):  # torch tells optree, where it is
                importlib.import_module("optree").unregister_pytree_node(kind, namespace="torch")

    yield forget
    forget()


def saved(path, dynamic=None):
    """Write the model's program to `path`; return the tensors of its result in order."""
    torch.manual_seed(0)
    model = Model().eval()
    torch.export.save(torch.export.export(model, (X,), dynamic_shapes=dynamic), path)
    with torch.no_grad():
        found = model(X)
    pair, named = found.parts
    return [t.numpy() for t in (found.scores, pair.first, pair.second, named["sum"])]


@pytest.mark.parametrize("dynamic", [None, {"x": {0: torch.export.Dim("rows", min=2, max=9)}}])
def test_results_of_unknown_classes_are_read(tmp_path, registered, dynamic):
    path = tmp_path / "model.pt2"
    wanted = saved(path, dynamic)
    registered()
    before = dict(_pytree.SERIALIZED_TYPE_TO_PYTHON_TYPE)
    assert_same(interpreted(str(path), [X]), wanted)
    assert before == _pytree.SERIALIZED_TYPE_TO_PYTHON_TYPE  # the stand-ins are gone


def test_a_class_that_is_known_keeps_its_registration(tmp_path, registered):
    path = tmp_path / "model.pt2"
    wanted = saved(path)
    assert_same(interpreted(str(path), [X]), wanted)
    assert _pytree.SERIALIZED_TYPE_TO_PYTHON_TYPE["elsewhere.Pair"] is Pair


def test_a_file_that_is_no_program_gets_one_error_and_leaves_nothing(tmp_path):
    before = dict(_pytree.SERIALIZED_TYPE_TO_PYTHON_TYPE)
    for content in ('{"graph_module": {"module_call_graph": [{"signature": 1}]}}', "[]", "{"):
        path = tmp_path / "model.pt2"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("model/models/model.json", content)
        with pytest.raises(ModelError, match="not a program that torch"):
            relay.frontend.from_pytorch(str(path), [])
    assert before == _pytree.SERIALIZED_TYPE_TO_PYTHON_TYPE
