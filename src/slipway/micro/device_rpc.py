"""Remote sessions with a device that takes code linked for its memory."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

from slipway.errors import RemoteError, RPCConnectionError, RPCError
from slipway.micro.board import Board, find_board
from slipway.micro.image import CodeSpace, ImageLinker, ImageParts, parse_code_space
from slipway.rpc.client import RPCSession
from slipway.rpc.module import RemoteModule


def _default_of(module: RemoteModule, device: Any, name: str = "default") -> Any:
    """Return the model of a firmware's system library, whichever name it was built with."""
    del device, name
    return module["default"]()


class DeviceRPCSession(RPCSession):
    """A session whose uploads are linked here for the place they will have in the device's RAM.

    `find_board` says which board's compiler does that; None is this machine's.
    """

    find_board: Callable[[], Board | None]
    reset_device: Callable[[], None]

    @classmethod
    def of_board(cls, session: RPCSession) -> DeviceRPCSession:
        """Return a session over the connection of another one, with the board that it names."""
        timeout_ms = round(session.session_timeout_s * 1000)
        made = cls(session.link, session.key, session.description, timeout_ms)
        made.find_board = lambda: find_board(session.key)
        made.reset_device = made._end_by_reset
        return made

    def _end_by_reset(self) -> NoReturn:
        """Close: who stands in front of the board resets it before the next session."""
        self.close()
        raise RPCConnectionError(f"{self.key}: the device was reset; request a new session")

    def get_function(self, name: str) -> Any:
        """Return a global function of the device, or one of classic's that works from here."""
        if name == "tvm.aot_executor.create":
            return _default_of
        if name == "tvm.testing.reset_server":
            return self.reset_device
        return super().get_function(name)

    @cached_property
    def _linker(self) -> ImageLinker:
        board = self.find_board()
        return ImageLinker.for_this_machine() if board is None else ImageLinker.for_board(board)

    def code_space(self) -> CodeSpace:
        """Return the device's free memory for code; RPCError when it has none."""
        try:
            function = self.get_function("slipway.code_space")
        except AttributeError as error:
            raise RPCError(
                f"{self.description} has no memory for uploaded code; generate the firmware as a "
                "host_driven project with a board that has RAM left"
            ) from error
        return parse_code_space(function())

    def upload(self, data: Any, target: str | None = None) -> None:
        """Link an exported file (.o, .a, .tar) for the device and send it under its name.

        Bytes are sent as they are.  A file of the same name is replaced.
        """
        if isinstance(data, bytes | bytearray | memoryview):
            super().upload(data, target)
            return
        from slipway.micro.image_parts import parts_of_file

        path = Path(os.fspath(data))
        try:
            parts = parts_of_file(path)
        except OSError as error:
            raise RPCError(f"cannot upload {str(path)!r}: {error.strerror}.") from error
        self._send(parts, path.name if target is None else target)

    def load(self, module: Any, name: str = "module") -> RemoteModule:
        """Link a built module, or an exported file, into the device's RAM and open it there."""
        if isinstance(module, str | os.PathLike):
            self.upload(module, name)
        else:
            from slipway.micro.image_parts import parts_of_module

            self._send(parts_of_module(module), name)
        loaded = self.load_module(name)
        self.remove(name)  # its memory stays while the module is in use
        return loaded

    def _send(self, parts: ImageParts, name: str) -> None:
        with contextlib.suppress(RemoteError):
            self.remove(name)
        self._upload(self._linker.link(parts, self.code_space()), name)
