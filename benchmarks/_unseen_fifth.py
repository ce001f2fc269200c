"""The fifth list of the benchmark `unseen`: networks that no other list names.

Used where torch and the packages are; needs nothing of Slipway.
"""

from benchmarks._unseen_networks import image, timm, tokens, transformer
from benchmarks._unseen_third import BLOCKS

NETWORKS = {
    "convformer_s18": (timm("convformer_s18"), image(128)),
    "dpn68": (timm("dpn68"), image(96)),
    "cspresnet50": (timm("cspresnet50"), image(96)),
    "iformer_m": (timm("iformer_m"), image(224)),
    "lowformer_b0": (timm("lowformer_b0"), image(224)),
    "ghostnetv3_100": (timm("ghostnetv3_100"), image(128)),
    "dla46x_c": (timm("dla46x_c"), image(128)),
    "cpubone_b0": (timm("cpubone_b0_bfrobust"), image(224)),
    "lcnetv2_small": (timm("lcnetv2_small"), image(128)),
    "regnetz_005": (timm("regnetz_005"), image(128)),
    "fbnetv3_b": (timm("fbnetv3_b"), image(128)),
    "gmixer_12": (timm("gmixer_12_224"), image(224)),
    "csatv2": (timm("csatv2"), image(256)),
    "bros": (
        transformer("BrosConfig", "BrosModel", **BLOCKS),
        lambda torch: (torch.randint(5, 128, (1, 64)), torch.rand(1, 64, 8)),
    ),
    "layoutlm": (
        transformer("LayoutLMConfig", "LayoutLMModel", **BLOCKS),
        tokens(64, 128),
    ),
}
