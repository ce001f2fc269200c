"""The tenth list of the benchmark `unseen`: torchvision's and transformers' that no other names.

Used where torch and the packages are; needs nothing of Slipway.
"""

from benchmarks._unseen.networks import image, sound, tokens, torchvision, transformer

SIZES = {
    "vocab_size": 1000, "hidden_size": 384, "num_hidden_layers": 4, "num_attention_heads": 6,
    "intermediate_size": 1536,
}  # fmt: skip
VISION = {key: size for key, size in SIZES.items() if key != "vocab_size"}
DECODER = {"decoder_layers": 1, "decoder_attention_heads": 6, "decoder_ffn_dim": 1536}


def video(frames, size):
    return lambda torch: (torch.rand(1, 3, frames, size, size) * 2 - 1,)


def encoder_of(config, model, **sizes):
    """The encoder alone of a model that has a decoder too."""
    return lambda torch: transformer(config, model, **sizes)(torch).inner.get_encoder()


NETWORKS = {
    "efficientnet_b1": (torchvision("efficientnet_b1"), image(128)),
    "regnet_y_800mf": (torchvision("regnet_y_800mf"), image(128)),
    "shufflenet_v2_x2_0": (torchvision("shufflenet_v2_x2_0"), image(128)),
    "densenet169": (torchvision("densenet169"), image(96)),
    "fcn_resnet50": (torchvision("fcn_resnet50", weights_backbone=None), image(96)),
    "vit_b_32": (torchvision("vit_b_32"), image(224)),
    "mc3_18": (torchvision("mc3_18"), video(8, 56)),
    "swin3d_t": (torchvision("swin3d_t"), video(4, 64)),
    "deberta": (transformer("DebertaConfig", "DebertaModel", **SIZES), tokens(96)),
    "clip_text": (transformer("CLIPTextConfig", "CLIPTextModel", **SIZES), tokens(77)),
    "clip_vision": (
        transformer("CLIPVisionConfig", "CLIPVisionModel", patch_size=16, **VISION), image(224),
    ),
    "beit": (transformer("BeitConfig", "BeitModel", **VISION), image(224)),
    "vit_mae": (
        transformer("ViTMAEConfig", "ViTMAEModel", mask_ratio=0.0, **VISION),
        lambda torch: (torch.rand(1, 3, 224, 224) * 2 - 1, torch.rand(1, 196)),
    ),
    "siglip_vision": (
        transformer("SiglipVisionConfig", "SiglipVisionModel", patch_size=16, **VISION),
        image(224),
    ),
    "t5_encoder": (
        transformer("T5Config", "T5EncoderModel", vocab_size=1000, d_model=384, d_kv=64, d_ff=1024,
                    num_layers=4, num_heads=6, feed_forward_proj="gated-gelu"),
        tokens(100),
    ),
    "bart_encoder": (
        encoder_of("BartConfig", "BartModel", vocab_size=1000, d_model=384, encoder_layers=4,
                   encoder_attention_heads=6, encoder_ffn_dim=1536, **DECODER),
        tokens(120),
    ),
    "wav2vec2": (
        transformer("Wav2Vec2Config", "Wav2Vec2Model", conv_dim=(128,) * 7, **VISION), sound(16000),
    ),
    "data2vec_audio": (
        transformer("Data2VecAudioConfig", "Data2VecAudioModel", conv_dim=(128,) * 7, **VISION),
        sound(16000),
    ),
    "swin2sr": (
        transformer("Swin2SRConfig", "Swin2SRForImageSuperResolution", "reconstruction",
                    embed_dim=60, depths=[4, 4], num_heads=[6, 6]),
        image(64),
    ),
    "mgp_str": (
        transformer("MgpstrConfig", "MgpstrModel", num_hidden_layers=4, hidden_size=384,
                    num_attention_heads=6),
        lambda torch: (torch.rand(1, 3, 32, 128) * 2 - 1,),
    ),
    "focalnet": (
        transformer("FocalNetConfig", "FocalNetModel", embed_dim=48, depths=[1, 1, 2, 1]),
        image(128),
    ),
}  # fmt: skip
