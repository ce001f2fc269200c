"""Architectures of the package transformers, small and with random weights, against torch.

Each is exported by torch.export as it stands, imported, compiled and run once: what is tested is
that nothing in its layers is refused or wrong.  The families differ in attention, positions,
gates, norms, masks, state spaces and experts, and so in the operators they come to.
"""

import pytest
import torch
from compare import assert_same

import slipway
from slipway import relay
from slipway.contrib import graph_executor

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

RNG = torch.Generator().manual_seed(0)
IDS = torch.randint(3, 90, (1, 12), generator=RNG)
IMAGE = torch.randn(1, 3, 64, 64, generator=RNG)
SOUND = torch.randn(1, 4000, generator=RNG)

SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
         "intermediate_size": 64}  # fmt: skip
TEXT = {**SMALL, "vocab_size": 100, "max_position_embeddings": 64}
GROUPED = {"num_key_value_heads": 2}
NARROW = {**GROUPED, "head_dim": 8}
PAIRS = {"relative_attention": True, "pos_att_type": ["p2c", "c2p"]}

# By model class: what its configuration has beside TEXT.
TEXTS = {
    "BertForMaskedLM": {}, "RobertaModel": {}, "AlbertModel": {"embedding_size": 16},
    "ElectraModel": {"embedding_size": 16}, "DebertaV2Model": {**PAIRS, "position_buckets": 8},
    "DebertaModel": PAIRS, "MPNetModel": {}, "FNetModel": {"use_tpu_fourier_optimizations": False},
    "ConvBertModel": {"embedding_size": 32}, "SqueezeBertModel": {"embedding_size": 32},
    "MobileBertModel": {"embedding_size": 32, "intra_bottleneck_size": 32},
    "RoFormerModel": {"embedding_size": 32}, "BigBirdModel": {"attention_type": "original_full"},
    "ErnieModel": {}, "YosoModel": {}, "IBertModel": {}, "MegatronBertModel": {},
    "ModernBertModel": {"pad_token_id": 0}, "LlamaForCausalLM": GROUPED,
    "MistralForCausalLM": {**GROUPED, "sliding_window": 4}, "Qwen2ForCausalLM": GROUPED,
    "Qwen3ForCausalLM": NARROW, "GemmaForCausalLM": NARROW,
    "Gemma2ForCausalLM": {**NARROW, "sliding_window": 4},
    "Gemma3ForCausalLM": {**NARROW, "sliding_window": 4}, "PhiForCausalLM": {},
    "Phi3ForCausalLM": {**GROUPED, "pad_token_id": 0}, "StableLmForCausalLM": GROUPED,
    "GPTNeoXForCausalLM": {}, "FalconForCausalLM": {}, "BloomForCausalLM": {},
    "OPTForCausalLM": {"ffn_dim": 64, "word_embed_proj_dim": 32},
    "GPT2LMHeadModel": {"n_embd": 32, "n_layer": 2, "n_head": 4},
    "GPTNeoForCausalLM": {"num_layers": 2, "num_heads": 4, "window_size": 4,
                          "attention_types": [[["global", "local"], 1]]},
    "GPTJForCausalLM": {"n_embd": 32, "n_layer": 2, "n_head": 4, "rotary_dim": 4},
    "CodeGenForCausalLM": {"n_embd": 32, "n_layer": 2, "n_head": 4, "rotary_dim": 4},
    "MambaForCausalLM": {"state_size": 4, "time_step_rank": 4},
    "Mamba2ForCausalLM": {"state_size": 4, "num_heads": 8, "head_dim": 8, "n_groups": 1,
                          "chunk_size": 4},
    "RwkvForCausalLM": {"attention_hidden_size": 32}, "OlmoForCausalLM": {},
    "Olmo2ForCausalLM": {}, "CohereForCausalLM": GROUPED, "GraniteForCausalLM": {},
    "MixtralForCausalLM": {**GROUPED, "num_local_experts": 4},
    "MptForCausalLM": {"d_model": 32, "n_heads": 4, "n_layers": 2},
    "XGLMForCausalLM": {"d_model": 32, "attention_heads": 4, "num_layers": 2, "ffn_dim": 64},
    "JambaForCausalLM": {**GROUPED, "attn_layer_period": 2, "attn_layer_offset": 1,
                         "expert_layer_period": 2, "expert_layer_offset": 1, "num_experts": 2,
                         "use_mamba_kernels": False},
    "Glm4ForCausalLM": {**NARROW, "pad_token_id": 0},
    "SmolLM3ForCausalLM": {**GROUPED, "pad_token_id": 0}, "Lfm2ForCausalLM": GROUPED,
}  # fmt: skip
CONFIGS = {"ForCausalLM": "", "ForMaskedLM": "", "LMHeadModel": "", "Model": ""}
CONFIG_NAMES = {"Gemma3ForCausalLM": "Gemma3TextConfig"}

PAIRED = {"d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
          "decoder_attention_heads": 4, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64,
          "vocab_size": 100, "max_position_embeddings": 64, "pad_token_id": 1,
          "decoder_start_token_id": 2}  # fmt: skip
T5 = {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4, "vocab_size": 100,
      "decoder_start_token_id": 0}  # fmt: skip
TRANSLATORS = {
    **dict.fromkeys(("Bart", "MBart", "Pegasus", "Marian", "BlenderbotSmall", "M2M100"), PAIRED),
    **dict.fromkeys(("T5", "MT5", "UMT5"), T5),
}

