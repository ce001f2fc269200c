"""The eighth list of the benchmark `unseen`: networks that no other list names.

Used where torch and the packages are; needs nothing of Slipway.
"""

from benchmarks._unseen.networks import image, timm

NETWORKS = {
    "cspdarknet53": (timm("cspdarknet53"), image(96)),
    "fbnetc_100": (timm("fbnetc_100"), image(128)),
    "gcresnet33ts": (timm("gcresnet33ts"), image(128)),
    "ecaresnext26t": (timm("ecaresnext26t_32x4d"), image(96)),
    "haloregnetz_b": (timm("haloregnetz_b"), image(224)),
    "maxvit_rmlp_pico": (timm("maxvit_rmlp_pico_rw_256"), image(256)),
    "mobilenetv1_100": (timm("mobilenetv1_100"), image(128)),
    "nf_ecaresnet26": (timm("nf_ecaresnet26"), image(96)),
    "qwen3_vit_88m": (timm("qwen3_vit_88m"), image(128)),
    "regnety_004": (timm("regnety_004"), image(128)),
    "regnetv_040": (timm("regnetv_040"), image(96)),
    "resnetblur18": (timm("resnetblur18"), image(128)),
    "sedarknet21": (timm("sedarknet21"), image(96)),
    "sehalonet33ts": (timm("sehalonet33ts"), image(256)),
    "tf_mixnet_s": (timm("tf_mixnet_s"), image(128)),
    "vit_xsmall_patch16_clip": (timm("vit_xsmall_patch16_clip_224"), image(224)),
    "wide_resnet50_2": (timm("wide_resnet50_2"), image(96)),
}
