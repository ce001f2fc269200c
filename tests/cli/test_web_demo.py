"""``slipway web-demo``: the folder runs a model in Chromium, from a file server."""

import functools
import http.server
import json
import struct
import sys
import threading
import zlib
from unittest import mock

import numpy as np
import pytest
from selenium.webdriver.common.by import By
from tests.rpc.faults.waiting import wait_for

import slipway as tvm
from slipway.cli.main import main
from slipway.cli.web_demo import outputs_of
from slipway.contrib import graph_executor
from slipway.runtime import cpu

onnx = pytest.importorskip("onnx")
SIZE, CLASSES = 20, 7


def network(path):
    """A classifier of random weights for pictures of 20 x 20."""
    random = np.random.default_rng(11)
    helper, real = onnx.helper, onnx.TensorProto.FLOAT
    weights = {
        "w": random.standard_normal((8, 3, 3, 3)).astype("float32"),
        "m": random.standard_normal((8 * 81, CLASSES)).astype("float32"),
    }
    nodes = [
        helper.make_node("Conv", ["picture", "w"], ["c"], strides=[2, 2]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("Flatten", ["r"], ["f"]),
        helper.make_node("MatMul", ["f", "m"], ["scores"]),
    ]
    graph = helper.make_graph(
        nodes, "g",
        [helper.make_tensor_value_info("picture", real, (1, 3, SIZE, SIZE))],
        [helper.make_tensor_value_info("scores", real, (1, CLASSES))],
        [onnx.numpy_helper.from_array(v, k) for k, v in weights.items()],
    )  # fmt: skip
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=9), path)


def png(pixels):
    """Return a PNG of (height, width, 3) bytes."""
    height, width, _ = pixels.shape
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)

    def chunk(kind, data):
        check = zlib.crc32(kind + data)
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", check)

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass

    def end_headers(self):
        """A browser takes what is minutes old for fresh without asking, unless it is told."""
        self.send_header("Cache-Control", "no-cache")
        super().end_headers()


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """The folder of a demo, its address, and the path of its model."""
    folder = tmp_path_factory.mktemp("demo")
    network(folder / "tiny.onnx")
    (folder / "labels.txt").write_text("\n".join(f"kind <b>{i}</b>" for i in range(CLASSES)))
    out = folder / "page"
    words = ["web-demo", folder / "tiny.onnx", "-o", out, "--labels", folder / "labels.txt"]
    assert run(*words, "--mean", "0.5,0.4,0.3", "--std", "0.25") == 0
    handler = functools.partial(Quiet, directory=str(out))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield out, f"http://127.0.0.1:{server.server_port}/", folder / "tiny.onnx"
        server.shutdown()


def run(*words):
    line = ["slipway", *map(str, words)]
    with mock.patch.object(sys, "argv", line), pytest.raises(SystemExit) as left:
        main()
    return left.value.code or 0


