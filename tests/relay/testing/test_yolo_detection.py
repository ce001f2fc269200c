"""Boxes of YOLO outputs: decoding, thinning, drawing."""

import functools
from pathlib import Path

import numpy as np
import pytest

from slipway.errors import ArgumentValueError
from slipway.relay.testing import yolo_detection as yolo

FONT = Path("/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf")


def layer():
    output = np.full((2, 8, 4, 4), -9.0, np.float32)
    output[1, :, 2, 1] = [0.5, 0.25, 0, 0, 0.9, 0.8, 0.1, 0]  # x, y, w, h, objectness, classes
    return {"type": "Yolo", "output": output, "biases": [1, 2, 10, 20, 30, 40], "mask": [1, 2],
            "classes": 3}  # fmt: skip


def test_box_of_a_square_image():
    (found,) = yolo.fill_network_boxes((100, 100), (200, 200), 0.5, True, [layer()])
    np.testing.assert_allclose(found["bbox"], (1.5 / 4, 2.25 / 4, 0.3, 0.4))
    np.testing.assert_allclose(found["prob"], [0.72, 0, 0], rtol=1e-6)  # the others are below
    (pixels,) = yolo.fill_network_boxes((100, 100), (200, 200), 0.5, False, [layer()])
    np.testing.assert_allclose(pixels["bbox"], (75, 112.5, 60, 80))


def test_box_of_an_image_with_bars_above_and_below():
    """200 x 100 in a network of 100 x 100: rows 25 to 75 hold the image."""
    (found,) = yolo.fill_network_boxes((100, 100), (200, 100), 0.5, True, [layer()])
    np.testing.assert_allclose(found["bbox"], (0.375, (0.5625 - 0.25) / 0.5, 0.3, 0.8))


def test_boxes_of_a_region_layer():
    output = np.zeros((1, 7, 2, 2), np.float32)
    output[0, :, 1, 0] = [0.5, 0.5, 0, 0, 0.8, 0.5, 1.0]
    given = {"type": "Region", "output": output, "biases": [1.0, 0.5], "classes": 2, "coords": 4,
             "background": 0}  # fmt: skip
    found = yolo.fill_network_boxes((64, 64), (64, 64), 0.45, True, [given])
    assert len(found) == 4  # one for each place; three have no object
    assert [d["objectness"] > 0 for d in found] == [False, False, True, False]
    np.testing.assert_allclose(found[2]["bbox"], (0.25, 0.75, 0.5, 0.25))
    np.testing.assert_allclose(found[2]["prob"], [0, 0.8], rtol=1e-6)
    with pytest.raises(ArgumentValueError, match="'Softmax'; boxes come from 'Yolo'"):
        yolo.fill_network_boxes((64, 64), (64, 64), 0.5, True, [{"type": "Softmax"}])


def box(x, objectness, *prob):
    return {"bbox": yolo.Box(x, 0.5, 0.4, 0.4), "objectness": objectness, "prob": np.array(prob)}


def test_thinned_out():
    dets = [box(0.52, 0.6, 0.5, 0.9), box(0.5, 0, 0.9, 0.9), box(0.5, 0.9, 0.8, 0.2),
            box(0.9, 0.7, 0.7, 0.1)]  # fmt: skip
    yolo.do_nms_sort(dets, 2, 0.5)
    assert [d["bbox"].x for d in dets] == [0.52, 0.5, 0.9, 0.5]  # the last class; no object last
    assert [list(d["prob"]) for d in dets[:3]] == [[0, 0.9], [0.8, 0], [0.7, 0.1]]
    assert dets[3]["objectness"] == 0
    key = functools.cmp_to_key(yolo.nms_comparator)
    assert max(dets[:3], key=key)["prob"][1] == 0.9


def test_shown_and_drawn(capsys):
    image = np.zeros((3, 200, 400))
    dets = [box(0.5, 0.9, 0.75, 0.1), box(0.2, 0.9, 0.1, 0.2)]
    yolo.show_detections(image, dets, 0.5, ["cat", "dog"], 2)
    assert capsys.readouterr().out == "class:['cat 0.75'] left:120 top:60 right:280 bottom:140\n"
    pytest.importorskip("PIL")
    if not FONT.exists():
        pytest.skip("the font DejaVu Sans is not installed: sudo apt-get install fonts-dejavu-core")
    yolo.draw_detections(str(FONT), image, dets, 0.5, ["cat", "dog"], 2)
    assert image[:, 140, 200].any()  # the lower edge
    assert not image[:, 120, 200].any()  # within
    assert image[:, 40:61, 121:180].any()  # the label
    assert not image[:, :, :100].any()  # the unlikely one
