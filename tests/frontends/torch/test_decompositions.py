"""What torch does to a program before its operators are converted."""

import torch
import torch._export.utils as utils

from slipway import relay


def test_composite_operators_are_listed_once_a_program(monkeypatch):
    program = torch.export.export(torch.nn.Linear(8, 4), (torch.randn(2, 8),))
    listing, calls = utils._materialize_cpp_cia_ops, []

    def counted():
        calls.append(listing())

    monkeypatch.setattr(utils, "_materialize_cpp_cia_ops", counted)
    for count in (1, 2):  # for the next program again: a script may define operators between them
        relay.frontend.from_pytorch(program)
        assert len(calls) == count
        assert utils._materialize_cpp_cia_ops is counted
