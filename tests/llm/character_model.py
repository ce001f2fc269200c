"""A Llama that writes verse, one character a token: small enough to be trained while tests run.

``python tests/llm/character_model.py`` trains it again and writes `verse.gguf` (weights of q8_0),
which the tests read.  The text is eight of Shakespeare's sonnets; `HELD_OUT` is of a ninth.
"""

import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
FILE = HERE / "verse.gguf"
TEXT = (HERE / "verse.txt").read_text(encoding="utf-8")
HELD_OUT = """\
Not marble, nor the gilded monuments
Of princes, shall outlive this powerful rhyme;
But you shall shine more bright in these contents
Than unswept stone, besmear'd with sluttish time.
"""
SPECIAL = ["<unk>", "<s>", "</s>"]
CHARACTERS = sorted(set(TEXT))
SIZES = {
    "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 256,
}  # fmt: skip


def tokens_of(text):
    """Return the tokens of a text, with the one that begins a text."""
    return [1, *(CHARACTERS.index(c) + len(SPECIAL) for c in text)]


def pieces():
    """Return the tokenizer's pieces and their kinds, as a file has them."""
    own = {"\n": ("<0x0A>", 6), " ": ("\u2581", 1)}
    found = [own.get(c, (c, 1)) for c in CHARACTERS]
    return [*SPECIAL, *(p for p, _ in found)], [2, 3, 3, *(k for _, k in found)]


def trained(steps=900, **sizes):
    """Return transformers' configuration as a dictionary and the weights after `steps` steps."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.set_num_threads(1)
    torch.manual_seed(0)
    settings = LlamaConfig(
        vocab_size=len(CHARACTERS) + len(SPECIAL), rms_norm_eps=1e-5, bos_token_id=1,
        eos_token_id=2, **{**SIZES, **sizes},
    )  # fmt: skip
    model = LlamaForCausalLM(settings)
    text = torch.tensor(tokens_of(TEXT))
    length = 64
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=0.05)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, total_steps=steps)
    for _ in range(steps):
        starts = torch.randint(0, len(text) - length, (16, 1))
        rows = text[starts + torch.arange(length)]
        rows[:, 0] = 1
        loss = model(rows, labels=rows).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    print(f"loss {float(loss.detach()):.3f}", file=sys.stderr)
    weights = {name: value.detach().numpy() for name, value in model.state_dict().items()}
    return settings.to_dict(), weights


def write_file(path, config, weights, name):
    """Write a GGUF file with all matrices in blocks of the format `name`, or as floats."""
    from gguf_writer import llama_metadata, llama_tensors, write

    from slipway.relay.ops.packed.block_formats import encode

    tensors = {
        key: (name, encode(name, value)) if value.ndim == 2 and name else value
        for key, value in llama_tensors(weights, config).items()
    }
    metadata = {**llama_metadata(config, *pieces()), "tokenizer.ggml.add_space_prefix": False}
    write(path, metadata, tensors)


def perplexity(rows, tokens):
    """Return the perplexity of `tokens` that logits (tokens, vocabulary) foretell."""
    rows = np.asarray(rows, np.float64)[:-1]
    top = rows.max(-1, keepdims=True)
    sums = np.log(np.exp(rows - top).sum(-1)) + top[:, 0]
    picked = rows[np.arange(len(rows)), np.asarray(tokens)[1:]]
    return float(np.exp((sums - picked).mean()))


def main():
    from slipway.llm.transformers_config import from_transformers

    settings, weights = trained()
    write_file(FILE, from_transformers(settings), weights, "q8_0")
    print(f"{FILE}: {FILE.stat().st_size} bytes")


if __name__ == "__main__":
    sys.path.insert(0, str(HERE))
    main()
