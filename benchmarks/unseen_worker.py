"""Export one network with random weights: NAME FOLDER.  Runs where torch and the packages are.

Writes NAME.onnx, NAME.pt2 and NAME.npz, which holds the inputs (in order) and what torch gives
for them; a line of JSON says what could not be written and why.  A third word, `torchscript`,
writes the ONNX file alone, by TorchScript, and what torch gives in float64.  Needs nothing of
Slipway.
"""

import json
import sys
import warnings
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))
from benchmarks._unseen.eighth import NETWORKS as EIGHTH
from benchmarks._unseen.fifth import NETWORKS as FIFTH
from benchmarks._unseen.fourth import NETWORKS as FOURTH
from benchmarks._unseen.networks import NETWORKS as FIRST
from benchmarks._unseen.ninth import NETWORKS as NINTH
from benchmarks._unseen.seventh import NETWORKS as SEVENTH
from benchmarks._unseen.sixth import NETWORKS as SIXTH
from benchmarks._unseen.tenth import NETWORKS as TENTH
from benchmarks._unseen.third import NETWORKS as THIRD

NETWORKS = FIRST | THIRD | FOURTH | FIFTH | SIXTH | SEVENTH | EIGHTH | NINTH | TENTH


def by_torch_export(torch, module, given, folder, name):
    """Write both files; return what could not be written and why."""
    said = {}
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
    return said


def by_torchscript(torch, module, given, folder, name):
    """Write the ONNX file; return what could not be written and why."""
    said = {"pt2": "by TorchScript"}
    try:
        torch.onnx.export(
            module, given, str(folder / f"{name}.onnx"), dynamo=False, opset_version=17
        )
    except Exception as error:
        said["onnx"] = f"{type(error).__name__}: {str(error).splitlines()[0][:200]}"
    return said


def main():
    import numpy as np
    import torch

    name, folder = sys.argv[1], Path(sys.argv[2])
    warnings.simplefilter("ignore")
    torch.manual_seed(1)
    torch.set_num_threads(1)
    make, inputs = NETWORKS[name]
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
    torchscript = sys.argv[3:] == ["torchscript"]
    said = (by_torchscript if torchscript else by_torch_export)(torch, module, given, folder, name)
    judge, wanted = module, given
    if torchscript:
        judge = module.double()
        wanted = tuple(v.double() if v.is_floating_point() else v for v in given)
    with torch.no_grad():
        found = judge(*wanted)
    if not isinstance(found, torch.Tensor):
        found = next(v for v in (found.values() if hasattr(found, "values") else found))
    arrays = {f"in{i}": v.numpy() for i, v in enumerate(given)}
    np.savez(folder / f"{name}.npz", out=found.detach().numpy(), **arrays)
    print("SAID " + json.dumps(said))


if __name__ == "__main__":
    main()
