"""The networks of the benchmark `unseen`: name -> (what makes it, what makes its inputs).

Used where torch and the packages are; needs nothing of Slipway.
"""


def image(size, channels=3):
    return lambda torch: (torch.rand(1, channels, size, size) * 2 - 1,)


def tokens(length, vocabulary=1000):
    return lambda torch: (torch.randint(5, vocabulary, (1, length)),)


def sound(samples):
    return lambda torch: (torch.rand(1, samples) * 2 - 1,)


def torchvision(name, **options):
    def make(torch):
        import torchvision

        return torchvision.models.get_model(name, weights=None, **options)

    return make


def timm(name):
    def make(torch):
        import timm as package

        return package.create_model(name, pretrained=False)

    return make


def transformer(config, model, field="last_hidden_state", **sizes):
    """A model of the transformers package; the result is one field of what it returns."""

    def make(torch):
        import transformers

        made = getattr(transformers, config)(**sizes)
        inner = getattr(transformers, model)._from_config(made, attn_implementation="eager")

        class Only(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = inner

            def forward(self, *given):
                return getattr(self.inner(*given, return_dict=True), field)

        return Only()

    return make


BERT_SIZES = {
    "vocab_size": 1000, "hidden_size": 128, "num_hidden_layers": 4, "num_attention_heads": 4,
    "intermediate_size": 512,
}  # fmt: skip

# Name -> (what makes it, what makes its inputs).
NETWORKS = {
    "convnext_tiny": (torchvision("convnext_tiny"), image(128)),
    "densenet121": (torchvision("densenet121"), image(96)),
    "googlenet": (torchvision("googlenet", aux_logits=False, init_weights=False), image(128)),
    "inception_v3": (torchvision("inception_v3", aux_logits=True, init_weights=False), image(171)),
    "mnasnet1_0": (torchvision("mnasnet1_0"), image(128)),
    "regnet_y_400mf": (torchvision("regnet_y_400mf"), image(128)),
    "maxvit_t": (torchvision("maxvit_t"), image(224)),
    "swin_t": (torchvision("swin_t"), image(224)),
    "swin_v2_t": (torchvision("swin_v2_t"), image(128)),
    "vgg11_bn": (torchvision("vgg11_bn"), image(96)),
    "r3d_18": (torchvision("r3d_18"), lambda torch: (torch.rand(1, 3, 8, 56, 56) * 2 - 1,)),
    "ghostnet_100": (timm("ghostnet_100"), image(128)),
    "repvgg_a0": (timm("repvgg_a0"), image(128)),
    "levit_128s": (timm("levit_128s"), image(224)),
    "mobilevit_xxs": (timm("mobilevit_xxs"), image(128)),
    "edgenext_xx_small": (timm("edgenext_xx_small"), image(128)),
    "poolformer_s12": (timm("poolformer_s12"), image(128)),
    "xcit_nano_12_p16_224": (timm("xcit_nano_12_p16_224"), image(224)),
    "mixer_s32_224": (timm("mixer_s32_224"), image(224)),
    "gmlp_s16_224": (timm("gmlp_s16_224"), image(224)),
    "res2net50_26w_4s": (timm("res2net50_26w_4s"), image(96)),
    "hrnet_w18_small": (timm("hrnet_w18_small"), image(128)),
    "fastvit_t8": (timm("fastvit_t8"), image(128)),
    "mobilenetv4_conv_small": (timm("mobilenetv4_conv_small"), image(128)),
    "rexnet_100": (timm("rexnet_100"), image(128)),
    "dla34": (timm("dla34"), image(128)),
    "efficientformer_l1": (timm("efficientformer_l1"), image(224)),
    "crossvit_tiny_240": (timm("crossvit_tiny_240"), image(240)),
    "distilbert": (
        transformer("DistilBertConfig", "DistilBertModel", vocab_size=1000, dim=128, n_layers=4,
                    n_heads=4, hidden_dim=512),
        tokens(64),
    ),
    "albert": (transformer("AlbertConfig", "AlbertModel", embedding_size=64, **BERT_SIZES),
               tokens(64)),
    "electra": (transformer("ElectraConfig", "ElectraModel", embedding_size=64, **BERT_SIZES),
                tokens(64)),
    "gpt2": (
        transformer("GPT2Config", "GPT2Model", vocab_size=1000, n_embd=128, n_layer=4, n_head=4,
                    use_cache=False),
        tokens(48),
    ),
    "llama": (
        transformer("LlamaConfig", "LlamaModel", num_key_value_heads=2, use_cache=False,
                    **BERT_SIZES),
        tokens(48),
    ),
    "fnet": (transformer("FNetConfig", "FNetModel", **{
        k: v for k, v in BERT_SIZES.items() if k != "num_attention_heads"}), tokens(64)),
    "segformer_b0": (transformer("SegformerConfig", "SegformerModel"), image(128)),
    "dinov2": (
        transformer("Dinov2Config", "Dinov2Model", hidden_size=192, num_hidden_layers=4,
                    num_attention_heads=3, image_size=112),
        image(112),
    ),
    "hubert": (
        transformer("HubertConfig", "HubertModel", hidden_size=128, num_hidden_layers=3,
                    num_attention_heads=4, intermediate_size=512, conv_dim=(64,) * 7),
        sound(8000),
    ),
    "whisper_encoder": (
        lambda torch: transformer("WhisperConfig", "WhisperModel", vocab_size=1000, d_model=128,
                                  encoder_layers=3, decoder_layers=1, encoder_attention_heads=4,
                                  decoder_attention_heads=4, encoder_ffn_dim=512,
                                  decoder_ffn_dim=512, pad_token_id=0, bos_token_id=1,
                                  eos_token_id=2, decoder_start_token_id=1,
                                  max_source_positions=150)(torch).inner.encoder,
        lambda torch: (torch.rand(1, 80, 300) * 2 - 1,),
    ),
}  # fmt: skip

# A second list, made when the compiler had been fitted to the first.
NETWORKS |= {
    "densenet201": (torchvision("densenet201"), image(224)),
    "efficientnet_v2_s": (torchvision("efficientnet_v2_s"), image(128)),
    "shufflenet_v2_x1_5": (torchvision("shufflenet_v2_x1_5"), image(128)),
    "r2plus1d_18": (torchvision("r2plus1d_18"), lambda torch: (torch.rand(1, 3, 8, 56, 56) - 0.5,)),
    "s3d": (torchvision("s3d"), lambda torch: (torch.rand(1, 3, 16, 224, 224) - 0.5,)),
    "lraspp_mobilenet_v3_large": (
        torchvision("lraspp_mobilenet_v3_large", weights_backbone=None), image(160),
    ),
    "deeplabv3_mobilenet_v3_large": (
        torchvision("deeplabv3_mobilenet_v3_large", weights_backbone=None), image(160),
    ),
    "raft_small": (
        torchvision("raft_small"),
        lambda torch: (torch.rand(1, 3, 128, 160) - 0.5, torch.rand(1, 3, 128, 160) - 0.5),
    ),
    "coat_lite_tiny": (timm("coat_lite_tiny"), image(224)),
    "pit_ti_224": (timm("pit_ti_224"), image(224)),
    "convit_tiny": (timm("convit_tiny"), image(224)),
    "visformer_tiny": (timm("visformer_tiny"), image(224)),
    "nest_tiny": (timm("nest_tiny"), image(224)),
    "twins_pcpvt_small": (timm("twins_pcpvt_small"), image(224)),
    "pvt_v2_b0": (timm("pvt_v2_b0"), image(128)),
    "eca_nfnet_l0": (timm("eca_nfnet_l0"), image(128)),
    "resnest14d": (timm("resnest14d"), image(128)),
    "selecsls42b": (timm("selecsls42b"), image(128)),
    "skresnet18": (timm("skresnet18"), image(128)),
    "gernet_s": (timm("gernet_s"), image(128)),
    "ese_vovnet19b_dw": (timm("ese_vovnet19b_dw"), image(128)),
    "tinynet_e": (timm("tinynet_e"), image(106)),
    "lcnet_050": (timm("lcnet_050"), image(128)),
    "mobileone_s0": (timm("mobileone_s0"), image(128)),
    "repghostnet_050": (timm("repghostnet_050"), image(128)),
    "efficientvit_b0": (timm("efficientvit_b0"), image(128)),
    "focalnet_tiny_srf": (timm("focalnet_tiny_srf"), image(128)),
    "davit_tiny": (timm("davit_tiny"), image(224)),
    "sequencer2d_s": (timm("sequencer2d_s"), image(224)),
    "starnet_s1": (timm("starnet_s1"), image(128)),
    "mambaout_femto": (timm("mambaout_femto"), image(128)),
    "inception_next_atto": (timm("inception_next_atto"), image(128)),
    "gcvit_xxtiny": (timm("gcvit_xxtiny"), image(224)),
    "halonet26t": (timm("halonet26t"), image(256)),
    "lambda_resnet26t": (timm("lambda_resnet26t"), image(256)),
    "mixnet_s": (timm("mixnet_s"), image(128)),
    "hgnetv2_b0": (timm("hgnetv2_b0"), image(128)),
    "deberta_v2": (
        transformer("DebertaV2Config", "DebertaV2Model", relative_attention=True,
                    pos_att_type=["p2c", "c2p"], **BERT_SIZES),
        tokens(48),
    ),
    "mobilebert": (
        transformer("MobileBertConfig", "MobileBertModel", intra_bottleneck_size=32,
                    embedding_size=64, **BERT_SIZES),
        tokens(64),
    ),
    "squeezebert": (
        transformer("SqueezeBertConfig", "SqueezeBertModel", embedding_size=128, **BERT_SIZES),
        tokens(64),
    ),
    "funnel": (
        transformer("FunnelConfig", "FunnelModel", vocab_size=1000, d_model=128, n_head=4,
                    d_head=32, d_inner=512, block_sizes=[2, 2], num_decoder_layers=1),
        tokens(64),
    ),
    "xlnet": (
        transformer("XLNetConfig", "XLNetModel", vocab_size=1000, d_model=128, n_layer=3, n_head=4,
                    d_inner=512),
        tokens(48),
    ),
    "mpnet": (transformer("MPNetConfig", "MPNetModel", **BERT_SIZES), tokens(64)),
    "convbert": (transformer("ConvBertConfig", "ConvBertModel", embedding_size=64, **BERT_SIZES),
                 tokens(64)),
    "roformer": (transformer("RoFormerConfig", "RoFormerModel", **BERT_SIZES), tokens(64)),
    "qwen2": (
        transformer("Qwen2Config", "Qwen2Model", num_key_value_heads=2, use_cache=False,
                    **BERT_SIZES),
        tokens(48),
    ),
    "gpt_neo": (
        transformer("GPTNeoConfig", "GPTNeoModel", vocab_size=1000, hidden_size=128, num_layers=4,
                    num_heads=4, attention_types=[[["global", "local"], 2]], window_size=16,
                    use_cache=False),
        tokens(48),
    ),
    "bloom": (
        transformer("BloomConfig", "BloomModel", vocab_size=1000, hidden_size=128, n_layer=3,
                    n_head=4, use_cache=False),
        tokens(48),
    ),
    "mamba": (
        transformer("MambaConfig", "MambaModel", vocab_size=1000, hidden_size=64,
                    num_hidden_layers=2, use_cache=False),
        tokens(24),
    ),
    "wavlm": (
        transformer("WavLMConfig", "WavLMModel", hidden_size=128, num_hidden_layers=3,
                    num_attention_heads=4, intermediate_size=512, conv_dim=(64,) * 7),
        sound(8000),
    ),
    "yolos": (
        transformer("YolosConfig", "YolosModel", hidden_size=192, num_hidden_layers=3,
                    num_attention_heads=3, intermediate_size=512, image_size=[128, 160],
                    num_detection_tokens=20),
        lambda torch: (torch.rand(1, 3, 128, 160) - 0.5,),
    ),
}  # fmt: skip
