"""The seventh list of the benchmark `unseen`: networks that no other list names.

Used where torch and the packages are; needs nothing of Slipway.
"""

from benchmarks._unseen.networks import image, timm

NETWORKS = {
    "darknet17": (timm("darknet17"), image(128)),
    "sebotnet33ts": (timm("sebotnet33ts_256"), image(256)),
    "poolformerv2_s12": (timm("poolformerv2_s12"), image(128)),
    "nf_resnet26": (timm("nf_resnet26"), image(128)),
    "resnetaa34d": (timm("resnetaa34d"), image(128)),
    "hgnet_small": (timm("hgnet_small"), image(96)),
    "mobilenet_edgetpu_v2_s": (timm("mobilenet_edgetpu_v2_s"), image(128)),
    "swin_s3_tiny": (timm("swin_s3_tiny_224"), image(224)),
    "regnetz_b16_evos": (timm("regnetz_b16_evos"), image(128)),
    "convnextv2_atto": (timm("convnextv2_atto"), image(128)),
    "vit_relpos_small": (timm("vit_relpos_small_patch16_224"), image(224)),
    "mobilenetv4_hybrid_medium": (timm("mobilenetv4_hybrid_medium"), image(128)),
}
