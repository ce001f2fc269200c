"""Devices to run on, and the helper modules of these tests."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from devices import TARGETS, Device


@pytest.fixture(scope="session", params=list(TARGETS))
def device(request, tmp_path_factory):
    """This machine, then emulated ones."""
    made = Device(request.param, tmp_path_factory.mktemp(request.param))
    yield made
    made.stop()
