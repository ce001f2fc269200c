"""Compiled decoders against the same in NumPy, prompts in pieces and steps; and transformers."""

import re

import numpy as np
import pytest
from decoder import logits, named, random_weights

from slipway.errors import ModelError
from slipway.llm.config import Rope
from slipway.llm.families import FAMILIES as KNOWN
from slipway.llm.family_defaults import usual_sizes
from slipway.llm.model import LanguageModel, Source, compile_model
from slipway.llm.network import rope_tables
from slipway.llm.positions import alibi_slopes, yarn_divisors
from slipway.llm.transformers_config import from_transformers
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
    "gpt_neox": ({}, {}),
    "gpt2": ({"n_embd": 32, "n_head": 4, "n_layer": 2, "n_positions": 40}, {}),
    "gpt_bigcode": ({"n_embd": 32, "n_head": 4, "n_layer": 2, "n_positions": 40}, {}),
    "ministral": (
        {
            "sliding_window": 3,
            "head_dim": 8,
            "rope_parameters": {"rope_theta": 1e4, "rope_type": "default"},
        },
        {},
    ),
    "seed_oss": ({"head_dim": 8}, {}),
    "ernie4_5": ({"head_dim": 8}, {}),
    "helium": ({"head_dim": 8}, {}),
    "arcee": (
        {
            "rope_parameters": {
                "rope_type": "yarn",
                "rope_theta": 1e4,
                "factor": 4.0,
                "original_max_position_embeddings": 10,
            }
        },
        {},
    ),
    "hunyuan_v1_dense": ({"head_dim": 8}, {}),
    "exaone4": ({"sliding_window": 3, "layer_types": ["sliding_attention", "full_attention"]}, {}),
    "glm": ({"head_dim": 8}, {}),
    "glm4": ({"head_dim": 8}, {}),
    "nemotron": ({"head_dim": 8}, {}),
    "olmo": ({"clip_qkv": 0.5}, {}),
    "cohere2": ({"sliding_window": 3, "layer_types": ["sliding_attention", "full_attention"]}, {}),
    "opt": ({"ffn_dim": 64, "word_embed_proj_dim": 32}, {}),
    "gptj": ({"n_embd": 32, "n_head": 4, "n_layer": 2, "n_positions": 40, "rotary_dim": 6}, {}),
    "gpt_neo": ({"num_layers": 2, "num_heads": 4, "window_size": 3,
                 "attention_types": [[["global", "local"], 1]]}, {}),
    "falcon": ({}, {}),
    "cwm": ({"head_dim": 8, "sliding_window": 3}, {}),
    "ministral3": ({"head_dim": 8, "rope_parameters": {
        "rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0, "mscale": 1.0, "mscale_all_dim": 1.0,
        "beta_fast": 32.0, "beta_slow": 1.0, "original_max_position_embeddings": 5,
        "llama_4_scaling_beta": 0.5}}, {}),
    "apertus": ({"hidden_act": "xielu"}, {}),
    "granitemoehybrid": ({"num_local_experts": 0, "shared_intermediate_size": 64,
                          "mamba_n_heads": 8, "position_embedding_type": "rope",
                          "layer_types": ["full_attention"] * 2,
                          "embedding_multiplier": 3.0, "attention_multiplier": 0.2,
                          "residual_multiplier": 0.4, "logits_scaling": 5.0}, {}),
    "bloom": ({"n_layer": 3, "n_head": 4}, {}),
    "mpt": ({"d_model": 48, "n_heads": 6, "n_layers": 2, "max_seq_len": 40,
             "attn_config": {"clip_qkv": 0.5, "softmax_scale": 0.3}}, {}),
    "persimmon": ({}, {}),
    "codegen": ({"n_embd": 64, "n_head": 8, "n_layer": 2, "n_positions": 40, "rotary_dim": 6}, {}),
    "hyperclovax": ({"residual_multiplier": 0.4, "embedding_multiplier": 3.0,
                     "attention_multiplier": 0.2, "logits_scaling": 2.0}, {}),
    "lfm2": ({"layer_types": ["conv", "full_attention"], "block_multiple_of": 16}, {}),
    "jais2": ({"head_dim": 8, "attention_bias": True}, {}),
    "vaultgemma": ({**GEMMA, "layer_types": ["sliding_attention", "full_attention"]}, {}),
}  # fmt: skip
VARIANTS = [  # of configurations
    ("gpt2", {"n_embd": 32, "n_head": 4, "n_layer": 3, "n_positions": 40,
              "scale_attn_by_inverse_layer_idx": True}),
    ("gpt2", {"n_embd": 32, "n_head": 4, "n_layer": 2, "n_positions": 40,
              "scale_attn_weights": False}),
    ("gpt_bigcode", {"n_embd": 32, "n_head": 4, "n_layer": 2, "n_positions": 40,
                     "scale_attn_weights": False, "multi_query": False}),
    ("opt", {"ffn_dim": 64, "word_embed_proj_dim": 32, "layer_norm_elementwise_affine": False}),
    ("falcon", {"new_decoder_architecture": True, "num_kv_heads": 2}),
    ("falcon", {"new_decoder_architecture": True, "num_kv_heads": 2, "num_ln_in_parallel_attn": 1}),
    ("falcon", {"multi_query": False, "parallel_attn": False, "bias": True}),
    ("falcon", {"alibi": True, "multi_query": False, "parallel_attn": False, "bias": True}),
    ("bloom", {"hidden_size": 48, "n_layer": 2, "n_head": 6}),
    ("persimmon", {"qk_layernorm": False, "hidden_act": "gelu"}),
    ("phi", {"qk_layernorm": True}),
    ("hyperclovax", {"use_post_norm": False}),
    ("lfm2", {"conv_L_cache": 4, "conv_bias": True, "block_auto_adjust_ff_dim": False,
              "layer_types": ["full_attention", "conv"]}),
    ("lfm2", {}),
    ("stablelm", {"qk_layernorm": True}),
    ("cohere", {"use_qk_norm": True}),
    ("granitemoehybrid", {"num_local_experts": 0, "shared_intermediate_size": 48,
                          "mamba_n_heads": 8, "layer_types": ["full_attention"] * 2}),
]  # fmt: skip
LONGROPE = {
    "max_position_embeddings": 40, "original_max_position_embeddings": 20,
    "rope_parameters": {"rope_type": "longrope", "rope_theta": 1e4,
                        "short_factor": [1.1, 1.2, 1.3, 1.4], "long_factor": [2.0, 3.0, 4.0, 5.0],
                        "original_max_position_embeddings": 20},
}  # fmt: skip


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


