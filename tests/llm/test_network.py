"""Compiled decoders against the same in NumPy, prompts in pieces and steps; and transformers."""

import numpy as np
import pytest
from decoder import logits, named, random_weights

from slipway.errors import ModelError
from slipway.llm.config import from_transformers
from slipway.llm.model import LanguageModel, Source, compile_model
from slipway.llm.weights import Weights
from slipway.runtime import cpu
from slipway.runtime.graph.graph_executor import GraphModule

SIZES = {
    "vocab_size": 50, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 40,
}  # fmt: skip
GEMMA = {"head_dim": 16, "sliding_window": 4, "hidden_activation": "gelu_pytorch_tanh"}
CAPS = {"attn_logit_softcapping": 5.0, "final_logit_softcapping": 4.0, "query_pre_attn_scalar": 9}
FAMILIES = {
    "qwen2": ({}, {"biased": True}),
    "phi3": ({"rope_parameters": {"rope_theta": 500.0, "partial_rotary_factor": 0.5}},
             {"fused": True}),
    "gemma2": ({**GEMMA, **CAPS}, {}),
    "gemma3_text": ({**GEMMA, "rope_local_base_freq": 100.0, "query_pre_attn_scalar": 16,
                     "layer_types": ["sliding_attention", "full_attention"]}, {"normed": True}),
    "olmo2": ({}, {"normed": True}),
    "phi": ({"hidden_act": "gelu_new"}, {"biased": True}),
}  # fmt: skip
LONG_FAMILIES = {
    "llama": ({"rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
                                "high_freq_factor": 4.0,
                                "original_max_position_embeddings": 16}}, {}),
    "mistral": ({"sliding_window": 3}, {}),
    "qwen3": ({"head_dim": 10}, {"normed": True}),
    "gemma": ({"head_dim": 16, "hidden_activation": "gelu_pytorch_tanh"}, {}),
    "smollm3": ({"num_hidden_layers": 4}, {}),
    "granite": ({"embedding_multiplier": 3.0, "attention_multiplier": 0.2,
                 "residual_multiplier": 0.4, "logits_scaling": 5.0}, {}),
    "olmo3": ({"num_hidden_layers": 4, "sliding_window": 3}, {"normed": True}),
    "stablelm": ({"use_parallel_residual": True}, {}),
    "starcoder2": ({"hidden_act": "gelu_pytorch_tanh"}, {"biased": True}),
    "cohere": ({}, {}),
}  # fmt: skip

PEERS_ALONE = {  # not in decoder.py
    "gpt_neox": ({"num_key_value_heads": 4}, {}),
    "gpt2": ({"n_embd": 32, "n_head": 4, "n_layer": 2, "n_positions": 40}, {}),
}


def source(family, more=None, how=None, seed=0, **sizes):
    config = from_transformers({"model_type": family, **SIZES, **(more or {}), **sizes})
    weights = random_weights(config, np.random.default_rng(seed), **(how or {}))
    return Source(family, config, Weights.of(named(config, weights)), None), weights


def loaded(given, **options):
    library, description = compile_model(given, "llvm", **options)
    return LanguageModel(GraphModule(library["default"](cpu())), description)


def check(family, more, how):
    given, weights = source(family, more, how)
    model = loaded(given, rows=6)
    tokens = np.random.default_rng(1).integers(0, 50, 21)
    want = logits(given.config, weights, tokens)
    done = 0
    for count in (5, 1, 1, 11, 3):  # more than are computed at once, too
        found = model.feed(tokens[done : done + count])
        done += count
        np.testing.assert_allclose(found, want[done - 1], rtol=0, atol=3e-5 * np.abs(want).max())


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family(family):
    check(family, *FAMILIES[family])


@pytest.mark.long
@pytest.mark.parametrize("family", LONG_FAMILIES)
def test_another_family(family):
    check(family, *LONG_FAMILIES[family])


