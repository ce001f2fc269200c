"""Layers with a short convolution for attention (LFM 2): their states, files, what is forgotten."""

import numpy as np
import pytest
from gguf_writer import write
from tests.llm.test_network import SIZES, loaded

from slipway.errors import ModelError
from slipway.llm.gguf_file import GGUFFile
from slipway.llm.gguf_model import model_of
from slipway.llm.model import Source, cache_bytes, compile_model
from slipway.llm.transformers_config import from_transformers
from slipway.llm.weights import Weights

GIVEN = {"model_type": "lfm2", **SIZES, "layer_types": ["conv", "full_attention"],
         "conv_L_cache": 3, "block_auto_adjust_ff_dim": False, "intermediate_size": 48}  # fmt: skip


def weights_of(rng):
    made = {"model.embed_tokens.weight": (50, 32), "model.embedding_norm.weight": (32,)}
    for i in range(2):
        at = f"model.layers.{i}."
        made |= {f"{at}{name}.weight": (32,) for name in ("operator_norm", "ffn_norm")}
        made |= {
            f"{at}feed_forward.w{n}.weight": (32, 48) if n == 2 else (48, 32) for n in (1, 2, 3)
        }
    conv, attention = "model.layers.0.conv.", "model.layers.1.self_attn."
    made |= {conv + "conv.weight": (32, 1, 3), conv + "in_proj.weight": (96, 32),
             conv + "out_proj.weight": (32, 32)}  # fmt: skip
    made |= {f"{attention}{n}_proj.weight": (rows, 32) for n, rows in
             (("q", 32), ("k", 16), ("v", 16), ("out", 32))}  # fmt: skip
    made |= {f"{attention}{n}_layernorm.weight": (8,) for n in "qk"}
    return {name: (rng.standard_normal(shape) * 0.3).astype("float32")
            for name, shape in made.items()}  # fmt: skip


@pytest.fixture(scope="module")
def weights():
    return weights_of(np.random.default_rng(3))


def source(weights):
    return Source("lfm2", from_transformers(GIVEN), Weights.of(weights), None)


def test_parts_of_a_prompt_are_as_the_whole(weights):
    """States carry over from run to run: shorter parts than the convolution is long, too."""
    tokens = np.random.default_rng(1).integers(0, 50, 17)
    whole = loaded(source(weights), rows=17, all_logits=True)
    whole.feed(tokens)
    want = whole._logits
    model, done = loaded(source(weights), rows=6), 0
    for count in (1, 1, 2, 1, 9, 3):
        found = model.feed(tokens[done : done + count])
        done += count
        np.testing.assert_allclose(found, want[done - 1], rtol=0, atol=2e-5 * np.abs(want).max())


def test_what_the_states_cannot_forget_is_computed_again(weights):
    model = loaded(source(weights), rows=8)
    assert not model.description.rewinds
    first, second = [1, 2, 3, 4, 5, 6], [1, 2, 3, 9, 8]
    model.prompt(first)
    found = model.prompt(second)
    assert model.tokens == second
    model.reset()
    np.testing.assert_array_equal(found, model.prompt(second))
    longer = model.prompt([*second, 7])  # what follows is only added
    model.reset()
    atol = 2e-5 * np.abs(longer).max()
    np.testing.assert_allclose(longer, model.prompt([*second, 7]), rtol=0, atol=atol)


def test_states_take_the_place_of_caches():
    config = from_transformers(GIVEN)
    assert cache_bytes(config, 40) == 2 * 4 * 16 * 48 + 4 * 2 * 32  # 48: whole blocks of positions


def test_a_gguf_file_of_them(weights, tmp_path):
    names = {"operator_norm": "attn_norm", "ffn_norm": "ffn_norm", "feed_forward.w1": "ffn_gate",
             "feed_forward.w2": "ffn_down", "feed_forward.w3": "ffn_up",
             "conv.conv": "shortconv.conv", "conv.in_proj": "shortconv.in_proj",
             "conv.out_proj": "shortconv.out_proj", "self_attn.out_proj": "attn_output",
             "self_attn.q_layernorm": "attn_q_norm", "self_attn.k_layernorm": "attn_k_norm",
             **{f"self_attn.{n}_proj": f"attn_{n}" for n in "qkv"}}  # fmt: skip
    tensors = {"token_embd.weight": weights["model.embed_tokens.weight"],
               "token_embd_norm.weight": weights["model.embedding_norm.weight"]}  # fmt: skip
    for name, value in weights.items():
        if name.startswith("model.layers."):
            number, part = name.removeprefix("model.layers.").removesuffix(".weight").split(".", 1)
            tensors[f"blk.{number}.{names[part]}.weight"] = (
                value.squeeze(1) if value.ndim == 3 else value
            )
    metadata = {"general.architecture": "lfm2", "lfm2.block_count": 2, "lfm2.context_length": 40,
                "lfm2.embedding_length": 32, "lfm2.feed_forward_length": 48,
                "lfm2.attention.head_count": 4, "lfm2.attention.head_count_kv": [0, 2],
                "lfm2.attention.layer_norm_rms_epsilon": 1e-5, "lfm2.rope.freq_base": 1e6,
                "lfm2.shortconv.l_cache": 3, "lfm2.vocab_size": 50}  # fmt: skip
    write(tmp_path / "x.gguf", metadata, tensors)
    config, found, _ = model_of(GGUFFile(tmp_path / "x.gguf"))
    tokens = np.arange(9)
    made = loaded(Source("x", config, found, None), rows=9).feed(tokens)
    want = loaded(source(weights), rows=9).feed(tokens)
    np.testing.assert_allclose(made, want, rtol=0, atol=1e-5 * np.abs(want).max())


def test_a_convolution_of_another_length_is_named(weights):
    wrong = {**weights, "model.layers.0.conv.conv.weight": np.zeros((32, 1, 4), np.float32)}
    with pytest.raises(ModelError, match=r"conv.conv.weight' has the shape .*, not \(32, 3\)"):
        compile_model(source(wrong), "llvm")