def peer_of(family, kind="AutoModelForCausalLM", **more):
    """A random model of transformers, and what it is here."""
    transformers = pytest.importorskip("transformers")
    torch = pytest.importorskip("torch")
    more = {k: v for k, v in more.items() if k != "rope_local_base_freq"}
    settings = transformers.AutoConfig.for_model(family, **more)
    # Falcon's eager attention adds ALiBi twice.
    settings._attn_implementation = "sdpa" if family == "falcon" else "eager"
    torch.manual_seed(0)
    peer = getattr(transformers, kind).from_config(settings).float().eval()
    with torch.no_grad():
        biases = [b for name, b in peer.named_buffers() if name.endswith("_bias")]  # of routers
        for parameter in (*peer.parameters(), *biases):
            parameter.copy_(torch.randn_like(parameter) * 0.3)
    weights = {name: value.numpy() for name, value in peer.state_dict().items()}
    config = from_transformers(settings.to_dict())
    return torch, peer, Source(family, config, Weights.of(weights), None)


ENDS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}


@pytest.mark.long
@pytest.mark.parametrize("context", [20, 40])
def test_a_longer_context_has_angles_of_its_own(context):
    torch, peer, given = peer_of("phi3", **{**SIZES, **LONGROPE, **ENDS})
    tokens = torch.randint(0, 50, (1, context - 8))
    with torch.no_grad():
        want = peer(tokens).logits[0, -1].numpy()
    found = loaded(given, rows=8, context=context).feed(tokens[0].tolist())
    np.testing.assert_allclose(found, want, rtol=0, atol=2e-5 * np.abs(want).max())


@pytest.mark.long
@pytest.mark.parametrize(("family", "inner"), [("gemma3", "gemma3_text"), ("llava", "llama")])
def test_the_language_part_of_a_larger_model(family, inner):
    vision = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1,
              "num_attention_heads": 2, "image_size": 28, "patch_size": 14}  # fmt: skip
    text = {**SIZES, **ENDS, "model_type": inner, "head_dim": 8, "sliding_window": 4}
    torch, peer, given = peer_of(family, "AutoModelForImageTextToText", text_config=text,
                                 vision_config=vision, image_token_index=49)  # fmt: skip
    tokens = torch.randint(3, 49, (1, 12))
    with torch.no_grad():
        want = peer(input_ids=tokens).logits[0, -1].numpy()
    found = loaded(given, rows=8).feed(tokens[0].tolist())
    np.testing.assert_allclose(found, want, rtol=0, atol=2e-5 * np.abs(want).max())


