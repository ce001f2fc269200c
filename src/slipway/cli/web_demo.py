"""``slipway web-demo``: a folder with a page that runs a model, for any web server."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from slipway.cli import console
from slipway.cli.completions import target_names
from slipway.cli.exit_codes import OptionError
from slipway.cli.model_file import ModelOptions
from slipway.cli.options import (
    Bindings,
    DenseRounding,
    Dims,
    InputShapes,
    ModelFile,
    ModelFormat,
    Signature,
)
from slipway.cli.outputs import need_output_folder
from slipway.errors import ModelError
from slipway.libinfo import find_js_path
from slipway.toolchain.link import write_file
from slipway.toolchain.tempdir import made_whole
from slipway.version import VERSION

if TYPE_CHECKING:
    from slipway.ir.module import IRModule
    from slipway.target import Target

PAGE = ("index.html", "demo.mjs", "worker.mjs", "demo.css")
IMAGE_DTYPES = ("float32", "float16", "uint8", "int8")
TARGETS = ("web/wasm", "llvm -mtriple=wasm32 -mattr=+relaxed-simd")
# The means and deviations of the pictures that classifiers of ImageNet are trained on.
IMAGENET = ("0.485,0.456,0.406", "0.229,0.224,0.225")


def web_demo(
    model: ModelFile,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The folder to write. [default: MODEL-web]"),
    ] = None,
    title: Annotated[str | None, typer.Option(help="What the page is called.")] = None,
    labels: Annotated[
        Path | None, typer.Option(help="A text file with the name of a class on each line.")
    ] = None,
    scale: Annotated[
        float | None,
        typer.Option(help="Divide pixels, 0 to 255, by this. [default: 255; 1 for integers]"),
    ] = None,
    mean: Annotated[
        str | None, typer.Option(help="Then subtract this, with commas one a channel.")
    ] = None,
    std: Annotated[
        str | None, typer.Option(help="Then divide by this, with commas one a channel.")
    ] = None,
    imagenet: Annotated[
        bool, typer.Option("--imagenet", help="ImageNet's usual --mean and --std.")
    ] = False,
    target: Annotated[
        str | None,
        typer.Option(
            "--target",
            autocompletion=target_names,
            help="Which WebAssembly to compile for. [default: web/wasm, and once more with "
            "relaxed SIMD for browsers that have it]",
        ),
    ] = None,
    input_shapes: InputShapes = None,
    dim: Dims = None,
    bind: Bindings = None,
    dense_rounding: DenseRounding = None,
    signature: Signature = None,
    model_format: ModelFormat = None,
) -> None:
    """Write a folder with a page that runs MODEL: pictures or the camera in, classes out.

    It needs nothing but a web server of files, and shows the milliseconds of each layer too.

    For example:

        slipway web-demo mobilenet.onnx --imagenet --labels classes.txt

        python -m http.server --directory mobilenet-web
    """
    import slipway

    targets = [slipway.target.Target(t) for t in ([target] if target else TARGETS)]
    chosen = targets[0]
    if not chosen.parsed_triple.is_page:
        raise OptionError(f"--target {target}: a page runs WebAssembly; write web/wasm.")
    if imagenet and (mean is not None or std is not None):
        raise OptionError("--imagenet says what --mean and --std are; leave them out.")
    names = [] if labels is None else labels_in(labels)
    folder = output or Path(f"{model.stem}-web")
    need_output_folder("--output", folder)
    options = ModelOptions(input_shapes, bind, model_format, dense_rounding, dim, signature)
    with console.step(f"Reading {model}"):
        module, parameters = options.read(model, chosen)
    inputs = inputs_of(module, parameters)
    if not inputs:
        raise ModelError(f"{model}: a model without inputs has nothing to show.")
    outputs = outputs_of(module, names)
    if names and not any(one["labels"] for one in outputs):
        raise OptionError(
            f"--labels {labels} names {len(names)} classes, and no output has a number for each: "
            + "; ".join(" x ".join(map(str, one["extents"])) or "one number" for one in outputs)
        )
    shown = next((one for one in inputs if image_of(one) is not None), inputs[0])
    image = image_of(shown)
    if image is not None:
        means, deviations = IMAGENET if imagenet else (mean, std)
        image |= scaling(str(shown["dtype"]), image["channels"], scale, means, deviations)
    about: dict[str, Any] = {
        "title": title or model.stem,
        "version": VERSION,
        "input": shown,
        "others": [one for one in inputs if one is not shown],
        "image": image,
        "outputs": outputs,
    }
    with made_whole(folder):
        written = compiled(module, parameters, targets, folder)
        about |= {
            "model": written[0].name,
            "relaxed": written[1].name if len(written) > 1 else None,
            "bytes": written[0].stat().st_size,
        }
        write_file(folder / "about.json", json.dumps(about, indent=1).encode())
        copy_page(folder)
    size = sum(path.stat().st_size for path in folder.iterdir())
    console.out.print(
        f"{console.plain(folder)}: {console.size_text(size)}; serve it with any web server:"
    )
    console.out.print(f"  python -m http.server --directory {console.plain(folder)}")


def inputs_of(module: IRModule, parameters: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return name, type and shape of what the page gives the model."""
    main: Any = module["main"]
    free = [p for p in main.params if str(p.name_hint) not in parameters]
    shapes = shapes_of([parameter.checked_type.shape for parameter in free])
    return [
        {
            "name": str(parameter.name_hint),
            "dtype": str(parameter.checked_type.dtype),
            "shape": shape,
        }
        for parameter, shape in zip(free, shapes, strict=True)
    ]