def opened(browser, url, width=390):
    metrics = {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    browser.get("about:blank")
    browser.get_log("browser")
    browser.get(url)

    def text(name):
        return browser.find_element(By.ID, name).text

    return text


def test_picture_in_classes_out(served, browser, tmp_path):
    _, url, model = served
    pixels = np.random.default_rng(3).integers(0, 256, (SIZE, SIZE, 3)).astype("uint8")
    picture = tmp_path / "picture.png"
    picture.write_bytes(png(pixels))
    text = opened(browser, url)
    wait_for(lambda: text("state") == "ready")
    assert text("title") == "tiny"
    browser.find_element(By.ID, "file").send_keys(str(picture))
    wait_for(lambda: text("classes"))
    mod, params = tvm.relay.frontend.from_onnx(onnx.load(model))
    here = graph_executor.GraphModule(tvm.relay.build(mod, "llvm", params=params)["default"](cpu()))
    values = (pixels / 255 - [0.5, 0.4, 0.3]) / 0.25
    here.set_input("picture", values.transpose(2, 0, 1)[None].astype("float32"))
    here.run()
    scores = here.get_output(0).numpy()[0].astype("float64")
    shares = np.exp(scores - scores.max())
    shares /= shares.sum()
    wanted = [
        line
        for i in np.argsort(-shares)[:5]
        for line in (f"kind <b>{i}</b>", f"{100 * shares[i]:.1f} %")
    ]
    assert text("classes").split("\n") == wanted
    assert "ms in this browser" in text("time")
    browser.find_element(By.ID, "measure").click()
    wait_for(lambda: "ms in all" in text("sum"))
    rows = [row.text.split("\n") for row in browser.find_elements(By.CSS_SELECTOR, "#rows li")]
    assert len(rows) >= 2
    assert float(rows[0][1]) > 0
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 390
    # What is no picture is said so, and the page lives on.
    (tmp_path / "no.png").write_text("no picture")
    browser.find_element(By.ID, "file").send_keys(str(tmp_path / "no.png"))
    wait_for(lambda: "no picture" in text("hint"))
    browser.find_element(By.ID, "random").click()
    wait_for(lambda: text("state") == "ready")
    assert not [e for e in browser.get_log("browser") if e["level"] == "SEVERE"]


def save(path, nodes, inputs, outputs, **weights):
    helper = onnx.helper
    infos = [
        [helper.make_tensor_value_info(name, *about) for name, about in values.items()]
        for values in (inputs, outputs)
    ]
    constants = [onnx.numpy_helper.from_array(v, k) for k, v in weights.items()]
    made = [helper.make_node(*node[:3], **node[3]) for node in nodes]
    graph = helper.make_graph(made, "g", *infos, constants)
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=9), path)


def detector(path):
    """Boxes and their scores, for pictures."""
    real = onnx.TensorProto.FLOAT
    nodes = [
        ("Reshape", ["image", "size"], ["boxes"], {}),
        ("ReduceMax", ["boxes"], ["scores"], {"axes": [2], "keepdims": 0}),
        ("Cast", ["scores"], ["found"], {"to": onnx.TensorProto.INT64}),
    ]
    out = {"boxes": (real, (1, 300, 4)), "scores": (real, (1, 300))}
    out["found"] = (onnx.TensorProto.INT64, (1, 300))
    save(path, nodes, {"image": (real, (1, 3, 20, 20))}, out, size=np.array([1, 300, 4]))


def chooser(path):
    """Of a softmax the two largest and what they are, all chances, and what no index belongs to."""
    real = onnx.TensorProto.FLOAT
    rng = np.random.default_rng(5)
    nodes = [
        ("Flatten", ["sound"], ["flat"], {}),
        ("MatMul", ["flat", "m"], ["raw"], {}),
        ("Softmax", ["raw"], ["shares"], {}),
        ("TopK", ["shares", "two"], ["largest", "kinds"], {}),
        ("Sigmoid", ["raw"], ["chances"], {}),
        ("LpNormalization", ["raw"], ["embedding"], {}),
    ]
    outputs = {"largest": (real, (1, 2)), "kinds": (onnx.TensorProto.INT64, (1, 2))}
    outputs |= {"chances": (real, (1, 3)), "embedding": (real, (1, 3)), "raw": (real, (1, 3))}
    weights = {"m": rng.standard_normal((12, 3)).astype("float32"), "two": np.array([2])}
    save(path, nodes, {"sound": (real, (1, 12))}, outputs, **weights)


