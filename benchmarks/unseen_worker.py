"""Export one network with random weights: NAME FOLDER.  Runs where torch and the packages are.

Writes NAME.onnx, NAME.pt2 and NAME.npz, which holds the inputs (in order) and what torch gives
for them; a line of JSON says what could not be written and why.  Needs nothing of Slipway.
"""

import json
import sys
import warnings
from pathlib import Path


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


def main():
    import numpy as np
    import torch

    name, folder = sys.argv[1], Path(sys.argv[2])
    warnings.simplefilter("ignore")
    torch.manual_seed(1)
    torch.set_num_threads(1)
    make, inputs = NETWORKS[name]
    said = {}
    module = make(torch).eval()
    # Running averages of 0 and 1 say nothing about the batch norm: give them values.
    for part in module.modules():
        if isinstance(part, torch.nn.modules.batchnorm._BatchNorm):
            part.running_mean.uniform_(-0.1, 0.1)
            part.running_var.uniform_(0.5, 1.5)
    # A last layer that starts with zeros would hide everything before it.
    with torch.no_grad():
        for weights in module.parameters():
            if not weights.any():
                weights.normal_(std=0.05)
    given = inputs(torch)
    with torch.no_grad():
        found = module(*given)
    if not isinstance(found, torch.Tensor):
        found = next(v for v in (found.values() if hasattr(found, "values") else found))
    arrays = {f"in{i}": v.numpy() for i, v in enumerate(given)}
    np.savez(folder / f"{name}.npz", out=found.detach().numpy(), **arrays)
    program = None
    try:
        program = torch.export.export(module, given, strict=False)
        torch.export.save(program, folder / f"{name}.pt2")
    except Exception as error:
        said["pt2"] = f"{type(error).__name__}: {str(error).splitlines()[0][:200]}"
    try:
        made = torch.onnx.export(program or module, given, dynamo=True, verbose=False)
        made.save(str(folder / f"{name}.onnx"), external_data=False)
    except Exception as error:
        said["onnx"] = f"{type(error).__name__}: {str(error).splitlines()[0][:200]}"
    print("SAID " + json.dumps(said))


if __name__ == "__main__":
    main()