def labels_in(path: Path) -> list[str]:
    """Return the lines of a file of labels, without empty ones at its end."""
    try:
        return path.read_text(encoding="utf-8").rstrip().splitlines()
    except UnicodeDecodeError:
        raise OptionError(f"--labels {path} is no text in UTF-8; save it as such.") from None


def outputs_of(module: IRModule, names: Sequence[str]) -> list[dict[str, Any]]:
    """Return what each output is and what its classes are called, by `names` or by the model.

    Those of an output of indices are what they index.  A classifier whose classes are texts gives
    their positions, with the names, and as many scores, which have the same.
    """
    from slipway.inspect.output_kinds import INDICES, output_kinds
    from slipway.relay.meaning import UNKNOWN, meanings_of

    main: Any = module["main"]
    kinds = output_kinds(main)
    meanings = meanings_of(main.attr("meanings"), len(kinds)).outputs
    others = [list(known.labels) for known in meanings if known and known.labels]
    found = []
    for (kind, extents), meaning in zip(kinds, meanings, strict=True):
        known = meaning or UNKNOWN
        is_list = [len(names)] == extents or kind == INDICES
        alike = next((labels for labels in others if [len(labels)] == extents), [])
        labels = list(names) if names and is_list else list(known.labels) or alike
        about = {"kind": kind, "labels": labels, "extents": [str(e) for e in extents]}
        scale = {"scale": known.scale, "zeroPoint": known.zero_point} if known.scale else {}
        found.append(about | scale)
    return found


def compiled(
    module: IRModule, parameters: Mapping[str, Any], targets: Sequence[Target], folder: Path
) -> list[Path]:
    """Write the model for each target, and remove what an earlier run wrote."""
    from slipway import relay, transform

    written = []
    for target in targets:
        with console.step(f"Compiling for {target}"), transform.PassContext(opt_level=3):
            library = relay.build(module, target=target, params=parameters)
            written.append(export(library, folder))
    for old in folder.glob("model-????????????.wasm"):
        if old not in written:
            old.unlink()
    return written


def copy_page(folder: Path) -> None:
    """Copy the files of the page that are the same for all models."""
    source = Path(find_js_path()[0])
    for path in (
        source / "slipway.mjs",
        source / "base.css",
        source / "device" / "icon.svg",
        *(source / "demo" / name for name in PAGE),
    ):
        write_file(folder / path.name, path.read_bytes())


def shapes_of(shapes: Sequence[Sequence[Any]]) -> list[list[int]]:
    """Return the shapes that a page gives: a batch that is open is the least, others the most.

    One is a batch if it leads a shape of several dimensions.
    """
    from slipway.relay.dims import SymbolDim, at, lower_bound, usual

    batches = {v for shape in shapes if len(shape) > 1 for v in variables_of(shape[0])}
    sizes = {
        v: max(1, lower_bound(SymbolDim(v))) if v in batches else usual(SymbolDim(v))
        for shape in shapes
        for extent in shape
        for v in variables_of(extent)
    }
    return [[at(extent, sizes) for extent in shape] for shape in shapes]


def variables_of(extent: Any) -> Sequence[Any]:
    """Return the variables of a dimension that is open; none of a number."""
    return getattr(extent, "variables", ())


def export(library: Any, folder: Path) -> Path:
    """Write a model under a name of its content, so that caches may keep it for ever."""
    written = folder / "model.wasm"
    library.export_library(str(written))
    digest = hashlib.sha256(written.read_bytes()).hexdigest()[:12]
    return written.replace(folder / f"model-{digest}.wasm")


def image_of(parameter: dict[str, Any]) -> dict[str, Any] | None:
    """Return how a picture lies in an input of that shape and dtype; None where it is none."""
    shape = parameter["shape"]
    if len(shape) != 4 or shape[0] != 1 or parameter["dtype"] not in IMAGE_DTYPES:
        return None
    for layout, (channels, height, width) in (
        ("NCHW", shape[1:]),
        ("NHWC", [shape[3], *shape[1:3]]),
    ):
        low, high = sorted((height, width))
        if channels in (1, 3) and low > 3 and high <= 4 * low:  # 49 x 10 is a spectrogram
            return {"width": width, "height": height, "channels": channels, "layout": layout}
    return None


def scaling(
    dtype: str, channels: int, scale: float | None, mean: str | None, std: str | None
) -> dict[str, Any]:
    """Return what a page does with pixels: (pixel / scale - mean) / std, one a channel."""
    is_real = dtype.startswith("float")
    if scale is None:
        scale = 255.0 if is_real else 1.0
    if not scale > 0:
        raise OptionError(f"--scale {scale:g}: pixels are divided by it; it is more than 0.")
    zero = 128.0 if dtype == "int8" else 0.0
    deviations = numbers("--std", std, channels, 1.0)
    if not all(deviations):
        raise OptionError(f"--std {std}: pixels are divided by it; it is not 0.")
    return {"scale": scale, "mean": numbers("--mean", mean, channels, zero), "std": deviations}


def numbers(option: str, text: str | None, channels: int, default: float) -> Sequence[float]:
    """Return one number a channel from an option's text."""
    if text is None:
        return [default] * channels
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        raise OptionError(f"{option} {text}: write numbers with commas between them.") from None
    if len(values) not in (1, channels):
        raise OptionError(f"{option} {text}: the input has {channels} channels; write as many.")
    return values if len(values) == channels else values * channels
