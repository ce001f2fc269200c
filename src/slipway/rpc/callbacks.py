"""Functions of this process that a device may call while one of our calls runs there."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from slipway.errors import RPCError
from slipway.rpc.protocol import Code, Failure, error_payload, pad
from slipway.rpc.values import get_args, put_args

if TYPE_CHECKING:
    from slipway.rpc.client import RPCSession


class Callbacks:
    """The functions that a session has passed to its device; they stay as long as the session."""

    def __init__(self, session: RPCSession) -> None:
        self._session = weakref.ref(session)  # dropping a session frees its device at once
        self._functions: list[Callable[..., Any]] = []
        self._numbers: dict[int, int] = {}  # by identity: functions need not be hashable

    def __len__(self) -> int:
        return len(self._functions)

    def number_of(self, function: Callable[..., Any]) -> int:
        """Return the number under which the device calls `function`."""
        number = self._numbers.get(id(function))
        if number is None:
            number = len(self._functions)
            self._functions.append(function)
            self._numbers[id(function)] = number
        session = self._session()
        if session is not None:
            session.link.answer = self._answer
        return number

    def _answer(self) -> tuple[Code, int]:
        """Run what the CALL that has come asks for; leave the answer in the request buffer."""
        session = self._session()
        assert session is not None  # it waits for the call that this belongs to
        request = session.link.request
        number, args = get_args(session)
        try:
            if number >= len(self._functions):
                raise RPCError("the device called a function that was not passed to it")
            result = self._functions[number](*args)
            return Code.RETURN, put_args(session, 0, (result,))
        except Exception as error:
            session.link.raised = error
            kind = type(error).__name__
            content = pad(error_payload(Failure.REMOTE, str(error)[:2000], kind))
            request[: len(content)] = content
            return Code.ERROR, len(content)
