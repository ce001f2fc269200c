"""Pictures as Darknet's networks read them, and what TVM's scripts call Darknet's library."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from slipway.errors import ModelError, ToolchainError
from slipway.frontends.darknet.layer import Network
from slipway.frontends.darknet.network import load_network

Picture = npt.NDArray[np.float64]
Pixels = npt.NDArray[np.uint8]
FIXED = 11  # bits of a weight when bytes are resized
CUBIC = -0.75


def load_image_color(test_image: str | Path) -> Picture:
    """Return a picture's (blue, green, red) of 0 to 1, the planes in the order TVM's helper has."""
    return convert_image(_pixels(test_image))


def load_image(img: str | Path, resize_width: int, resize_height: int) -> Picture:
    """Return a picture scaled into the middle of a grey one of this size, sides as they were."""
    pixels = _pixels(img)
    height, width, planes = pixels.shape
    if resize_width / width < resize_height / height:
        inner = (resize_width, height * resize_width // width)
    else:
        inner = (width * resize_height // height, resize_height)
    boxed = np.full((planes, resize_height, resize_width), 0.5)
    top, left = (resize_height - inner[1]) // 2, (resize_width - inner[0]) // 2
    boxed[:, top : top + inner[1], left : left + inner[0]] = convert_image(resized(pixels, *inner))
    return boxed


def convert_image(image: Pixels) -> Picture:
    """Return (height, width, 3) bytes, blue first, as (3, height, width) of 0 to 1, blue first."""
    return np.transpose(image, (2, 0, 1)).astype(np.float64) / 255.0


def resized(pixels: Pixels, width: int, height: int) -> Pixels:
    """Return the picture in another size, by OpenCV's cubic interpolation (to one level of 255)."""
    rows, by_row = _taps(pixels.shape[0], height)
    columns, by_column = _taps(pixels.shape[1], width)
    wide = np.einsum("hwkc,wk->hwc", pixels[:, columns].astype(np.int64), by_column)
    out = np.einsum("hkwc,hk->hwc", wide[rows], by_row)
    rounded = (out + (1 << (2 * FIXED - 1))) >> (2 * FIXED)
    out_bytes: Pixels = np.clip(rounded, 0, 255).astype(np.uint8)
    return out_bytes


def _taps(size: int, out: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the four elements that each new one is made of, and their weights times 2**FIXED."""
    position = (np.arange(out) + 0.5) * (size / out) - 0.5
    first = np.floor(position)
    t = (position - first).astype(np.float32)
    a = np.float32(CUBIC)
    before = ((a * (t + 1) - 5 * a) * (t + 1) + 8 * a) * (t + 1) - 4 * a
    own = ((a + 2) * t - (a + 3)) * t * t + 1
    after = ((a + 2) * (1 - t) - (a + 3)) * (1 - t) * (1 - t) + 1
    weights = np.stack([before, own, after, 1 - before - own - after], 1)
    elements = np.clip(first[:, None].astype(np.int64) + np.arange(-1, 3), 0, size - 1)
    return elements, np.rint(weights * (1 << FIXED)).astype(np.int64)


def _pixels(path: str | Path) -> Pixels:
    try:
        from PIL import Image
    except ImportError as error:
        raise ToolchainError("reading a picture needs Pillow: pip install pillow") from error
    try:
        with Image.open(path) as picture:
            return np.asarray(np.asarray(picture.convert("RGB"))[:, :, ::-1], order="C")
    except OSError as error:
        raise ModelError(f"{path} cannot be read as a picture: {error}") from None


class DarknetLibrary:
    """In place of Darknet's shared library: it reads networks, and computes nothing."""

    def load_network(
        self, cfg: str | bytes | Path, weights: str | bytes | Path | None = None, clear: int = 0
    ) -> Network:
        """Read a network, see `slipway.frontends.darknet.network.load_network`."""
        return load_network(cfg, weights, clear)

    def free_network(self, net: Network) -> None:
        """Do nothing: memory is freed with the last reference to `net`."""

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(
            f"Darknet's {name} is not here: networks are read without its library. To call it, "
            "load it with cffi; from_darknet takes its networks too"
        )


class _Interface:
    """What TVM's scripts load Darknet's library with."""

    def dlopen(self, path: str | Path) -> DarknetLibrary:
        """Return what reads networks; the file at `path` is not opened."""
        return DarknetLibrary()


__darknetffi__ = _Interface()
