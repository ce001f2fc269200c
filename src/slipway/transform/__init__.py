"""Passes and their context, under classic names."""

from slipway.lazy import by_module, offer

_HOMES = {
    **by_module(
        {
            "slipway.transform.context": "PassContext",
            "slipway.transform.manager": (
                "FunctionPass ModulePass Pass PassInfo PrimFuncPass Sequential"
            ),
            "slipway.transform.graph.classic": "function_pass module_pass",
        }
    ),
    "PrintIR": "slipway.transform.manager:print_ir",
}
__getattr__, __dir__ = offer(__name__, _HOMES)
