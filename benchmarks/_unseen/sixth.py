"""The sixth list of the benchmark `unseen`: networks that no other list names.

Used where torch and the packages are; needs nothing of Slipway.
"""

from benchmarks._unseen.networks import image, timm, torchvision

NETWORKS = {
    "resnext50_32x4d": (torchvision("resnext50_32x4d"), image(96)),
    "shufflenet_v2_x0_5": (torchvision("shufflenet_v2_x0_5"), image(128)),
    "mobilenetv3_large_100": (timm("mobilenetv3_large_100"), image(128)),
    "efficientnet_b0": (timm("efficientnet_b0"), image(128)),
    "convmixer_768_32": (timm("convmixer_768_32"), image(96)),
    "cspnext_tiny": (timm("cspnext_tiny"), image(128)),
    "gmlp_ti16": (timm("gmlp_ti16_224"), image(224)),
    "twins_svt_small": (timm("twins_svt_small"), image(224)),
    "res2next50": (timm("res2next50"), image(96)),
    "vovnet39a": (timm("vovnet39a"), image(96)),
    "resnetv2_50d_gn": (timm("resnetv2_50d_gn"), image(96)),
    "densenetblur121d": (timm("densenetblur121d"), image(96)),
    "skresnext50_32x4d": (timm("skresnext50_32x4d"), image(96)),
    "efficientvit_l1": (timm("efficientvit_l1"), image(128)),
    "coat_mini": (timm("coat_mini"), image(224)),
    "inception_v4": (timm("inception_v4"), image(160)),
    "lambda_resnet26rpt_256": (timm("lambda_resnet26rpt_256"), image(256)),
    "selecsls60": (timm("selecsls60"), image(128)),
    "mobilevit_xs": (timm("mobilevit_xs"), image(128)),
    "legacy_xception": (timm("legacy_xception"), image(96)),
}