@pytest.mark.long
@pytest.mark.parametrize("family", [*FAMILIES, *LONG_FAMILIES, *PEERS_ALONE])
def test_against_transformers(family):
    more, _ = {**FAMILIES, **LONG_FAMILIES, **PEERS_ALONE}[family]
    torch, peer, given = peer_of(family, **{**SIZES, **more, **ENDS})
    model = loaded(given, rows=8)
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


@pytest.mark.long
@pytest.mark.parametrize(("family", "more"), VARIANTS)
def test_what_else_configurations_say(family, more):
    torch, peer, given = peer_of(family, **{**SIZES, **more, **ENDS})
    tokens = torch.randint(0, 50, (1, 12))
    with torch.no_grad():
        want = peer(tokens).logits[0, -1].numpy()
    found = loaded(given, rows=8).feed(tokens[0].tolist())
    np.testing.assert_allclose(found, want, rtol=0, atol=1e-5 * np.abs(want).max())


def test_scales_of_scores_that_files_of_gpt2_have():
    sizes = {"model_type": "gpt2", "vocab_size": 50, **VARIANTS[0][1]}
    config = from_transformers({**sizes, "scale_attn_weights": False})
    assert config.attention_scale == 1
    assert [layer.score_scale for layer in config.layers] == [1, 1 / 2, 1 / 3]


def test_dynamic_positions_stretch_what_is_longer_than_the_context_alone():
    dynamic = {"rope_parameters": {"rope_type": "dynamic", "rope_theta": 1e4, "factor": 2.0}}
    given = {"model_type": "llama", **SIZES}
    assert from_transformers({**given, **dynamic}) == from_transformers({**given})


@pytest.mark.parametrize(
    ("family", "wrong", "problem"),
    [("gpt_neo", {"attention_types": [["global", 2]]}, "attention_types has"),
     ("gpt_neo", {"attention_types": [[["far"], 2]]}, "a layer is 'far', neither global nor local"),
     ("gpt_neo", {"attention_types": [[["local"], 10**9]]}, "more than 10,000 layers"),
     ("gptj", {"n_embd": 32, "n_head": 4, "n_layer": 2, "n_positions": 9, "rotary_dim": 9},
      "partial_rotary_factor 1.125")],
)  # fmt: skip
def test_what_single_families_do_not_know_is_named(family, wrong, problem):
    with pytest.raises(ModelError, match=problem):
        from_transformers({"model_type": family, **SIZES, "num_layers": 2, "num_heads": 4, **wrong})


def test_queries_grow_with_their_positions():
    rope = Rope(size=4, growth=(0.5, 3))
    for grown, plain in zip(rope_tables(rope, 8), rope_tables(Rope(size=4), 8), strict=True):
        by = 1 + 0.5 * np.log1p([0, 0, 0, 1, 1, 1, 2, 2])
        np.testing.assert_allclose(grown, plain * by[:, None], rtol=1e-6)


def test_slopes_of_alibi():
    assert alibi_slopes(8) == tuple(2.0**-i for i in range(1, 9))
    third = alibi_slopes(3)
    np.testing.assert_allclose(third, [2**-4, 2**-8, 2**-2])
    np.testing.assert_allclose(alibi_slopes(3, 16.0, ceiling=True), [2**-8, 2**-16, 2**-4])


@pytest.mark.parametrize(("family", "joint"), [("internlm2", True), ("exaone", False)])
def test_families_whose_classes_transformers_lacks(family, joint):
    """A Llama's weights under their names; InternLM 2 has query, key and value by groups."""
    plain, weights = source("llama")
    weights = dict(weights)
    own = {"num_layers": 2, "activation_function": "silu", "layer_norm_epsilon": 1e-6}
    given = {"model_type": family, **SIZES, **own}
    if family == "exaone":
        del given["num_hidden_layers"]
    config = from_transformers(given)
    assert (config.heads, config.kv_heads, len(config.layers)) == (4, 2, 2)
    if joint:
        for i in range(2):
            at = f"model.layers.{i}.self_attn."
            parts = [weights.pop(f"{at}{n}_proj.weight").reshape(2, -1, 8, 32) for n in "qkv"]
            weights[f"{at}qkv_proj.weight"] = np.concatenate(parts, 1).reshape(-1, 32)
    given = Source(family, config, Weights.of(named(config, weights)), None)
    tokens = np.arange(11)
    want = loaded(plain, rows=11).feed(tokens)
    found = loaded(given, rows=11).feed(tokens)
    np.testing.assert_allclose(found, want, rtol=0, atol=1e-5 * np.abs(want).max())


