"""Networks of the kinds that people bring, with random weights."""

import torch
import torch.nn.functional as F
from torch import nn


def conv(inputs, outputs, kernel=3, stride=1, groups=1, activation=nn.ReLU6):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False),
        nn.BatchNorm2d(outputs),
        activation() if activation else nn.Identity(),
    )


class Basic(nn.Module):
    """A residual block of ResNet-18."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = conv(inputs, outputs, 3, stride, activation=nn.ReLU)
        self.conv2 = conv(outputs, outputs, 3, activation=None)
        same = stride == 1 and inputs == outputs
        self.short = nn.Identity() if same else conv(inputs, outputs, 1, stride, activation=None)

    def forward(self, x):
        return F.relu(self.conv2(self.conv1(x)) + self.short(x))


class Bottleneck(nn.Module):
    """A residual block of ResNet-50."""

    def __init__(self, inputs, width, stride):
        super().__init__()
        self.conv1 = conv(inputs, width, 1, activation=nn.ReLU)
        self.conv2 = conv(width, width, 3, stride, activation=nn.ReLU)
        self.conv3 = conv(width, 4 * width, 1, activation=None)
        self.short = conv(inputs, 4 * width, 1, stride, activation=None)

    def forward(self, x):
        return F.relu(self.conv3(self.conv2(self.conv1(x))) + self.short(x))


def resnet():
    return nn.Sequential(
        conv(3, 16, 7, 2, activation=nn.ReLU), nn.MaxPool2d(3, 2, 1), Basic(16, 16, 1),
        Basic(16, 32, 2), Bottleneck(32, 16, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(64, 10),
    )  # fmt: skip


class Squeeze(nn.Module):
    """Squeeze-and-excitation."""

    def __init__(self, channels, gate):
        super().__init__()
        self.down, self.up = nn.Conv2d(channels, 8, 1), nn.Conv2d(8, channels, 1)
        self.gate = gate

    def forward(self, x):
        s = F.adaptive_avg_pool2d(x, 1)
        return x * self.gate(self.up(F.relu(self.down(s))))


class Inverted(nn.Module):
    """The inverted residual of MobileNetV2, V3 and EfficientNet."""

    def __init__(self, inputs, outputs, stride, kernel=3, activation=nn.ReLU6, gate=None):
        super().__init__()
        wide = inputs * 4
        layers = [
            conv(inputs, wide, 1, activation=activation),
            conv(wide, wide, kernel, stride, wide, activation),
        ]
        if gate is not None:
            layers.append(Squeeze(wide, gate))
        layers.append(conv(wide, outputs, 1, activation=None))
        self.layers = nn.Sequential(*layers)
        self.adds = stride == 1 and inputs == outputs

    def forward(self, x):
        y = self.layers(x)
        return x + y if self.adds else y


def mobilenet(activation, gate, kernel):
    return nn.Sequential(
        conv(3, 8, 3, 2, activation=activation),
        Inverted(8, 16, 2, 3, activation, gate),
        Inverted(16, 16, 1, kernel, activation, gate),
        conv(16, 64, 1, activation=activation),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.2), nn.Linear(64, 10),
    )  # fmt: skip


class Fire(nn.Module):
    """SqueezeNet's module."""

    def __init__(self, inputs, narrow, wide):
        super().__init__()
        self.squeeze = nn.Conv2d(inputs, narrow, 1)
        self.one, self.three = nn.Conv2d(narrow, wide, 1), nn.Conv2d(narrow, wide, 3, padding=1)

    def forward(self, x):
        x = F.relu(self.squeeze(x))
        return torch.cat([F.relu(self.one(x)), F.relu(self.three(x))], 1)


def squeezenet():
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, 2), nn.ReLU(True), nn.MaxPool2d(3, 2, ceil_mode=True),
        Fire(16, 8, 16), nn.MaxPool2d(3, 2, ceil_mode=True), Fire(32, 8, 16), nn.Dropout(),
        nn.Conv2d(32, 10, 1), nn.ReLU(True), nn.AdaptiveAvgPool2d((1, 1)), nn.Flatten(1),
    )  # fmt: skip


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down1, self.down2 = conv(3, 8), conv(8, 16)
        self.up1, self.up2 = conv(24, 8), nn.ConvTranspose2d(8, 8, 2, 2)
        self.out = nn.Conv2d(8, 2, 1)

    def forward(self, x):
        a = self.down1(x)
        b = self.down2(F.max_pool2d(a, 2))
        up = F.interpolate(b, scale_factor=2, mode="bilinear", align_corners=True)
        c = self.up1(torch.cat([up, a], 1))
        return torch.sigmoid(self.out(self.up2(c)))


class Block(nn.Module):
    """A transformer block over scaled_dot_product_attention."""

    def __init__(self, width, heads, causal=False):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
        )

    def attend(self, x, past=None):
        b, t, c = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        if past is not None:
            k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal and past is None)
        return self.proj(y.transpose(1, 2).reshape(b, t, c)), k, v

    def forward(self, x, past=None):
        y, k, v = self.attend(self.norm1(x), past)
        x = x + y
        return x + self.mlp(self.norm2(x)), k, v