VISION = {**SMALL, "image_size": 64, "patch_size": 16}
STAGES = {"hidden_sizes": [8, 16, 32, 32], "depths": [1] * 4}
HEADS = {**STAGES, "num_attention_heads": [1, 2, 4, 4]}
WINDOWS = {"embed_dim": 8, "depths": [2, 2], "num_heads": [1, 2], "window_size": 4,
           "image_size": 64, "patch_size": 4}  # fmt: skip
IMAGES = {
    **dict.fromkeys(
        ("ViT", "DeiT", "Data2VecVision", "Dinov2", "ViTMSN", "IJepa", "Dinov2WithRegisters",
         "DINOv3ViT", "SiglipVision", "CLIPVision", "VitDet", "Aimv2Vision", "MLCDVision",
         "InternVLVision", "PixtralVision"), VISION),
    "Beit": {**VISION, "use_relative_position_bias": True},
    "PvtV2": HEADS, "Pvt": {**HEADS, "image_size": 64}, "Swin": WINDOWS, "Swinv2": WINDOWS,
    "Swin2SR": {**WINDOWS, "patch_size": 1}, "ConvNext": STAGES, "ConvNextV2": STAGES,
    "ResNet": {**STAGES, "embedding_size": 8},
    "RegNet": {**STAGES, "embedding_size": 8, "groups_width": 8},
    "MobileNetV1": {}, "MobileNetV2": {}, "EfficientNet": {}, "TextNet": {},
    "MobileViT": {"hidden_sizes": [16, 24, 32], "image_size": 64, "patch_size": 2,
                  "neck_hidden_sizes": [8, 8, 16, 16, 16, 24, 64]},
    "MobileViTV2": {"image_size": 64, "patch_size": 2},
    "Levit": {"hidden_sizes": [32, 48, 64], "num_attention_heads": [2, 3, 4], "image_size": 64,
              "depths": [1] * 3, "key_dim": [8] * 3},
    "PoolFormer": STAGES, "Segformer": HEADS,
    "FocalNet": {"embed_dim": 8, "depths": [1, 1], "focal_levels": [2, 2], "image_size": 64,
                 "focal_windows": [3, 3], "patch_size": 4},
    "SwiftFormer": {"embed_dims": [16, 24, 32, 48], "depths": [1] * 4},
}  # fmt: skip

SPEECH = {**SMALL, "vocab_size": 40, "conv_dim": [16] * 7, "num_conv_pos_embeddings": 16,
          "num_conv_pos_embedding_groups": 4}  # fmt: skip
LONG = {**SPEECH, "conv_dim": [16] * 13, "squeeze_factor": 2}
SOUNDS = {
    **dict.fromkeys(("Wav2Vec2", "Hubert", "WavLM", "UniSpeech", "UniSpeechSat", "Data2VecAudio",
                     "Wav2Vec2Conformer"), SPEECH),
    "SEW": LONG, "SEWD": LONG,
}  # fmt: skip


def made(model, config, options):
    transformers = pytest.importorskip("transformers")  # a second, for every worker of a run
    return getattr(transformers, model)(getattr(transformers, config)(**options))


def text(name):
    config = CONFIG_NAMES.get(name)
    for ending in CONFIGS:
        config = config or (name.removesuffix(ending) + "Config" if name.endswith(ending) else None)
    return made(name, config, {**TEXT, **TEXTS[name]}), {"input_ids": IDS}


def translator(name):
    model = "MarianMTModel" if name == "Marian" else f"{name}ForConditionalGeneration"
    inputs = {"input_ids": IDS, "decoder_input_ids": IDS[:, :5]}
    return made(model, f"{name}Config", TRANSLATORS[name]), inputs


def image(name):
    return made(f"{name}Model", f"{name}Config", IMAGES[name]), {"pixel_values": IMAGE}


def sound(name):
    return made(f"{name}Model", f"{name}Config", SOUNDS[name]), {"input_values": SOUND}


FAMILIES = {text: TEXTS, translator: TRANSLATORS, image: IMAGES, sound: SOUNDS}
CASES = [(family, name) for family, names in FAMILIES.items() for name in names]


class Result(torch.nn.Module):
    """A model with tensors in and the most telling tensor out."""

    def __init__(self, model, names):
        super().__init__()
        self.model, self.names = model, names

    def forward(self, *inputs):
        found = self.model(**dict(zip(self.names, inputs, strict=True)), return_dict=True)
        for key in ("logits", "last_hidden_state", "reconstruction"):
            if getattr(found, key, None) is not None:
                return getattr(found, key)
        return next(value for value in found.values() if isinstance(value, torch.Tensor))


@pytest.mark.parametrize(("family", "name"), CASES, ids=[name for _, name in CASES])
def test_an_architecture_agrees_with_torch(family, name):
    torch.manual_seed(0)
    model, given = family(name)
    model = model.eval().float()
    if hasattr(model.config, "use_cache"):
        model.config.use_cache = False
    module, inputs = Result(model, list(given)).eval(), tuple(given.values())
    with torch.no_grad():
        wanted = module(*inputs)
    mod, params = relay.frontend.from_pytorch(torch.export.export(module, inputs, strict=False))
    library = relay.build(mod, target="llvm", params=params)
    run = graph_executor.GraphModule(library["default"](slipway.cpu(0)))
    names = [var.name_hint for var in mod["main"].params]
    run.run(**{key: value.numpy() for key, value in zip(names, inputs, strict=True)})
    assert_same([run.get_output(0).numpy()], [wanted.numpy()])
