"""``relay.build_module``: `build`, `create_executor` and `bind_params_by_name`."""

from slipway.lazy import offer

_HOMES = {
    "bind_params_by_name": "slipway.relay.construct:bind",
    "build": "slipway.compiler.relay_build:build",
    "create_executor": "slipway.compiler.create_executor:create_executor",
    "optimize": "slipway.compiler.classic_build:optimize",
}
__getattr__, __dir__ = offer(__name__, _HOMES, explain=True)
