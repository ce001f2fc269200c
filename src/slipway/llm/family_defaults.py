"""What a family's model has where its ``config.json`` is silent, as transformers' classes say it.

A folder's own file always gives the sizes; a `text_config` inside of a larger model leaves out what
its class would say anyway, sizes included (LLaVA 1.5 names no layer count at all).
"""

from __future__ import annotations

from typing import Any

Values = dict[str, Any]

_COLUMNS = (
    "vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
    "num_key_value_heads", "max_position_embeddings", "bos_token_id", "eos_token_id",
)  # fmt: skip
_GLM_ENDS = [151329, 151336, 151338]
_SIZES: dict[str, tuple[Any, ...]] = {
    "llama": (32000, 4096, 11008, 32, 32, None, 2048, 1, 2),
    "mistral": (32000, 4096, 14336, 32, 32, 8, 131072, 1, 2),
    "ministral": (32000, 4096, 14336, 32, 32, 8, 131072, 1, 2),
    "qwen2": (151936, 4096, 22016, 32, 32, 32, 32768, None, None),
    "qwen3": (151936, 4096, 22016, 32, 32, 32, 32768, None, None),
    "phi3": (32064, 3072, 8192, 32, 32, None, 4096, 1, 32000),
    "smollm3": (128256, 2048, 11008, 36, 16, 4, 32768, 128000, 128001),
    "granite": (32000, 4096, 11008, 32, 32, None, 2048, 1, 2),
    "olmo": (50304, 4096, 11008, 32, 32, None, 2048, None, 50279),
    "olmo2": (50304, 4096, 11008, 32, 32, None, 2048, None, 50279),
    "olmo3": (50304, 4096, 11008, 32, 32, None, 2048, None, 50279),
    "seed_oss": (155136, 4096, 27648, 64, 80, 8, 524288, 0, 2),
    "ernie4_5": (103424, 1024, 3072, 18, 16, 2, 131072, 1, 2),
    "helium": (48000, 2560, 7040, 24, 20, 20, 4096, 1, 2),
    "arcee": (32000, 2560, 18432, 32, 32, None, 4096, 128000, 128001),
    "hunyuan_v1_dense": (290943, 4096, 11008, 32, 32, None, 2048, 1, 2),
    "exaone4": (102400, 4096, 16384, 32, 32, 32, 2048, 0, 2),
    "glm": (151552, 4096, 13696, 40, 32, 2, 131072, None, _GLM_ENDS),
    "glm4": (151552, 4096, 13696, 40, 32, 2, 131072, None, _GLM_ENDS),
    "nemotron": (256000, 6144, 24576, 32, 48, None, 4096, 2, 3),
    "stablelm": (50304, 2560, 6912, 32, 32, 32, 4096, 0, 0),
    "starcoder2": (49152, 3072, 12288, 30, 24, 2, 4096, 50256, 50256),
    "phi": (51200, 2048, 8192, 24, 32, None, 2048, 1, 2),
    "cohere": (256000, 8192, 22528, 40, 64, None, 8192, 5, 255001),
    "cohere2": (256000, 8192, 22528, 40, 64, None, 8192, 5, 255001),
    "gpt_neox": (50432, 6144, 24576, 44, 64, None, 2048, 0, 2),
    "gemma": (256000, 3072, 24576, 28, 16, 16, 8192, 2, 1),
    "gemma2": (256000, 2304, 9216, 26, 8, 4, 8192, 2, 1),
    "gemma3_text": (262208, 2304, 9216, 26, 8, 4, 131072, 2, 1),
    "opt": (50272, 768, None, 12, 12, None, 2048, 2, 2),
    "gpt2": (50257, None, None, None, None, None, None, 50256, 50256),
    "gpt_bigcode": (50257, None, None, None, None, None, None, 50256, 50256),
    "gptj": (50400, None, None, None, None, None, None, 50256, 50256),
    "gpt_neo": (50257, 2048, None, None, None, None, 2048, 50256, 50256),
    "falcon": (65024, 4544, None, 32, 71, None, 2048, 11, 11),
    "bloom": (250880, 64, None, 2, 8, None, 2048, 1, 2),
    "mpt": (50368, 2048, None, 24, 16, None, 2048, None, None),
    "persimmon": (262144, 4096, 16384, 36, 64, None, 16384, 1, 2),
    "codegen": (50400, None, None, None, None, None, None, 1, 50256),
    "lfm2": (65536, 2560, 12288, 32, 32, 8, 128000, 1, 2),
    "lfm2_moe": (65536, 2048, 7168, 32, 32, 8, 128000, 1, 2),
    "internlm2": (103168, 4096, 11008, 32, 32, None, 2048, 1, 2),
    "exaone": (102400, 2048, None, 32, 32, None, 2048, 0, 2),
    "hyperclovax": (32000, 4096, 11008, 32, 32, None, 2048, 1, 2),
    "cwm": (128256, 6144, 21504, 64, 48, 8, 131072, 128000, [128001, 128008, 128009]),
    "apertus": (131072, 4096, 14336, 32, 32, None, 65536, 1, 2),
    "granitemoehybrid": (32000, 4096, 11008, 32, 32, None, 2048, 1, 2),
    "mixtral": (32000, 4096, 14336, 32, 32, 8, 131072, 1, 2),
    "qwen2_moe": (151936, 2048, 5632, 24, 16, 16, 32768, None, None),
    "qwen3_moe": (151936, 2048, 6144, 24, 32, 4, 32768, None, None),
    "olmoe": (50304, 2048, 2048, 16, 16, None, 4096, None, 50279),
    "flex_olmo": (100352, 4096, 11008, 32, 32, None, 4096, None, 100257),
    "granitemoe": (32000, 4096, 11008, 32, 32, None, 2048, 1, 2),
    "granitemoeshared": (32000, 4096, 11008, 32, 32, None, 2048, 1, 2),
    "ernie4_5_moe": (103424, 2560, 12288, 28, 20, 4, 131072, 1, 2),
    "hunyuan_v1_moe": (290943, 4096, 11008, 32, 32, None, 2048, 1, 2),
    "dots1": (152064, 4608, 10944, 62, 32, 32, 2048, None, None),
    "glm4_moe": (151552, 4096, 10944, 46, 96, 8, 131072, None, None),
    "ministral3": (131072, 4096, 14336, 34, 32, 8, 262144, 1, 2),
    "jais2": (150272, 3328, 26624, 32, 26, 26, 8192, 0, 150024),
    "vaultgemma": (256000, 2304, 9216, 26, 8, 4, 8192, 2, 1),
}
_GPT2_SIZES = {"n_embd": 768, "n_head": 12, "n_layer": 12, "n_positions": 1024}
_OWN_SIZES: dict[str, Values] = {
    "opt": {"ffn_dim": 3072}, "gpt2": _GPT2_SIZES, "gpt_bigcode": _GPT2_SIZES,
    "gptj": {"n_embd": 4096, "n_head": 16, "n_layer": 28, "n_positions": 2048, "rotary_dim": 64},
    "codegen": {"n_embd": 4096, "n_head": 16, "n_layer": 28, "n_positions": 2048, "rotary_dim": 64},
    "gpt_neo": {"num_heads": 16, "num_layers": 24, "attention_types": [[["global", "local"], 12]]},
}  # fmt: skip

