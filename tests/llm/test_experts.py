"""Mixtures of experts: against a decoder in NumPy, GGUF files, transformers."""

import numpy as np
import pytest
from decoder import logits, random_weights
from gguf_writer import llama_metadata, llama_tensors, write
from tests.llm.test_network import ENDS, SIZES, loaded, peer_of, source

from slipway.errors import ModelError
from slipway.llm.gguf_file import GGUFFile
from slipway.llm.gguf_model import model_of
from slipway.llm.model import Source, compile_model
from slipway.llm.transformers_config import from_transformers
from slipway.relay.ops.packed.block_formats import decode, encode

FAMILIES = {
    "mixtral": {"num_local_experts": 5, "num_experts_per_tok": 3, "sliding_window": 4},
    "qwen3_moe": {"num_experts": 6, "num_experts_per_tok": 2, "moe_intermediate_size": 24,
                  "head_dim": 8, "norm_topk_prob": True, "mlp_only_layers": [1]},
}  # fmt: skip
PEERS = [
    ("mixtral", FAMILIES["mixtral"]),
    ("qwen2_moe", {"num_experts": 6, "num_experts_per_tok": 2, "moe_intermediate_size": 24,
                   "shared_expert_intermediate_size": 40, "decoder_sparse_step": 2}),
    ("qwen3_moe", FAMILIES["qwen3_moe"]),
    ("olmoe", {"num_experts": 6, "num_experts_per_tok": 2, "clip_qkv": 0.5}),
    ("flex_olmo", {"num_experts": 6, "num_experts_per_tok": 2}),
    ("granitemoe", {"num_local_experts": 6, "num_experts_per_tok": 2, "attention_multiplier": 0.2,
                    "residual_multiplier": 0.4, "logits_scaling": 5.0}),
    ("granitemoeshared", {"num_local_experts": 6, "num_experts_per_tok": 2,
                          "shared_intermediate_size": 40}),
    ("granitemoehybrid", {"num_local_experts": 6, "num_experts_per_tok": 2,
                          "shared_intermediate_size": 40, "mamba_n_heads": 8,
                          "layer_types": ["attention"] * 2}),
    ("ernie4_5_moe", {"moe_num_experts": 6, "moe_k": 2, "moe_intermediate_size": 24}),
    ("ernie4_5_moe", {"moe_num_experts": 6, "moe_k": 2, "moe_intermediate_size": 24,
                      "moe_num_shared_experts": 0, "use_bias": True, "moe_layer_start_index": 0}),
    ("hunyuan_v1_moe", {"num_experts": 6, "moe_topk": 2, "head_dim": 8}),
    ("dots1", {"n_routed_experts": 6, "n_shared_experts": 2, "num_experts_per_tok": 3,
               "moe_intermediate_size": 24, "first_k_dense_replace": 1, "norm_topk_prob": True,
               "routed_scaling_factor": 2.5, "head_dim": 8}),
    ("lfm2_moe", {"num_experts": 6, "num_experts_per_tok": 2, "moe_intermediate_size": 24,
                  "num_dense_layers": 1, "layer_types": ["full_attention", "conv"]}),
    ("glm4_moe", {"n_routed_experts": 6, "num_experts_per_tok": 2, "moe_intermediate_size": 24,
                  "head_dim": 8, "use_qk_norm": True, "routed_scaling_factor": 1.5}),
]  # fmt: skip


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family(family):
    given, weights = source(family, FAMILIES[family], {"normed": family == "qwen3_moe"})
    model = loaded(given, rows=6)
    tokens = np.random.default_rng(1).integers(0, 50, 21)
    want = logits(given.config, weights, tokens)
    done = 0
    for count in (5, 1, 1, 11, 3):
        found = model.feed(tokens[done : done + count])
        done += count
        np.testing.assert_allclose(found, want[done - 1], rtol=0, atol=3e-5 * np.abs(want).max())


@pytest.mark.long
@pytest.mark.parametrize(("family", "more"), PEERS)
def test_against_transformers(family, more, tmp_path):
    """The weights of the running model, and those of its files, which have other names."""
    torch, peer, given = peer_of(family, **{**SIZES, **more, **ENDS})
    tokens = torch.randint(3, 50, (1, 13))
    with torch.no_grad():
        want = peer(tokens).logits[0].numpy()
    peer.save_pretrained(tmp_path)
    for one in (given, Source.read(tmp_path)):
        model = loaded(one, rows=8)
        for first, last in ((0, 11), (11, 12), (12, 13)):
            found = model.feed(tokens[0, first:last].tolist())
            atol = 1e-5 * np.abs(want).max()
            np.testing.assert_allclose(found, want[last - 1], rtol=0, atol=atol)


