"""GGUF files written byte by byte: what tests read again, whole or damaged."""

import struct

from slipway.relay.ops.packed.block_formats import FORMATS

NAMES = {
    "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down", "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
}  # fmt: skip
ENDS = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}
KINDS = {int: (4, "I"), float: (6, "f"), bool: (7, "?")}


def text(value):
    raw = value.encode()
    return struct.pack("<Q", len(raw)) + raw


def value_of(value):
    if isinstance(value, str):
        return struct.pack("<I", 8) + text(value)
    if isinstance(value, list):
        parts = [value_of(v) for v in value]
        if isinstance(value[0], int):  # arrays of whole numbers are signed
            parts = [struct.pack("<Ii", 5, v) for v in value]
        return struct.pack("<I", 9) + parts[0][:4] + struct.pack("<Q", len(value)) + b"".join(
            p[4:] for p in parts
        )  # fmt: skip
    kind, code = KINDS[type(value)]
    return struct.pack(f"<I{code}", kind, value)


def write(path, metadata, tensors):
    """Write a file; tensors are arrays of floats, or (format, bytes of rows)."""
    from slipway.llm.gguf_file import BLOCKS

    numbers = {name: number for number, name in BLOCKS.items()}
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata))
    head += b"".join(text(key) + value_of(value) for key, value in metadata.items())
    data = b""
    for name, tensor in tensors.items():
        data += b"\0" * (-len(data) % 32)
        if isinstance(tensor, tuple) and isinstance(tensor[0], int):  # a format by its number
            kind, raw, (size, each) = tensor
            shape = (*raw.shape[:-1], raw.shape[-1] // each * size)
        elif isinstance(tensor, tuple):
            form, raw = FORMATS[tensor[0]], tensor[1]
            kind = numbers[tensor[0]]
            shape = (*raw.shape[:-1], raw.shape[-1] // form.bytes * form.size)
        else:
            kind, raw, shape = 0, tensor.astype("<f4"), tensor.shape
        head += text(name) + struct.pack("<I", len(shape))
        head += struct.pack(f"<{len(shape)}Q", *shape[::-1]) + struct.pack("<IQ", kind, len(data))
        data += raw.tobytes()
    path.write_bytes(head + b"\0" * (-len(head) % 32) + data)


def interleaved(rows, heads):
    """Rows of query or key in the order in which files of Llamas have them."""
    return rows.reshape(heads, 2, -1, rows.shape[-1]).swapaxes(1, 2).reshape(rows.shape)


def llama_tensors(weights, config):
    """Return a Llama's weights by the names, and in the order of rows, of its files."""
    made = {}
    for name, value in weights.items():
        stem, _, kind = name.rpartition(".")
        if stem.startswith("model.layers."):
            number, _, part = stem.removeprefix("model.layers.").partition(".")
            heads = {"self_attn.q_proj": config.heads, "self_attn.k_proj": config.kv_heads}.get(
                part
            )
            value = interleaved(value, heads) if heads else value
            made[f"blk.{number}.{NAMES[part]}.{kind}"] = value
        else:
            made[f"{ENDS[stem]}.{kind}"] = value
    return made


def llama_metadata(config, pieces, kinds, scores=None):
    """Return the metadata of a Llama whose tokenizer has those pieces."""
    return {
        "general.architecture": "llama", "llama.block_count": len(config.layers),
        "llama.context_length": config.context, "llama.embedding_length": config.hidden,
        "llama.feed_forward_length": config.feed_forward,
        "llama.attention.head_count": config.heads,
        "llama.attention.head_count_kv": config.kv_heads,
        "llama.attention.layer_norm_rms_epsilon": config.epsilon,
        "llama.rope.dimension_count": config.head_size,
        "tokenizer.ggml.model": "llama", "tokenizer.ggml.tokens": pieces,
        "tokenizer.ggml.scores": scores or [-float(i) for i in range(len(pieces))],
        "tokenizer.ggml.token_type": kinds, "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2, "tokenizer.ggml.unknown_token_id": 0,
        "tokenizer.ggml.add_bos_token": True,
    }  # fmt: skip
