"""Seeds for the fuzzer of .pt2 files: small programs of torch.export, and what damages them."""

import io
import json
import tempfile
import zipfile
from pathlib import Path

from benchmarks.fuzz_importers.damage import mutate_bytes, mutate_json


def _networks(torch):
    """Yield (name, module, inputs, open sizes) of programs of different kinds of nodes."""
    nn, size = torch.nn, torch.export.Dim("n", min=2, max=64)

    class Convolutions(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.norm = nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4)
            self.head = nn.Linear(4, 5)

        def forward(self, x):
            y = nn.functional.max_pool2d(self.norm(self.conv(x)).relu(), 2)
            y = nn.functional.interpolate(y, scale_factor=2.0, mode="bilinear")
            return self.head(y.mean((2, 3)))

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(11, 8)
            self.attend = nn.MultiheadAttention(8, 2, batch_first=True)
            self.norm = nn.LayerNorm(8)

        def forward(self, x):
            y = self.embed(x)
            y = nn.functional.gelu(self.norm(y + self.attend(y, y, y)[0]))
            return {"y": y, "ids": x.cumsum(1)}

    class Recurrent(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm, self.gru = nn.LSTM(4, 5, batch_first=True), nn.GRU(5, 3, bidirectional=True)

        def forward(self, x):
            y, (h, _) = self.lstm(x)
            return self.gru(y)[0], h

    class Control(nn.Module):
        def forward(self, x):
            y = torch.cond(x.sum() > 0, lambda v: v * 2, lambda v: v.sin(), (x,))
            return tuple(torch.where(y > 0.5, y, y[..., :1]).topk(2, -1))

    class Sizes(nn.Module):
        def forward(self, x):
            y = x.reshape(x.shape[0] * 2, -1)
            return torch.cat([y, y.roll(1, 0)], 1), x.gather(1, x.argsort(1)), x.unfold(1, 2, 1)

    yield "convolutions", Convolutions(), (torch.ones(1, 3, 8, 8),), None
    yield "attention", Attention(), (torch.ones(1, 6, dtype=torch.int64),), None
    yield "recurrent", Recurrent(), (torch.ones(2, 3, 4),), None
    yield "control", Control(), (torch.ones(3, 4),), None
    yield "sizes", Sizes(), (torch.ones(3, 4),), ({0: size},)


def program_corpus():
    """Return (name, bytes) of saved programs."""
    import torch

    found = []
    with tempfile.TemporaryDirectory() as folder:
        for name, module, inputs, sizes in _networks(torch):
            path = Path(folder, f"{name}.pt2")
            program = torch.export.export(module.eval(), inputs, dynamic_shapes=sizes)
            torch.export.save(program, path)
            found.append((name, path.read_bytes()))
    return found


def mutate_program(data, rng):
    """Change bytes of the archive, or one of its parts as what it is."""
    if rng.random() < 0.2:
        return mutate_bytes(data, rng)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    names = sorted(parts, key=lambda name: not name.endswith(".json"))
    name = rng.choice(names[:3] if rng.random() < 0.85 else names)
    if name.endswith(".json") and rng.random() < 0.9:
        parts[name] = json.dumps(mutate_json(json.loads(parts[name]), rng)).encode()
    else:
        parts[name] = mutate_bytes(parts[name], rng)
    if rng.random() < 0.05:
        del parts[rng.choice(names)]
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", rng.choice((0, 0, 0, zipfile.ZIP_DEFLATED))) as archive:
        for member, content in parts.items():
            archive.writestr(member, content)
    return out.getvalue()


def read_program(data):
    """Import a program, as a command does."""
    from slipway import relay

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "program.pt2")
        path.write_bytes(data)
        return relay.frontend.from_pytorch(path)