def _of_gguf(tmp_path, apart, form="q8_0"):
    """A Mixtral as a file of Llamas, its experts stacked or (as older files) each a tensor."""
    sizes = {**SIZES, "intermediate_size": 64, "num_local_experts": 4, "num_experts_per_tok": 2}
    config = from_transformers({"model_type": "mixtral", **sizes})
    weights = random_weights(config, np.random.default_rng(5))
    exact = {
        name: decode(form, encode(form, value)) if ".experts." in name else value
        for name, value in weights.items()
    }
    plain = {n: v for n, v in weights.items() if ".mlp." not in n}
    tensors = llama_tensors(plain, config)
    for i in range(len(config.layers)):
        at = f"model.layers.{i}.mlp."
        tensors[f"blk.{i}.ffn_gate_inp.weight"] = weights[at + "gate.weight"]
        for name in ("gate", "up", "down"):
            each = [encode(form, weights[f"{at}experts.{e}.{name}_proj.weight"]) for e in range(4)]
            if apart:
                tensors |= {f"blk.{i}.ffn_{name}.{e}.weight": (form, r) for e, r in enumerate(each)}
            else:
                tensors[f"blk.{i}.ffn_{name}_exps.weight"] = (form, np.stack(each))
    metadata = llama_metadata(config, ["a"] * 50, [1] * 50)
    metadata |= {"llama.expert_count": 4, "llama.expert_used_count": 2,
                 "llama.rope.freq_base": 1e6}  # fmt: skip
    write(tmp_path / "x.gguf", metadata, tensors)
    return exact, config


@pytest.mark.parametrize("apart", [False, True])
def test_experts_in_blocks(apart, tmp_path):
    exact, config = _of_gguf(tmp_path, apart)
    made, weights, _ = model_of(GGUFFile(tmp_path / "x.gguf"))
    assert made.experts == config.experts
    model = loaded(Source("x", made, weights, None), rows=4)
    tokens = [1, 7, 8, 4, 9, 30, 11]
    want = logits(config, exact, np.array(tokens))
    for first, last in ((0, 5), (5, 6), (6, 7)):
        found = model.feed(tokens[first:last])
        assert np.abs(found - want[last - 1]).max() < 0.03 * np.abs(want).max()


def test_floats_are_quantised():
    given, weights = source("mixtral", {**FAMILIES["mixtral"], "intermediate_size": 64})
    tokens = np.arange(9)
    want = logits(given.config, weights, tokens)[-1]
    found = loaded(given, rows=9, quantise="q8_0").feed(tokens)
    assert 0 < np.abs(found - want).max() < 0.05 * np.abs(want).max()


@pytest.mark.parametrize(
    ("family", "wrong", "problem"),
    [("mixtral", {"num_experts_per_tok": 9}, "9 of 8 experts are used"),
     ("mixtral", {"num_local_experts": "8"}, "num_local_experts is '8'"),
     ("glm4_moe", {"n_group": 4}, "n_group is 4.*does not choose experts by groups"),
     ("qwen3_moe", {"mlp_layer_types": ["sparse"]}, "mlp_layer_types has 1 entries for 2"),
     ("hunyuan_v1_moe", {"num_experts": 4, "moe_topk": [1, 2]}, r"moe_topk is \[1, 2\]")],
)  # fmt: skip
def test_what_is_wrong_is_named(family, wrong, problem):
    with pytest.raises(ModelError, match=problem):
        from_transformers({"model_type": family, **SIZES, **wrong})


def test_experts_of_another_shape_are_named():
    given, weights = source("mixtral", {**FAMILIES["mixtral"]})
    wrong = {n.replace(".mlp.", ".block_sparse_moe."): v for n, v in weights.items()}
    wrong["model.layers.0.block_sparse_moe.experts.2.up_proj.weight"] = np.zeros((64, 3))
    from slipway.llm.weights import Weights

    with pytest.raises(ModelError, match=r"experts.2.up_proj.weight' has the shape \(64, 3\)"):
        compile_model(Source("x", given.config, Weights.of(wrong), None), "llvm")
