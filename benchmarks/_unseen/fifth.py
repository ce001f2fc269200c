"""The fifth list of the benchmark `unseen`: networks that no other list names.

Used where torch and the packages are; needs nothing of Slipway.
"""

from benchmarks._unseen.networks import image, timm, tokens, torchvision, transformer
from benchmarks._unseen.third import BLOCKS

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
    "regnet_x_400mf": (torchvision("regnet_x_400mf"), image(128)),
    "mnasnet0_5": (torchvision("mnasnet0_5"), image(128)),
    "squeezenet1_0": (torchvision("squeezenet1_0"), image(128)),
    "resmlp_12": (timm("resmlp_12_224"), image(224)),
    "ghostnetv2_100": (timm("ghostnetv2_100"), image(128)),
    "mobilevitv2_050": (timm("mobilevitv2_050"), image(128)),
    "swiftformer_xs": (timm("swiftformer_xs"), image(224)),
    "deit3_small": (timm("deit3_small_patch16_224"), image(224)),
    "spnasnet_100": (timm("spnasnet_100"), image(128)),
    "seresnext26t_32x4d": (timm("seresnext26t_32x4d"), image(96)),
    "ecaresnet26t": (timm("ecaresnet26t"), image(128)),
    "efficientnet_es": (timm("efficientnet_es"), image(128)),
    "gcvit_xxtiny": (timm("gcvit_xxtiny"), image(224)),
    "focalnet_tiny_srf": (timm("focalnet_tiny_srf"), image(224)),
    "halonet26t": (timm("halonet26t"), image(256)),
    "semnasnet_100": (timm("semnasnet_100"), image(128)),
    "seresnet33ts": (timm("seresnet33ts"), image(128)),
    "vit_tiny_r_s16_p8": (timm("vit_tiny_r_s16_p8_224"), image(224)),
}