def spectrogram(path):
    """A quantised softmax over shares of 0.25 and 0.75, of what is shaped almost like a picture.

    How many sounds, and how long, is open.
    """
    kind = onnx.TensorProto.INT8
    nodes = [
        ("Cast", ["sound"], ["real"], {"to": onnx.TensorProto.FLOAT}),
        ("ReduceSum", ["real", "axes"], ["sum"], {"keepdims": 0}),
        ("Mul", ["sum", "zero"], ["none"], {}),
        ("Add", ["none", "shares"], ["two"], {}),
        ("QuantizeLinear", ["two", "scale", "point"], ["classes"], {}),
    ]
    weights = {
        "axes": np.array([1, 2]), "zero": np.zeros((1, 2), "float32"),
        "shares": np.array([[0.25, 0.75]], "float32"), "scale": np.float32(1 / 256),
        "point": np.int8(-128),
    }  # fmt: skip
    weights = {name: np.asarray(value) for name, value in weights.items()}
    save(
        path, nodes, {"sound": (kind, ("n", "t", 10, 1))}, {"classes": (kind, ("n", 2))}, **weights
    )


def check_chooser(classes, outputs):
    """Chances are what they are, in the order of the softmax, whose indices agree."""
    lists = {classes[i]: classes[i + 1 : i + 7] for i in range(0, len(classes), 7)}
    assert set(lists) == {"chances", "embedding", "raw"}
    order = lists["raw"][::2]
    assert lists["chances"][::2] == lists["embedding"][::2] == order
    assert set(order) == {"owl", "wren", "lark"}
    shares = [float(text.removesuffix(" %")) for text in lists["raw"][1::2]]
    assert sum(shares) == pytest.approx(100, abs=0.2)
    assert "%" in lists["chances"][1]
    assert "%" not in lists["embedding"][1]
    first = [float(value) for value in outputs[outputs.index("largest") + 1].split(", ")]
    assert [100 * value for value in first] == pytest.approx(shares[:2], abs=0.06)
    assert outputs[outputs.index("kinds") + 1] == ", ".join(order[:2])


def test_models_that_are_no_classifiers_of_pictures(browser, tmp_path):
    (tmp_path / "names.txt").write_text("owl\nwren\nlark\n\n")
    for make, dims in (
        (detector, ()),
        (spectrogram, ("--dim", "n=1..4", "--dim", "t=9..49")),
        (chooser, ("--labels", tmp_path / "names.txt")),
    ):
        make(tmp_path / f"{make.__name__}.onnx")
        model, out = tmp_path / f"{make.__name__}.onnx", tmp_path / make.__name__
        assert run("web-demo", model, "-o", out, *dims) == 0
    shown = json.loads((tmp_path / "spectrogram" / "about.json").read_text())["input"]["shape"]
    assert shown == [1, 49, 10, 1], "of a batch the least, of others the most"
    handler = functools.partial(Quiet, directory=str(tmp_path))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        for name, classes, outputs in (
            # The largest of each box: none of 300 is a class.
            ("detector", "", ["boxes", "float32, 1 \u00d7 300 \u00d7 4", "int64, 1 \u00d7 300"]),
            ("spectrogram", "class 1\n75.0 %\nclass 0\n25.0 %", []),
            # Lists of classes have a title each; the indices of the largest are called by name.
            ("chooser", 7 + 7 + 7, ["largest", "kinds", "float32, 1 \u00d7 2"]),
        ):
            text = opened(browser, f"http://127.0.0.1:{server.server_port}/{name}/")
            wait_for(lambda text=text: text("state") == "ready")
            enabled = browser.find_element(By.ID, "file").is_enabled()
            assert enabled == (name == "detector")
            browser.find_element(By.ID, "random").click()
            wait_for(lambda text=text: "ms in this browser" in text("time"))
            shown = text("classes")
            if name == "chooser":
                check_chooser(shown.split("\n"), text("outputs").split("\n"))
            assert shown == classes or len(shown.split("\n")) == classes
            assert all(part in text("outputs") for part in outputs)
            assert bool(text("outputs")) == bool(outputs)
            assert browser.execute_script("return document.documentElement.scrollWidth") <= 390
        server.shutdown()
    assert not [e for e in browser.get_log("browser") if e["level"] == "SEVERE"]


