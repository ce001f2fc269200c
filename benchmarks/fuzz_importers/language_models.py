"""Seeds for the fuzzer of language models: a GGUF file, and a folder as transformers writes it."""

import io
import json
import sys
import tempfile
import zipfile
from pathlib import Path

import numpy as np

from benchmarks.fuzz_importers.damage import mutate_bytes, mutate_json

TESTS = Path(__file__).parents[2] / "tests" / "llm"
CONFIG = {
    "model_type": "llama", "vocab_size": 24, "hidden_size": 16, "intermediate_size": 32,
    "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
    "max_position_embeddings": 32, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
    "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
                     "high_freq_factor": 4.0, "original_max_position_embeddings": 16},
    "hidden_act": "silu", "tie_word_embeddings": False, "sliding_window": 8,
    "layer_types": ["full_attention", "sliding_attention"], "eos_token_id": [2, 3],
    "bos_token_id": 1,
}  # fmt: skip
SETTINGS = {
    "chat_template": "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}",
    "bos_token": "<s>", "eos_token": {"content": "</s>"},
}  # fmt: skip
MODEL = "model.json"
DESCRIPTION = {
    "name": "x", "family": "llama", "vocabulary": 24, "context": 8, "rows": 4,
    "end_tokens": [2], "begin_token": 1, "chat_template": "",
}  # fmt: skip


def language_corpus():
    """Return (name, bytes): a GGUF file, and folders as archives."""
    from safetensors.numpy import save
    from tokenizers import Tokenizer, models

    from slipway.llm.transformers_config import from_transformers

    sys.path.insert(0, str(TESTS))
    from decoder import random_weights

    weights = random_weights(from_transformers(CONFIG, "seed"), np.random.default_rng(0))
    pieces = {f"p{i}": i for i in range(24)}
    found = [("gguf", (TESTS / "verse.gguf").read_bytes())]
    for family in ("llama", "qwen3", "gemma2", "smollm3", "phi3"):
        parts = {
            "config.json": json.dumps({**CONFIG, "model_type": family}).encode(),
            "model.safetensors": save(weights),
            "tokenizer.json": Tokenizer(models.BPE(pieces, [])).to_str().encode(),
            "tokenizer_config.json": json.dumps(SETTINGS).encode(),
            MODEL: json.dumps(DESCRIPTION).encode(),
        }
        found.append((family, packed(parts)))
    return found


def packed(parts):
    """Return the files of a folder as one archive."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return out.getvalue()


def mutate_language(data, rng):
    """Change bytes of a GGUF file, mostly of its head, or one file of a folder."""
    if data[:4] == b"GGUF":
        end = rng.choice((200, 2000, 20_000, len(data)))
        return mutate_bytes(data[:end], rng) + data[end:]
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    name = rng.choice(sorted(parts))
    if name.endswith(".json") and rng.random() < 0.8:
        parts[name] = json.dumps(mutate_json(json.loads(parts[name]), rng)).encode()
    else:
        head = rng.choice((100, 2000, len(parts[name])))
        parts[name] = mutate_bytes(parts[name][:head], rng) + parts[name][head:]
    return packed(parts)


def read_language(data):
    """Read a model, ask its tokenizer and its template, and return its graph."""
    from slipway.errors import NotAvailableError
    from slipway.ir.function import IRModule
    from slipway.llm.model import Source, memory_needed
    from slipway.llm.network import network
    from slipway.llm.saved import described

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.gguf")
        if data[:4] == b"GGUF" or not zipfile.is_zipfile(io.BytesIO(data)):
            path.write_bytes(data)
        else:
            path = Path(folder, "model")
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                archive.extractall(path)
            described(path)
        source = Source.read(path)
        memory_needed(source.config, 16)
        if source.tokenizer is not None:
            source.tokenizer.encode("a b")
            template = source.tokenizer.chat_template
            source.tokenizer.chat_text([{"role": "user", "content": "a"}], template)
        try:
            made = network(source.config, source.weights, 16, 4, "", False)
        except NotAvailableError:
            raise
        return made if isinstance(made, IRModule) else IRModule.from_expr(made), {}
