"""`Executor` and `Runtime`, the values that ``relay.build`` takes.

Both hold a kind and options, and read options with ``[]``, in the classic spelling:
``Executor("aot", {"unpacked-api": True})["unpacked-api"]``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from slipway.errors import TargetError, did_you_mean

_TYPES = {bool: "IntImm", int: "IntImm", str: "runtime.String"}


class _Choice:
    """A kind with options; unknown ones are errors with a suggestion."""

    OPTIONS: ClassVar[dict[str, dict[str, Any]]] = {}  # kind -> option -> default

    def __init__(self, name: str, options: Mapping[str, Any] | None = None) -> None:
        what = type(self).__name__
        if name not in self.OPTIONS:
            raise TargetError(
                f'{what} "{name}" is not defined; use {" or ".join(map(repr, self.OPTIONS))}.'
                f"{did_you_mean(name, self.OPTIONS)}"
            )
        known = self.OPTIONS[name]
        for key in options or {}:
            if key not in known:
                raise TargetError(
                    f'Attribute "{key}" is not available on this {what}, {name!r}, which has '
                    f"{', '.join(known) or 'none'}."
                    f"{did_you_mean(key, known)}"
                )
            wanted = type(known[key])
            taken = (int,) if wanted is bool else (wanted,)  # 0 and 1 were flags too
            if not isinstance((options or {})[key], taken):
                raise TargetError(
                    f"option {key!r} of {what}({name!r}) is {(options or {})[key]!r}; it takes a "
                    f"{wanted.__name__}"
                )
        self.name = name
        self.attrs = {**known, **(options or {})}

    @classmethod
    def list_registered(cls) -> list[str]:
        """Return the kinds."""
        return list(cls.OPTIONS)

    @classmethod
    def list_registered_options(cls, name: str | _Choice) -> dict[str, str]:
        """Return the options of a kind (or of a value), each with the type of its values."""
        known = cls(name.name if isinstance(name, _Choice) else name).attrs
        return {key: _TYPES[type(value)] for key, value in known.items()}

    list_executors = list_runtimes = list_registered  # as TVM 0.8 had them
    list_executor_options = list_runtime_options = list_registered_options

    @property
    def flag(self) -> str:
        """The kind (the name before `name`)."""
        return self.name

    @classmethod
    def checked(cls, given: Any) -> Any:
        """Return `given` if it is one of this class, or None; else raise TargetError."""
        if given is None or isinstance(given, cls):
            return given
        what, known = cls.__name__, " or ".join(f"{cls.__name__}({n!r})" for n in cls.OPTIONS)
        raise TargetError(
            f"{what.lower()} is {given!r}, a {type(given).__name__}; pass {known} of relay.backend"
        )

    def __getitem__(self, key: str) -> Any:
        return self.attrs[key]

    def __contains__(self, key: str) -> bool:
        return key in self.attrs

    def get(self, key: str, default: Any = None) -> Any:
        """Return the option `key`, or `default`."""
        return self.attrs.get(key, default)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((self.name, tuple(sorted(self.attrs.items(), key=str))))

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {self.attrs})"


class Executor(_Choice):
    """How a whole model runs: "graph" (tables walked by an executor) or "aot" (one function).

    Either value of "link-params" gives the same: an artifact always carries its parameters; and of
    "unpacked-api": the kernels of a program are always called with plain pointers.
    """

    OPTIONS: ClassVar[dict[str, dict[str, Any]]] = {
        "graph": {"link-params": False},
        "aot": {
            "link-params": True,
            "unpacked-api": False,
            "interface-api": "packed",
            "workspace-byte-alignment": 16,
            "constant-byte-alignment": 16,
        },
    }

    @classmethod
    def of_target(cls, options: Mapping[str, Any]) -> Executor | None:
        """Return the executor that a target's options ask for, as they did in old target strings.

        None where they do not.  Raises TargetError for options that need another executor.
        """
        legacy = {**options}
        if "constants-byte-alignment" in legacy:
            legacy["constant-byte-alignment"] = legacy["constants-byte-alignment"]
        own = {key: legacy[key] for key in cls.OPTIONS["aot"] if key in legacy}
        if "executor" in legacy:
            return cls(str(legacy["executor"]), own)
        own.pop("link-params", None)
        if own:
            raise TargetError(
                f"the target's option -{next(iter(own))} is one of ahead-of-time compilation: "
                f'pass executor=Executor("aot", {own}) to relay.build'
            )
        return None


class Runtime(_Choice):
    """What the built code runs under: "cpp" (a process with an operating system) or "crt".

    With "system-lib" an object or archive for a system lists its functions to the runtime that is
    linked with it; libraries and firmware are the same either way.  "c" is "crt" (before 0.9).
    """

    OPTIONS: ClassVar[dict[str, dict[str, Any]]] = {
        "cpp": {"system-lib": False},
        "crt": {"system-lib": False},
    }

    def __init__(self, name: str, options: Mapping[str, Any] | None = None) -> None:
        super().__init__("crt" if name == "c" else name, options)
