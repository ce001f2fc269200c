"""The third list of the benchmark `unseen`, made when the compiler had been fitted to two others.

Used where torch and the packages are; needs nothing of Slipway.
"""

from benchmarks._unseen.networks import image, timm, transformer


def segmentation(name, encoder="resnet18"):
    """A network of the package segmentation_models_pytorch."""

    def make(torch):
        import segmentation_models_pytorch as package

        return getattr(package, name)(encoder, encoder_weights=None, classes=3)

    return make


def diffusers(name, field="sample", **sizes):
    """A network of the package diffusers; the result is one field of what it returns."""

    def make(torch):
        import diffusers as package

        inner = getattr(package, name)(**sizes)

        class Only(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = inner

            def forward(self, *given):
                return getattr(self.inner(*given, return_dict=True), field)

        return Only()

    return make


def series(length, channels):
    return lambda torch: (torch.rand(1, length, channels) * 2 - 1,)


BLOCKS = {
    "hidden_size": 128, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 256,
}  # fmt: skip

NETWORKS = {
    "shvit_s1": (timm("shvit_s1"), image(128)),
    "fasternet_t0": (timm("fasternet_t0"), image(96)),
    "repvit_m0_9": (timm("repvit_m0_9"), image(96)),
    "efficientvit_m0": (timm("efficientvit_m0"), image(224)),
    "smp_unet": (segmentation("Unet"), image(64)),
    "patchtsmixer": (
        transformer("PatchTSMixerConfig", "PatchTSMixerModel", context_length=64, patch_length=8,
                    num_input_channels=3, d_model=32, num_layers=3),
        series(64, 3),
    ),
    "nystromformer": (
        transformer("NystromformerConfig", "NystromformerModel", vocab_size=1000,
                    num_landmarks=8, segment_means_seq_len=64, **BLOCKS),
        lambda torch: (torch.randint(5, 1000, (1, 64)),),
    ),
    "unet2d": (
        diffusers("UNet2DModel", sample_size=16, block_out_channels=(32, 64), layers_per_block=1,
                  norm_num_groups=8, down_block_types=("DownBlock2D", "AttnDownBlock2D"),
                  up_block_types=("AttnUpBlock2D", "UpBlock2D"), attention_head_dim=8),
        lambda torch: (torch.rand(1, 3, 16, 16) - 0.5, torch.tensor([7])),
    ),
    "hiera_tiny": (timm("hiera_tiny_224"), image(224)),
    "mvitv2_tiny": (timm("mvitv2_tiny"), image(224)),
    "cait_xxs24": (timm("cait_xxs24_224"), image(224)),
    "tnt_s": (timm("tnt_s_legacy_patch16_224"), image(224)),
    "eva02_tiny": (timm("eva02_tiny_patch14_224"), image(224)),
    "coatnet_pico": (timm("coatnet_pico_rw_224"), image(224)),
    "botnet26t": (timm("botnet26t_256"), image(256)),
    "bat_resnext26ts": (timm("bat_resnext26ts"), image(256)),
    "cs3darknet_s": (timm("cs3darknet_s"), image(96)),
    "nf_regnet_b0": (timm("nf_regnet_b0"), image(96)),
    "gcresnext26ts": (timm("gcresnext26ts"), image(96)),
    "caformer_s18": (timm("caformer_s18"), image(96)),
    "dpn48b": (timm("dpn48b"), image(96)),
    "rdnet_tiny": (timm("rdnet_tiny"), image(96)),
    "tiny_vit_5m": (timm("tiny_vit_5m_224"), image(224)),
    "efficientformerv2_s0": (timm("efficientformerv2_s0"), image(224)),
    "smp_fpn": (segmentation("FPN"), image(64)),
    "smp_pspnet": (segmentation("PSPNet"), image(96)),
    "autoencoder_kl": (
        diffusers("AutoencoderKL", block_out_channels=(32, 64), norm_num_groups=8,
                  down_block_types=("DownEncoderBlock2D",) * 2,
                  up_block_types=("UpDecoderBlock2D",) * 2),
        image(32),
    ),
    "patchtst": (
        transformer("PatchTSTConfig", "PatchTSTModel", context_length=64, patch_length=8,
                    patch_stride=8, num_input_channels=3, d_model=32, num_hidden_layers=3),
        series(64, 3),
    ),
    "audio_spectrogram": (
        transformer("ASTConfig", "ASTModel", max_length=128, num_mel_bins=64, **BLOCKS),
        series(128, 64),
    ),
    "cvt": (
        transformer("CvtConfig", "CvtModel", embed_dim=[16, 32, 64], depth=[1, 2, 3],
                    num_heads=[1, 2, 4]),
        image(64),
    ),
    "glpn": (
        transformer("GLPNConfig", "GLPNForDepthEstimation", "predicted_depth",
                    hidden_sizes=[16, 32, 64, 128], num_attention_heads=[1, 2, 4, 8],
                    depths=[1] * 4, decoder_hidden_size=16),
        image(64),
    ),
    "dpt": (
        transformer("DPTConfig", "DPTForDepthEstimation", "predicted_depth", image_size=96,
                    backbone_out_indices=[0, 1, 2, 3], neck_hidden_sizes=[16, 32, 48, 64],
                    fusion_hidden_size=32, **{**BLOCKS, "num_hidden_layers": 4}),
        image(96),
    ),
    "speech_to_text": (
        lambda torch: transformer("Speech2TextConfig", "Speech2TextModel", vocab_size=1000,
                                  d_model=64, encoder_layers=2, decoder_layers=1,
                                  encoder_attention_heads=4, decoder_attention_heads=4,
                                  encoder_ffn_dim=128, decoder_ffn_dim=128)(torch).inner.encoder,
        series(96, 80),
    ),
    "encodec": (
        lambda torch: transformer("EncodecConfig", "EncodecModel", num_filters=8, hidden_size=16,
                                  upsampling_ratios=[4, 2])(torch).inner.encoder,
        lambda torch: (torch.rand(1, 1, 640) - 0.5,),
    ),
}  # fmt: skip