class ViT(nn.Module):
    def __init__(self, width=24, patch=8, size=32):
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.token = nn.Parameter(torch.randn(1, 1, width))
        self.positions = nn.Parameter(torch.randn(1, (size // patch) ** 2 + 1, width))
        self.blocks = nn.ModuleList([Block(width, 3) for _ in range(2)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 10)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.positions
        for block in self.blocks:
            x = block(x)[0]
        return self.head(self.norm(x)[:, 0])


class Bert(nn.Module):
    def __init__(self, width=32, words=50, length=12):
        super().__init__()
        self.words, self.positions = nn.Embedding(words, width), nn.Embedding(length, width)
        layer = nn.TransformerEncoderLayer(
            width, 4, 64, activation="gelu", batch_first=True, norm_first=False
        )
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.pooler = nn.Linear(width, width)

    def forward(self, ids, mask):
        x = self.words(ids) + self.positions(torch.arange(ids.shape[1], device=ids.device))
        x = self.encoder(x, src_key_padding_mask=mask)
        return x, torch.tanh(self.pooler(x[:, 0]))


class GPT(nn.Module):
    """A decoder: the first step over a prompt, or one token behind a cache of keys and values."""

    def __init__(self, width=24, words=40, length=32):
        super().__init__()
        self.words, self.positions = nn.Embedding(words, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList([Block(width, 2, causal=True) for _ in range(2)])
        self.norm = nn.LayerNorm(width)

    def forward(self, ids, *past):
        before = past[0].shape[2] if past else 0
        x = self.words(ids) + self.positions(torch.arange(before, before + ids.shape[1]))
        caches = []
        for i, block in enumerate(self.blocks):
            x, k, v = block(x, past[2 * i : 2 * i + 2] or None)
            caches += [k, v]
        return (self.norm(x) @ self.words.weight.t(), *caches)


class Cached(nn.Module):
    """A decoder's cache as a buffer that every step writes to."""

    def __init__(self):
        super().__init__()
        self.register_buffer("cache", torch.zeros(1, 6, 4))
        self.step = nn.Linear(4, 4)

    def forward(self, x, position):
        self.cache.index_copy_(1, position, self.step(x))
        return self.cache.sum(1)


class Tagger(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.words = nn.Embedding(30, 12)
        self.layer = kind(12, 10, num_layers=2, batch_first=True, bidirectional=True)
        self.out = nn.Linear(20, 5)

    def forward(self, ids):
        return self.out(self.layer(self.words(ids))[0]).log_softmax(-1)


class Speech(nn.Module):
    """Convolutions over samples, a positional convolution and a transformer: wav2vec in small."""

    def __init__(self, width=16):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv1d(1, width, 10, 5, bias=False), nn.GroupNorm(width, width), nn.GELU(),
            nn.Conv1d(width, width, 3, 2, bias=False), nn.GELU(),
        )  # fmt: skip
        self.norm = nn.LayerNorm(width)
        self.positions = nn.utils.parametrizations.weight_norm(
            nn.Conv1d(width, width, 4, padding=2, groups=4), dim=2
        )
        self.blocks = nn.ModuleList([Block(width, 2)])
        self.out = nn.Linear(width, 32)

    def forward(self, samples):
        x = (samples - samples.mean(-1, keepdim=True)) / samples.std(-1, keepdim=True)
        x = self.norm(self.features(x[:, None]).transpose(1, 2))
        x = x + F.gelu(self.positions(x.transpose(1, 2))[..., :-1].transpose(1, 2))
        for block in self.blocks:
            x = block(x)[0]
        return self.out(x)


def ds_cnn():
    layers = [nn.Conv2d(1, 16, (10, 4), (2, 2), (5, 1)), nn.BatchNorm2d(16), nn.ReLU()]
    for _ in range(2):
        layers += [conv(16, 16, 3, 1, 16, nn.ReLU), conv(16, 16, 1, activation=nn.ReLU)]
    return nn.Sequential(*layers, nn.AvgPool2d((25, 5)), nn.Flatten(), nn.Linear(16, 12))


def image(size=32, channels=3):
    return torch.randn(1, channels, size, size)


def ids(*shape):
    return torch.randint(0, 30, shape)


MODELS = {
    "resnet": lambda: (resnet(), [image()]),
    "mobilenet_v2": lambda: (mobilenet(nn.ReLU6, None, 3), [image()]),
    "mobilenet_v3": lambda: (mobilenet(nn.Hardswish, F.hardsigmoid, 5), [image()]),
    "efficientnet": lambda: (mobilenet(nn.SiLU, torch.sigmoid, 5), [image()]),
    "squeezenet": lambda: (squeezenet(), [image(40)]),
    "unet": lambda: (UNet(), [image()]),
    "vit": lambda: (ViT(), [image()]),
    "bert": lambda: (Bert(), [ids(2, 12), torch.arange(24).reshape(2, 12) % 12 > 8]),
    "gpt prompt": lambda: (GPT(), [ids(1, 7)]),
    "gpt step": lambda: (GPT(), [ids(1, 1), *(torch.randn(1, 2, 7, 12) for _ in range(4))]),
    "lstm tagger": lambda: (Tagger(nn.LSTM), [ids(2, 6)]),
    "gru tagger": lambda: (Tagger(nn.GRU), [ids(2, 6)]),
    "speech": lambda: (Speech(), [torch.randn(1, 400)]),
    "ds_cnn": lambda: (ds_cnn(), [torch.randn(1, 1, 49, 10)]),
}


def make(name):
    """Return (module in evaluation mode, example inputs); the same ones every time."""
    torch.manual_seed(0)
    module, inputs = MODELS[name]()
    for part in module.modules():
        if isinstance(part, nn.BatchNorm2d):
            part.running_mean.normal_(0, 0.3)
            part.running_var.uniform_(0.5, 1.5)
    return module.eval(), inputs
