"""The ninth list of the benchmark `unseen`: networks that no other list names.

Used where torch and the packages are; needs nothing of Slipway.
"""

from benchmarks._unseen.networks import image, timm

NETWORKS = {
    "convnext_pico": (timm("convnext_pico"), image(128)),
    "crossvit_9": (timm("crossvit_9_240"), image(240)),
    "cs3sedarknet_l": (timm("cs3sedarknet_l"), image(96)),
    "dla60": (timm("dla60"), image(96)),
    "hgnetv2_b1": (timm("hgnetv2_b1"), image(128)),
    "levit_192": (timm("levit_192"), image(224)),
    "mobilenetv2_140": (timm("mobilenetv2_140"), image(128)),
    "mobileone_s1": (timm("mobileone_s1"), image(128)),
    "pvt_v2_b1": (timm("pvt_v2_b1"), image(128)),
    "regnetx_006": (timm("regnetx_006"), image(128)),
    "repvit_m1_1": (timm("repvit_m1_1"), image(128)),
    "resnest26d": (timm("resnest26d"), image(96)),
    "resnet51q": (timm("resnet51q"), image(96)),
    "rexnet_130": (timm("rexnet_130"), image(128)),
    "skresnet34": (timm("skresnet34"), image(96)),
    "tinynet_c": (timm("tinynet_c"), image(128)),
    "xception65": (timm("xception65"), image(96)),
    "xcit_tiny_12_p16": (timm("xcit_tiny_12_p16_224"), image(128)),
}
