"""Skips of the tests that build and emulate firmware."""

import pytest

from slipway.micro.board import find_board
from slipway.micro.board_tools import missing_for


def needs(board, emulate=True):
    """Skip when firmware for a board (or its name) cannot be built, or emulated, here."""
    found = find_board(board) if isinstance(board, str) else board
    package = missing_for(found, emulate=emulate)
    if package:
        pytest.skip(f"apt-get install {package}")