def test_heads_of_gpt_neox_share_nothing():
    assert from_transformers({"model_type": "gpt_neox", **SIZES}).kv_heads == 4


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
        ({"rope_scaling": {"type": "ntk"}}, "'ntk'"),
        ({"rope_scaling": {"type": "yarn", "factor": -2}}, "factor is -2.0, and must be positive"),
        ({"rope_scaling": {"type": "longrope", "short_factor": [1.0]}}, "1 entries for 4 pairs"),
        ({"rope_scaling": {"type": "longrope", "short_factor": [1, 1, 1, "x"]}}, "short_factor is"),
        ({"layer_types": ["full_attention"]}, "1 entries for 2 layers"),
        ({"use_bidirectional_attention": True}, "does not know attention to tokens that follow"),
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


def test_the_divisors_of_a_longer_context():
    config = from_transformers({"model_type": "phi3", **SIZES, **LONGROPE})
    (rope,) = {layer.rope for layer in config.layers}
    plain = np.arange(40)[:, None] * 1e4 ** (-np.arange(4) / 4)
    for context, divisors in ((20, [1.1, 1.2, 1.3, 1.4]), (21, [2, 3, 4, 5])):
        cosines, _ = rope_tables(rope, 40, context)
        longer = np.sqrt(1 + np.log(2) / np.log(20))
        np.testing.assert_allclose(cosines, longer * np.cos(plain / divisors), atol=1e-5)
    divisors = yarn_divisors(32, 1e4, 4.0, 4096.0)
    np.testing.assert_allclose([divisors[0], divisors[-1]], [1, 4])  # short waves, and long ones
    assert sorted(divisors) == list(divisors)


def test_a_language_model_inside_of_another():
    inner = {"model_type": "gemma3_text", **{k: SIZES[k] for k in list(SIZES)[1:4]}}
    config = from_transformers({"model_type": "gemma3", "text_config": inner, "eos_token_id": [1]})
    assert (config.head_size, config.kv_heads, config.end_tokens) == (256, 4, (1,))
    assert config.activation == "gelu_tanh"  # which its file does not say
    with pytest.raises(ModelError, match=r"a\.json: text_config: slipway.llm knows no .*'lama'"):
        from_transformers({"model_type": "x", "text_config": {"model_type": "lama"}}, "a.json")
    weights = source("llama")[1]
    names = (("model.", "model.language_model."), ("", "language_model."))
    for prefix in ("language_model.model.", "model.language_model."):
        files = {n.replace("model.", prefix, 1): w for n, w in weights.items()}
        files["model.vision_tower.layers.0.fc1.weight"] = np.zeros(3)
        assert set(weights) < Weights.of(files).renamed(names).names


def test_what_a_text_config_leaves_out_is_its_class_own():
    inner = {"model_type": "llama", "max_position_embeddings": 4096, "rms_norm_eps": 1e-05,
             "vocab_size": 32064}  # fmt: skip
    config = from_transformers({"model_type": "llava", "text_config": inner})  # LLaVA 1.5's file
    sizes = (config.hidden, config.feed_forward, len(config.layers), config.heads, config.kv_heads)
    assert sizes == (4096, 11008, 32, 32, 32)
    assert (config.head_size, config.context, config.vocabulary) == (128, 4096, 32064)
    assert (config.begin_token, config.end_tokens, config.tied) == (1, (2,), False)


@pytest.mark.parametrize(
    ("given", "activation", "epsilon"),
    [({"model_type": "phi"}, "gelu_tanh", 1e-5), ({"model_type": "nemotron"}, "relu2", 1e-5),
     ({"model_type": "gpt_neox"}, "gelu", 1e-5), ({"model_type": "helium"}, "silu", 1e-8),
     ({"model_type": "gemma", "hidden_act": "gelu"}, "gelu_tanh", 1e-6)],
)  # fmt: skip
def test_a_silent_file_means_what_its_family_does(given, activation, epsilon):
    config = from_transformers({**SIZES, "head_dim": 8, **given})
    assert (config.activation, config.epsilon) == (activation, epsilon)