def test_classes_that_are_texts_name_the_scores_too():
    helper, real = onnx.helper, onnx.TensorProto.FLOAT
    node = helper.make_node(
        "LinearClassifier", ["x"], ["label", "p"], domain="ai.onnx.ml", post_transform="SOFTMAX",
        coefficients=[0.1 * i for i in range(12)], intercepts=[0.0] * 3,
        classlabels_strings=["owl", "wren", "lark"],
    )  # fmt: skip
    outputs = [
        helper.make_tensor_value_info("label", onnx.TensorProto.STRING, (1,)),
        helper.make_tensor_value_info("p", real, (1, 3)),
    ]
    given = helper.make_tensor_value_info("x", real, (1, 4))
    graph = helper.make_graph([node], "g", [given], outputs)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 1)]
    mod, _ = tvm.relay.frontend.from_onnx(
        helper.make_model(graph, opset_imports=opsets, ir_version=9)
    )
    names = ["lark", "owl", "wren"]
    label, scores = outputs_of(mod, [])
    assert sorted(label["labels"]) == sorted(scores["labels"]) == names
    assert (scores["kind"], scores["extents"]) == ("shares", ["3"])
    assert outputs_of(mod, ["a", "b", "c"])[1]["labels"] == ["a", "b", "c"]


def test_slow_network_and_a_missing_model(served, browser):
    out, url, _ = served
    about = json.loads((out / "about.json").read_text())
    assert (out / about["model"]).is_file()  # for browsers without relaxed SIMD
    model = out / about["relaxed"]
    browser.execute_cdp_cmd("Network.enable", {})
    slow = {"offline": False, "latency": 50, "downloadThroughput": 30_000, "uploadThroughput": -1}
    browser.get(url)
    browser.execute_script("return caches.delete('slipway')")
    browser.execute_cdp_cmd("Network.emulateNetworkConditions", slow)
    browser.execute_cdp_cmd("Network.setCacheDisabled", {"cacheDisabled": True})
    try:
        text = opened(browser, url)
        wait_for(lambda: "of" in text("loaded") or text("state") == "ready")
        wait_for(lambda: text("state") == "ready")
    finally:
        fast = {"offline": False, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
        browser.execute_cdp_cmd("Network.emulateNetworkConditions", fast)
        browser.execute_cdp_cmd("Network.setCacheDisabled", {"cacheDisabled": False})
    # It was kept: the page starts without the file, and says what is wrong without both.
    moved = model.rename(out / "away.wasm")
    try:
        text = opened(browser, url)
        wait_for(lambda: text("state") == "ready")
        browser.execute_script("return caches.delete('slipway')")
        text = opened(browser, url)
        wait_for(lambda: "404" in text("words"))
    finally:
        moved.rename(model)
    browser.find_element(By.ID, "again").click()
    wait_for(lambda: text("state") == "ready")


def test_wrong_options_are_refused(served, tmp_path, capsys):
    model = served[2]
    (tmp_path / "few.txt").write_text("owl\nwren\n")
    (tmp_path / "bytes.txt").write_bytes(b"\xe9tang")
    for words, said in (
        (["--target", "llvm"], "web/wasm"),
        (["--mean", "1,2"], "3 channels"),
        (["--mean", "a"], "numbers with commas"),
        (["--std", "0"], "not 0"),
        (["--scale", "0"], "more than 0"),
        (["--imagenet", "--std", "1"], "leave them out"),
        (
            ["--labels", tmp_path / "few.txt"],
            "names 2 classes, and no output has a number for each",
        ),
        (["--labels", tmp_path / "bytes.txt"], "bytes.txt is no text in UTF-8"),
    ):
        assert run("web-demo", model, "-o", tmp_path / "no", *words) == 2
        assert said in capsys.readouterr().err
        assert not (tmp_path / "no").exists()


def test_compile_writes_wasm(served, tmp_path):
    out = tmp_path / "tiny.wasm"
    assert run("compile", served[2], "--target", "web/wasm", "-o", out) == 0
    assert out.read_bytes()[:4] == b"\0asm"