@pytest.mark.long
@pytest.mark.parametrize("family", [*FAMILIES, *LONG_FAMILIES, *PEERS_ALONE])
def test_against_transformers(family):
    transformers = pytest.importorskip("transformers")
    torch = pytest.importorskip("torch")
    more, _ = {**FAMILIES, **LONG_FAMILIES, **PEERS_ALONE}[family]
    more = {k: v for k, v in more.items() if k != "rope_local_base_freq"}
    ends = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    settings = transformers.AutoConfig.for_model(family, **{**SIZES, **more, **ends})
    settings._attn_implementation = "eager"
    torch.manual_seed(0)
    peer = transformers.AutoModelForCausalLM.from_config(settings).float().eval()
    with torch.no_grad():
        for parameter in peer.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.3)
    config = from_transformers(settings.to_dict())
    weights = {name: value.numpy() for name, value in peer.state_dict().items()}
    model = loaded(Source(family, config, Weights.of(weights), None), rows=8)
    tokens = torch.randint(0, 50, (1, 12))
    with torch.no_grad():
        want = peer(tokens).logits[0, -1].numpy()
    found = model.feed(tokens[0].tolist())
    np.testing.assert_allclose(found, want, rtol=0, atol=1e-4 * np.abs(want).max())
    # the mask, as a prompt's token 0 would be taken for padding
    made = peer.generate(
        tokens, attention_mask=torch.ones_like(tokens), max_new_tokens=8, do_sample=False,
        eos_token_id=None,
    )  # fmt: skip
    # as long as no two tokens are almost equally likely, which random weights allow
    assert list(model.generate(tokens[0].tolist(), 8, stop=())) == made[0, 12:].tolist()


def test_an_unknown_family_is_named():
    with pytest.raises(ModelError, match=r"no model_type 'lama'.*Did you mean 'llama'"):
        from_transformers({"model_type": "lama", **SIZES})


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ({"hidden_size": None}, "lacks 'hidden_size'"),
        ({"num_hidden_layers": 0}, "num_hidden_layers is 0"),
        ({"num_key_value_heads": 3}, "4 heads cannot share 3"),
        ({"hidden_act": "relu6"}, "activation 'relu6'"),
        ({"rope_scaling": {"type": "yarn"}}, "'yarn'"),
        ({"layer_types": ["full_attention"]}, "1 entries for 2 layers"),
    ],
)
def test_what_a_configuration_lacks_is_named(wrong, problem):
    with pytest.raises(ModelError, match=problem):
        from_transformers({"model_type": "llama", **SIZES, **wrong})


@pytest.mark.parametrize(
    ("key", "value"),
    [("rope_scaling", ["x"]), ("rope_parameters", "x"), ("rope_scaling", {"rope_type": "llama3"}),
     ("rope_scaling", {"rope_type": "linear", "factor": 0}), ("rms_norm_eps", 10**400),
     ("rms_norm_eps", float("nan")), ("rope_theta", -1.0), ("partial_rotary_factor", 2.0),
     ("eos_token_id", [[2]]), ("eos_token_id", {"a": 2}), ("bos_token_id", "x"),
     ("layer_types", 3), ("layer_types", ["full_attention"] * 9), ("no_rope_layers", {"a": 1}),
     ("no_rope_layers", [1] * 9), ("sliding_window", "x"), ("num_hidden_layers", 10**9),
     ("hidden_size", 10**30), ("hidden_act", ["silu"]), ("head_dim", [])],
)  # fmt: skip
@pytest.mark.parametrize("family", ["llama", "qwen3", "gemma2", "smollm3"])
def test_values_of_other_kinds_are_refused_in_words(family, key, value):
    given = {
        "model_type": family, "vocab_size": 24, "hidden_size": 16, "intermediate_size": 32,
        "num_hidden_layers": 2, "num_attention_heads": 4,
    }  # fmt: skip
    with pytest.raises(ModelError, match=r"a\.json"):
        from_transformers({**given, key: value}, "a.json")


def test_a_weight_of_another_shape_is_named():
    given, weights = source("llama")
    weights["model.layers.1.mlp.up_proj.weight"] = np.zeros((3, 4), np.float32)
    with pytest.raises(ModelError, match=r"up_proj.weight' has the shape \(3, 4\), not \(64, 32\)"):
        compile_model(given, "llvm")
    given, weights = source("llama")
    del weights["model.norm.weight"]
    with pytest.raises(ModelError, match=r"no weight 'model.norm.weight'"):
        compile_model(Source("x", given.config, Weights.of(weights), None), "llvm")