@pytest.mark.long
def test_silent_files_mean_what_the_classes_of_transformers_say():
    transformers = pytest.importorskip("transformers")
    for family in KNOWN:
        whole = transformers.AutoConfig.for_model(family).to_dict()
        silent = from_transformers({"model_type": family, **usual_sizes(family)})
        assert silent == from_transformers(whole), family


def test_a_text_of_letters_says_which_layers_see_all():
    given = {"model_type": "exaone4", **SIZES, "num_hidden_layers": 7, "sliding_window": 3}
    config = from_transformers({**given, "sliding_window_pattern": "LLLG"})
    assert [layer.window for layer in config.layers] == [3, 3, 3, 0, 3, 3, 0]
    assert [layer.rope.size for layer in config.layers] == [8, 8, 8, 0, 8, 8, 0]
    for wrong in ("", "LLx"):
        with pytest.raises(ModelError, match=r"sliding_window_pattern is .*as LLLG"):
            from_transformers({**given, "sliding_window_pattern": wrong})


def test_a_weight_that_nothing_computes_with_is_named():
    given, weights = source("llama")
    weights["model.layers.1.self_attn.sinks"] = np.zeros(4, np.float32)
    weights["model.layers.0.self_attn.rotary_emb.inv_freq"] = np.zeros(4, np.float32)
    weights["model.layers.2.eh_proj.weight"] = np.zeros(4, np.float32)  # predicts further tokens
    wrong = Source("x", given.config, Weights.of(weights), None)
    with pytest.raises(ModelError, match=r"1 weights .* 'llama': 'model.layers.1.self_attn.sinks'"):
        compile_model(wrong, "llvm")


def test_a_weight_of_another_shape_is_named():
    given, weights = source("llama")
    weights["model.layers.1.mlp.up_proj.weight"] = np.zeros((3, 4), np.float32)
    with pytest.raises(ModelError, match=r"up_proj.weight' has the shape \(3, 4\), not \(64, 32\)"):
        compile_model(given, "llvm")
    given, weights = source("llama")
    del weights["model.norm.weight"]
    with pytest.raises(ModelError, match=r"no weight 'model.norm.weight'"):
        compile_model(Source("x", given.config, Weights.of(weights), None), "llvm")


@pytest.mark.parametrize(("given", "what"), [
    ({"model_type": "gpt_oss", "num_local_experts": 8}, "a mixture of experts (num_local_experts"),
    ({"model_type": "afmoe", "num_experts": 64}, "a mixture of experts (num_experts is 64)"),
    ({"model_type": "jais", "alibi": True}, "ALiBi's positions"),
    ({"model_type": "mpt", "attn_config": {"alibi": False}}, "positions that are not ALiBi's"),
    ({"model_type": "mpt", "attn_config": 3}, "attn_config is 3, and must be an object"),
    ({"model_type": "bloom", **SIZES, "apply_residual_connection_post_layernorm": True},
     "does not know sums with what norms made"),
    ({"model_type": "falcon_h1", "mamba_d_ssm": 1024}, "state spaces"),
    ({"model_type": "recurrent_gemma", "lru_width": 3}, "convolutions"),
    ({"model_type": "deepseek_v3", "kv_lora_rank": 512}, "from a latent vector (kv_lora_rank)"),
    ({"model_type": "gemma3n", "text_config": {
        "model_type": "gemma3n_text", "hidden_size_per_layer_input": 256}}, "for each layer"),
    ({"model_type": "qwen3_next", "layer_types": ["linear_attention"] * 3 + ["full_attention"]},
     "layers of the kind 'linear_attention'"),
    ({"model_type": "granitemoehybrid", "layers_block_type": ["mamba", "attention"],
      "num_local_experts": 0}, "layers of the kind 'mamba'"),
    ({"model_type": "jamba", "num_experts": 16}, "num_experts is 16"),
    ({"model_type": "granitemoehybrid", "num_local_experts": 0}, "layer_types is missing"),
    ({"model_type": "llama", "layer_types": ["full_attention", "chunked_attention"]},
     "a layer is 'chunked_attention'"),
    ({"model_type": "llama", "hidden_act": "xielu"}, "the activation 'xielu'"),
])  # fmt: skip
def test_what_a_network_has_that_is_missing_here_is_named(given, what):
    with pytest.raises(ModelError, match=re.escape(what)):
        from_transformers({**SIZES, **given})
