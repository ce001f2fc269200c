"""``tvmc.frontends``: reading model files."""

from slipway.driver.tvmc.model import TVMCException
from slipway.driver.tvmc.models import TVMCImportError, get_frontend_names, load_model

__all__ = ["TVMCException", "TVMCImportError", "get_frontend_names", "load_model"]
