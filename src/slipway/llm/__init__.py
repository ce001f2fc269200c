"""Language models: from a GGUF file or a transformers folder to text, here and on devices.

::

    from slipway import llm

    model = llm.LanguageModel.from_file("model.gguf", context=1024)
    for piece in model.stream("Once upon a time", most=100):
        print(piece, end="", flush=True)
"""

from slipway.arguments import COMMON, explain_all
from slipway.llm.model import LanguageModel, Source, compile_model
from slipway.llm.sampling import Sampler, Sampling
from slipway.llm.saved import Description, save
from slipway.llm.tokenizer import Tokenizer

__all__ = [
    "Description",
    "LanguageModel",
    "Sampler",
    "Sampling",
    "Source",
    "Tokenizer",
    "compile_model",
    "save",
]

explain_all(globals(), __all__, COMMON)
