"""What the networks of the families of transformers do differently, and how their files name it.

`FAMILIES` has the fields of `ModelConfig` that a family sets, by its ``model_type``; of each pair
of `names` the first stands here for the second in the files, one after the other.
"""

from __future__ import annotations

from typing import Any

_OF_GPT2 = (
    ("", "transformer."),  # which older files leave out
    ("model.layers.", "h."), ("model.norm.", "ln_f."),
    ("model.embed_tokens.", "wte."), ("model.embed_positions.", "wpe."),
    (".input_layernorm.", ".ln_1."), (".post_attention_layernorm.", ".ln_2."),
    (".self_attn.qkv_proj.", ".attn.c_attn."), (".self_attn.o_proj.", ".attn.c_proj."),
    (".mlp.up_proj.", ".mlp.c_fc."), (".mlp.down_proj.", ".mlp.c_proj."),
)  # fmt: skip
_OF_GRANITE = (  # its experts' matrices, as one weight each, and those of the one for all
    (".mlp.experts.gate_up_proj", ".block_sparse_moe.input_linear.weight"),
    (".mlp.experts.down_proj", ".block_sparse_moe.output_linear.weight"),
    (".mlp.gate.", ".block_sparse_moe.router.layer."), (".mlp.gate.", ".block_sparse_moe.router."),
    (".mlp.", ".block_sparse_moe."),
    (".mlp.shared_experts.gate_up_proj.", ".shared_mlp.input_linear."),
    (".mlp.shared_experts.down_proj.", ".shared_mlp.output_linear."),
)  # fmt: skip
_OF_LFM2 = (
    (".input_layernorm.", ".operator_norm."), (".post_attention_layernorm.", ".ffn_norm."),
    (".gate.e_score_correction_bias", ".expert_bias"), (".mlp.", ".feed_forward."),
    (".gate_proj.", ".w1."), (".up_proj.", ".w3."), (".down_proj.", ".w2."),
    (".self_attn.o_proj.", ".self_attn.out_proj."), ("model.norm.", "model.embedding_norm."),
    (".q_norm.", ".q_layernorm."), (".k_norm.", ".k_layernorm."),
)  # fmt: skip
_NORMS_OF_HEADS = ((".q_norm.", ".q_layernorm."), (".k_norm.", ".k_layernorm."))
_OF_FALCON = (
    ("", "transformer."), (".up_proj.", ".dense_h_to_4h."), (".down_proj.", ".dense_4h_to_h."),
    ("model.layers.", "h."), ("model.norm.", "ln_f."),
    ("model.embed_tokens.", "word_embeddings."),
    (".self_attn.qkv_proj.", ".self_attention.query_key_value."),
    (".self_attn.o_proj.", ".self_attention.dense."),
)  # fmt: skip
FAMILIES: dict[str, dict[str, Any]] = {
    "llama": {},
    "mistral": {},
    "qwen2": {},
    "qwen3": {},
    "phi3": {},
    "smollm3": {},
    "granite": {},
    "olmo2": {"norms_after": True, "joint_norms": True},
    "olmo3": {"norms_after": True, "joint_norms": True},
    "ministral": {},
    "seed_oss": {},
    "ernie4_5": {},
    "helium": {},
    "arcee": {"gated": False},
    "hunyuan_v1_dense": {"norms_behind_rope": True,
                         "names": ((".q_norm.", ".query_layernorm."),
                                   (".k_norm.", ".key_layernorm."))},
    "exaone4": {"norms_after": True},
    "glm": {},
    "glm4": {"sandwich": True,
             "names": ((".pre_feedforward_layernorm.", ".post_attention_layernorm."),
                       (".post_attention_layernorm.", ".post_self_attn_layernorm."),
                       (".post_feedforward_layernorm.", ".post_mlp_layernorm."))},
    "nemotron": {"centred": True, "gated": False, "norm_offset": 1.0},
    "olmo": {"centred": True, "plain_norms": True, "epsilon": 1e-5},
    "stablelm": {"centred": True},
    "starcoder2": {"centred": True, "gated": False,
                   "names": ((".up_proj.", ".c_fc."), (".down_proj.", ".c_proj."))},
    "phi": {"centred": True, "gated": False, "parallel": True,
            "names": ((".o_proj.", ".dense."), (".up_proj.", ".fc1."), (".down_proj.", ".fc2."),
                      ("model.norm.", "model.final_layernorm."), *_NORMS_OF_HEADS)},
    "cohere": {"centred": True, "parallel": True},
    "cohere2": {"centred": True, "parallel": True},
    "opt": {"centred": True, "gated": False, "learned_positions": True, "position_offset": 2,
            "epsilon": 1e-5,
            "names": (("model.", "model.decoder."), ("model.norm.", "model.final_layer_norm."),
                      (".input_layernorm.", ".self_attn_layer_norm."),
                      (".post_attention_layernorm.", ".final_layer_norm."),
                      (".o_proj.", ".out_proj."), (".mlp.up_proj.", ".fc1."),
                      (".mlp.down_proj.", ".fc2."))},
    "gpt_bigcode": {"centred": True, "gated": False, "learned_positions": True, "names": _OF_GPT2},
    "gpt_neox": {"centred": True, "gated": False, "heads_apart": True,
                 "names": (("model.layers.", "gpt_neox.layers."),
                           ("model.embed_tokens.", "gpt_neox.embed_in."),
                           ("model.norm.", "gpt_neox.final_layer_norm."),
                           ("lm_head.", "embed_out."),
                           (".self_attn.qkv_proj.", ".attention.query_key_value."),
                           (".self_attn.o_proj.", ".attention.dense."),
                           (".up_proj.", ".dense_h_to_4h."), (".down_proj.", ".dense_4h_to_h."))},
    "gpt2": {"centred": True, "gated": False, "transposed": True, "learned_positions": True,
             "names": _OF_GPT2},
    "gptj": {"centred": True, "gated": False, "parallel": True, "names": (
        *_OF_GPT2[:7], (".self_attn.", ".attn."), (".o_proj.", ".out_proj."),
        (".mlp.up_proj.", ".mlp.fc_in."), (".mlp.down_proj.", ".mlp.fc_out."),
    )},
    "gpt_neo": {"centred": True, "gated": False, "learned_positions": True, "attention_scale": 1.0,
                "names": ((".attn.", ".attn.attention."), *_OF_GPT2, (".self_attn.", ".attn."),
                          (".o_proj.", ".out_proj."))},
    "falcon": {"centred": True, "gated": False, "names": (
        *_OF_FALCON, (".input_layernorm.", ".ln_attn."), (".post_attention_layernorm.", ".ln_mlp."),
    )},
    "bloom": {"centred": True, "gated": False, "heads_apart": True, "names": (
        *_OF_FALCON, ("model.embed_norm.", "word_embeddings_layernorm."),
    )},
    "mpt": {"centred": True, "gated": False, "names": (
        ("", "transformer."), ("model.layers.", "blocks."), ("model.norm.", "norm_f."),
        ("model.embed_tokens.", "wte."), (".input_layernorm.", ".norm_1."),
        (".post_attention_layernorm.", ".norm_2."), (".self_attn.qkv_proj.", ".attn.Wqkv."),
        (".self_attn.o_proj.", ".attn.out_proj."), (".mlp.", ".ffn."),
    )},
    "persimmon": {"centred": True, "gated": False, "heads_apart": True, "names": (
        (".self_attn.qkv_proj.", ".self_attn.query_key_value."),
        (".self_attn.o_proj.", ".self_attn.dense."), ("model.norm.", "model.final_layernorm."),
        (".up_proj.", ".dense_h_to_4h."), (".down_proj.", ".dense_4h_to_h."), *_NORMS_OF_HEADS,
    )},
    "codegen": {"centred": True, "gated": False, "parallel": True, "joint_parts": 4, "names": (
        *_OF_GPT2[:7], (".self_attn.", ".attn."), (".o_proj.", ".out_proj."),
        (".mlp.up_proj.", ".mlp.fc_in."), (".mlp.down_proj.", ".mlp.fc_out."),
    )},
    "internlm2": {"heads_apart": True, "names": (
        ("model.embed_tokens.", "model.tok_embeddings."), ("lm_head.", "output."),
        (".self_attn.qkv_proj.", ".attention.wqkv."), (".self_attn.o_proj.", ".attention.wo."),
        (".mlp.gate_proj.", ".feed_forward.w1."), (".mlp.up_proj.", ".feed_forward.w3."),
        (".mlp.down_proj.", ".feed_forward.w2."), (".input_layernorm.", ".attention_norm."),
        (".post_attention_layernorm.", ".ffn_norm."),
    )},
    "exaone": {"names": (
        ("", "transformer."), ("model.layers.", "h."), ("model.norm.", "ln_f."),
        ("model.embed_tokens.", "wte."), (".self_attn.", ".attn.attention."),
        (".o_proj.", ".out_proj."), (".input_layernorm.", ".ln_1."),
        (".post_attention_layernorm.", ".ln_2."), (".mlp.gate_proj.", ".mlp.c_fc_0."),
        (".mlp.up_proj.", ".mlp.c_fc_1."), (".mlp.down_proj.", ".mlp.c_proj."),
    )},
    "lfm2": {"names": _OF_LFM2},
    "lfm2_moe": {"names": _OF_LFM2},
    "hyperclovax": {"names": (
        (".pre_feedforward_layernorm.", ".post_attention_layernorm."),
        (".post_attention_layernorm.", ".post_norm1."),
        (".post_feedforward_layernorm.", ".post_norm2."),
    )},
    "cwm": {},
    "apertus": {"gated": False,
                "names": ((".input_layernorm.", ".attention_layernorm."),
                          (".post_attention_layernorm.", ".feedforward_layernorm."))},
    "granitemoehybrid": {"names": ((".mlp.gate_up_proj.", ".shared_mlp.input_linear."),
                                   (".mlp.down_proj.", ".shared_mlp.output_linear."))},
    "mixtral": {"names": ((".mlp.", ".block_sparse_moe."), (".gate_proj.", ".w1."),
                          (".up_proj.", ".w3."), (".down_proj.", ".w2."))},
    "qwen2_moe": {"names": ((".shared_experts.", ".shared_expert."),)},
    "qwen3_moe": {},
    "olmoe": {"joint_norms": True},
    "flex_olmo": {"norms_after": True, "joint_norms": True},
    "granitemoe": {"names": _OF_GRANITE},
    "granitemoeshared": {"names": _OF_GRANITE},
    "ernie4_5_moe": {"names": ((".gate.e_score", ".gate.moe_statics.e_score"),
                               (".mlp.gate.e_score", ".mlp.moe_statics.e_score"))},
    "hunyuan_v1_moe": {"norms_behind_rope": True,
                       "names": ((".q_norm.", ".query_layernorm."), (".k_norm.", ".key_layernorm."),
                                 (".shared_experts.", ".shared_mlp."), (".gate.", ".gate.wg."))},
    "dots1": {},
    "glm4_moe": {},
    "ministral3": {},
    "jais2": {"centred": True, "gated": False},
    "vaultgemma": {"norm_offset": 1.0,
                   "names": ((".post_attention_layernorm.", ".pre_feedforward_layernorm."),)},
    "gemma": {"norm_offset": 1.0},
    "gemma2": {"norm_offset": 1.0, "sandwich": True},
    "gemma3_text": {"norm_offset": 1.0, "sandwich": True},
}  # fmt: skip
# Pairs are neighbours.
INTERLEAVED = (
    "cohere",
    "cohere2",
    "glm",
    "glm4",
    "ernie4_5",
    "helium",
    "gptj",
    "ernie4_5_moe",
    "codegen",
)
ROTATED_PARTS = {
    "stablelm": 0.25,
    "phi": 0.5,
    "nemotron": 0.5,
    "glm": 0.5,
    "glm4": 0.5,
    "glm4_moe": 0.5,
}
SLIDES = (  # the other families' networks do not look at a sliding_window
    "mistral", "ministral", "qwen2", "qwen3", "phi3", "smollm3", "starcoder2", "gemma2",
    "gemma3_text", "olmo3", "cohere2", "exaone4", "cwm", "ministral3", "vaultgemma", "gpt_neo",
    "mixtral", "qwen2_moe", "qwen3_moe", "dots1",
)  # fmt: skip
OF_CONVOLUTIONS = ("lfm2", "lfm2_moe")  # some of whose layers have one for attention
WHEN_SAID = ("qwen2", "qwen3", "smollm3", "qwen2_moe", "qwen3_moe")  # by use_sliding_window
NO_ROPE = ("gpt2", "gpt_bigcode", "gpt_neo", "opt", "bloom", "mpt")
OWN_NORMS = ("stablelm", "cohere", "cohere2")  # the families whose files have that option
OF_HEADS = {  # option of a file that norms have weights for each head -> the norms' names in it
    "qk_layernorm": ("q_layernorm.norms", "k_layernorm.norms"),
    "use_qk_norm": ("q_norm", "k_norm"),
}
FALCON = {"intermediate_size": "ffn_hidden_size", "hidden_act": "activation"}
GPT_NEO = {"num_attention_heads": "num_heads", "num_hidden_layers": "num_layers",
           "hidden_act": "activation_function", "sliding_window": "window_size"}  # fmt: skip
BLOOM = {"hidden_size": "n_embed", "num_hidden_layers": "n_layer", "num_attention_heads": "n_head",
         "max_position_embeddings": "seq_length"}  # fmt: skip
MPT = {"hidden_size": "d_model", "num_hidden_layers": "n_layers", "num_attention_heads": "n_heads",
       "max_position_embeddings": "max_seq_len"}  # fmt: skip
EXAONE = {"num_hidden_layers": "num_layers", "hidden_act": "activation_function"}
OPT = {"intermediate_size": "ffn_dim", "hidden_act": "activation_function"}
GPT2 = {"hidden_size": "n_embd", "num_attention_heads": "n_head", "num_hidden_layers": "n_layer",
         "max_position_embeddings": "n_positions", "intermediate_size": "n_inner",
         "hidden_act": "activation_function"}  # fmt: skip