_TIED = {"tie_word_embeddings": True}
_GELU = "gelu_pytorch_tanh"
_CHOICES: dict[str, Values] = {
    "mistral": {"sliding_window": 4096},
    "ministral": {"sliding_window": 4096},
    "qwen2": {"sliding_window": 4096, "max_window_layers": 28},
    "qwen3": {"sliding_window": 4096, "max_window_layers": 28, "head_dim": 128},
    "phi3": {"rms_norm_eps": 1e-5},
    "smollm3": {"rope_theta": 2_000_000.0, **_TIED},
    "olmo2": {"rms_norm_eps": 1e-5},
    "olmo3": {"rms_norm_eps": 1e-5, "rope_theta": 500_000.0, "sliding_window": 4096},
    "seed_oss": {"head_dim": 128},
    "ernie4_5": {"rms_norm_eps": 1e-5, "rope_theta": 500_000.0, "head_dim": 128, **_TIED},
    "helium": {"rms_norm_eps": 1e-8, "rope_theta": 100_000.0, "head_dim": 128},
    "arcee": {"rms_norm_eps": 1e-5, "hidden_act": "relu2"},
    "hunyuan_v1_dense": {"rms_norm_eps": 1e-5},
    "exaone4": {"rms_norm_eps": 1e-5, "sliding_window": 4096, "sliding_window_pattern": 4},
    "glm": {"rms_norm_eps": 1.5625e-07, "head_dim": 128},
    "glm4": {"rms_norm_eps": 1.5625e-07, "head_dim": 128},
    "nemotron": {"norm_eps": 1e-5, "hidden_act": "relu2"},
    "stablelm": {"layer_norm_eps": 1e-5},
    "starcoder2": {"norm_epsilon": 1e-5, "hidden_act": _GELU, **_TIED},
    "phi": {"layer_norm_eps": 1e-5, "hidden_act": "gelu_new"},
    "cohere": {"layer_norm_eps": 1e-5, "rope_theta": 500_000.0, **_TIED},
    "cohere2": {"layer_norm_eps": 1e-5, "sliding_window": 4096, **_TIED},
    "opt": {"activation_function": "relu", **_TIED},
    "gpt2": {"layer_norm_epsilon": 1e-5, "activation_function": "gelu_new", **_TIED},
    "gpt_bigcode": {"layer_norm_epsilon": 1e-5, "activation_function": _GELU, **_TIED},
    "gpt_neox": {"layer_norm_eps": 1e-5, "hidden_act": "gelu"},
    "gptj": {"layer_norm_epsilon": 1e-5, "activation_function": "gelu_new"},
    "gpt_neo": {"layer_norm_epsilon": 1e-5, "activation_function": "gelu_new", "window_size": 256,
                **_TIED},
    "falcon": {"layer_norm_epsilon": 1e-5, "activation": "gelu", **_TIED},
    "bloom": {"layer_norm_epsilon": 1e-5, **_TIED},
    "mpt": {"layer_norm_epsilon": 1e-5, **_TIED},
    "persimmon": {"layer_norm_eps": 1e-5, "hidden_act": "relu2"},
    "codegen": {"layer_norm_epsilon": 1e-5, "activation_function": "gelu_new"},
    "lfm2": {"norm_eps": 1e-5, "rope_theta": 1_000_000.0, **_TIED},
    "lfm2_moe": {"norm_eps": 1e-5, "rope_theta": 1_000_000.0, "norm_topk_prob": True, **_TIED},
    "internlm2": {"rms_norm_eps": 1e-6},
    "exaone": {"layer_norm_epsilon": 1e-5},
    "cwm": {"head_dim": 128, "rms_norm_eps": 1e-5, "sliding_window": 8192, "rope_parameters": {
        "rope_type": "llama3", "rope_theta": 1_000_000.0, "factor": 16.0, "low_freq_factor": 1.0,
        "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}},
    "apertus": {"rms_norm_eps": 1e-5, "hidden_act": "xielu", "rope_parameters": {
        "rope_type": "llama3", "rope_theta": 12_000_000.0, "factor": 8.0, "low_freq_factor": 1.0,
        "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}},
    "granitemoehybrid": {"num_local_experts": 8, "shared_intermediate_size": 1024},
    "mixtral": {"rms_norm_eps": 1e-5, "rope_theta": 1_000_000.0, "num_local_experts": 8,
                "num_experts_per_tok": 2},
    "qwen2_moe": {"sliding_window": 4096, "max_window_layers": 28, "moe_intermediate_size": 1408,
                  "shared_expert_intermediate_size": 5632, "num_experts_per_tok": 4},
    "qwen3_moe": {"sliding_window": 4096, "moe_intermediate_size": 768, "num_experts_per_tok": 8},
    "olmoe": {"rms_norm_eps": 1e-5, "num_experts_per_tok": 8},
    "flex_olmo": {"rope_theta": 500_000.0, "num_experts_per_tok": 5},
    "granitemoe": {"num_experts_per_tok": 2},
    "granitemoeshared": {"num_experts_per_tok": 2},
    "ernie4_5_moe": {"rms_norm_eps": 1e-5, "rope_theta": 500_000.0, "moe_intermediate_size": 1536,
                     "moe_num_shared_experts": 2, "moe_layer_start_index": 1, **_TIED},
    "hunyuan_v1_moe": {"rms_norm_eps": 1e-5},
    "dots1": {"sliding_window": 4096, "max_window_layers": 62, "moe_intermediate_size": 1408},
    "glm4_moe": {"rms_norm_eps": 1e-5, "moe_intermediate_size": 1408, "num_experts_per_tok": 8,
                 "n_shared_experts": 1, "first_k_dense_replace": 1, "norm_topk_prob": True},
    "ministral3": {"head_dim": 128, "rms_norm_eps": 1e-5, "rope_parameters": {
        "rope_type": "yarn", "rope_theta": 1_000_000.0, "factor": 16.0, "beta_fast": 32.0,
        "beta_slow": 1.0, "mscale": 1.0, "mscale_all_dim": 1.0, "llama_4_scaling_beta": 0.1,
        "original_max_position_embeddings": 16384}},
    "jais2": {"layer_norm_eps": 1e-5, "head_dim": 128, "hidden_act": "relu2"},
    "vaultgemma": {"head_dim": 256, "hidden_activation": _GELU, "sliding_window": 4096,
                   "query_pre_attn_scalar": 256, "attn_logit_softcapping": 50.0,
                   "final_logit_softcapping": 30.0, **_TIED},
    "gemma": {"head_dim": 256, "hidden_act": _GELU, **_TIED},
    "gemma2": {"head_dim": 256, "hidden_activation": _GELU, "sliding_window": 4096,
               "query_pre_attn_scalar": 256, "attn_logit_softcapping": 50.0,
               "final_logit_softcapping": 30.0, **_TIED},
    "gemma3_text": {"head_dim": 256, "hidden_activation": _GELU, "sliding_window": 4096,
                    "query_pre_attn_scalar": 256, "rope_theta": 1_000_000.0,
                    "rope_local_base_freq": 10_000.0, **_TIED},
}  # fmt: skip


def usual_sizes(family: str) -> Values:
    """Return the sizes and tokens of a family's class; of an unknown one, none."""
    row = _SIZES.get(family, ())
    made = {key: value for key, value in zip(_COLUMNS, row, strict=False) if value is not None}
    return {**made, **_OWN_SIZES.get(family, {})}


def usual_choices(family: str) -> Values:
    """Return what else a family's class says that the other families' do not."""
    return dict(_CHOICES.get(family, {}))
