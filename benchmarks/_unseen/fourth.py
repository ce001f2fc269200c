"""The fourth list of the benchmark `unseen`: architectures that no other list is like.

Used where torch and the packages are; needs nothing of Slipway.
"""

from benchmarks._unseen.networks import image, timm, transformer
from benchmarks._unseen.third import BLOCKS


def film(frames, size):
    return lambda torch: (torch.rand(1, frames, 3, size, size) * 2 - 1,)


NETWORKS = {
    "volo_d1": (timm("volo_d1_224"), image(224)),
    "xception41": (timm("xception41"), image(96)),
    "vitamin_small": (timm("vitamin_small_224"), image(224)),
    "nextvit_small": (timm("nextvit_small"), image(96)),
    "tresnet_m": (timm("tresnet_m"), image(96)),
    "efficientvim_m1": (timm("efficientvim_m1"), image(224)),
    "swinv2_cr_tiny": (timm("swinv2_cr_tiny_224"), image(224)),
    "hardcorenas_a": (timm("hardcorenas_a"), image(96)),
    "videomae": (
        transformer("VideoMAEConfig", "VideoMAEModel", image_size=32, patch_size=8, num_frames=4,
                    **BLOCKS),
        film(4, 32),
    ),
    "timesformer": (
        transformer("TimesformerConfig", "TimesformerModel", image_size=32, patch_size=8,
                    num_frames=4, **BLOCKS),
        film(4, 32),
    ),
    "perceiver": (
        transformer("PerceiverConfig", "PerceiverModel", d_model=32, d_latents=64, num_latents=16,
                    num_self_attends_per_block=2, num_self_attention_heads=4,
                    num_cross_attention_heads=4),
        lambda torch: (torch.rand(1, 50, 32) * 2 - 1,),
    ),
    "canine": (
        transformer("CanineConfig", "CanineModel", local_transformer_stride=32,
                    num_hash_buckets=128, **BLOCKS),
        lambda torch: (torch.randint(32, 128, (1, 128)),),
    ),
    "depth_anything": (
        lambda torch: transformer(
            "DepthAnythingConfig", "DepthAnythingForDepthEstimation", "predicted_depth",
            backbone_config=__import__("transformers").Dinov2Config(
                image_size=56, patch_size=14, hidden_size=64, num_hidden_layers=4,
                num_attention_heads=4, out_features=[f"stage{i}" for i in range(1, 5)],
                reshape_hidden_states=False,
            ),
            reassemble_hidden_size=64, neck_hidden_sizes=[16, 24, 32, 48], fusion_hidden_size=16,
        )(torch),
        image(56),
    ),
}  # fmt: skip
