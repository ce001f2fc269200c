"""The page in a browser: what it shows, at both widths and in both schemes."""

import dataclasses
from importlib.resources import files
from pathlib import Path

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

import slipway
from slipway.report import make
from slipway.report.compare import Change, Comparison, Numbers, Side
from slipway.report.compare_page import write_comparison
from slipway.report.data import BoardFit, Rewritten
from slipway.report.page import write_page

DIGITS = Path(str(files("slipway"))) / "models" / "digits" / "digits.onnx"
LONG = "a/name/that/no/screen/is/wide/enough/for/" * 6


@pytest.fixture(scope="module")
def report():
    model = slipway.compile(DIGITS, quiet=True)
    found = make.make_report(model.library, "digits", model.artifact, source=DIGITS, quiet=True)
    found.rewritten = [Rewritten(LONG, "Conv", "rewritten", "nn.conv2d nn.bias_add")]
    found.layers[0].name = LONG
    found.notes = ["<b>a note</b>"]
    return found


@pytest.fixture(scope="module")
def page(report, tmp_path_factory):
    return write_page(report, tmp_path_factory.mktemp("report") / "report.html")


class View:
    def __init__(self, browser, page, width=1280, scheme="light"):
        self.browser = browser
        metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        media = {"media": "", "features": [{"name": "prefers-color-scheme", "value": scheme}]}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        browser.get_log("browser")
        browser.get(page.as_uri())

    def find(self, selector):
        return self.browser.find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector):
        (found,) = self.find(selector)
        return found

    def run(self, script, *args):
        return self.browser.execute_script(script, *args)

    def complaints(self):
        return self.browser.get_log("browser")


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_shows_everything_without_scrolling_sideways(browser, page, report, width, scheme):
    view = View(browser, page, width, scheme)
    assert view.complaints() == []
    width_now, window = view.run("return [document.documentElement.scrollWidth, innerWidth]")
    assert width_now <= window == width
    assert len(view.find("#layer-rows .row:not(.names)")) == len(report.layers)
    shown = {card.get_attribute("id") for card in view.find("main > .card") if card.is_displayed()}
    assert shown == {"layers", "memory", "graph", "numbers", "nodes", "sizes", "repeat"}
    paper, ink = view.run(
        "const s = getComputedStyle(document.body); return [s.backgroundColor, s.color]"
    )
    brightness = [sum(map(int, c[4:-1].split(","))) for c in (paper, ink)]
    assert (brightness[0] > brightness[1]) == (scheme == "light")
    assert view.one("#notes li").text == "<b>a note</b>"


LINES = """
return [...document.querySelectorAll("td")].filter((cell) => {
  const range = document.createRange();
  range.selectNodeContents(cell);
  return new Set([...range.getClientRects()].map((box) => Math.round(box.top))).size > 1;
}).map((cell) => cell.textContent)
"""


def test_no_short_cell_is_broken_where_the_page_is_narrow(browser, page, report):
    """ "agrees" had a letter a line at 390 px, and "changed" of a comparison two."""
    broken = View(browser, page, 390).run(LINES)
    assert [text for text in broken if len(text) <= 14] == []
    changes = [Change("a_kernel_of_a_long_name" * 3, "changed", LONG, LONG)]
    side = Side("a", "llvm", [], [], {"file": 143360}, [])
    numbers = [Numbers(LONG, 0.1, 3.0, agrees=False)]
    found = Comparison(side, side, "today", changes, numbers=numbers)
    written = write_comparison(found, page.with_name("compare.html"))
    broken = View(browser, written, 390).run(LINES)
    assert [text for text in broken if len(text) <= 14] == []


@pytest.mark.parametrize("width", [1280, 390])
def test_what_boards_have_left_is_shown_at_every_width(browser, page, report, width):
    boards = [BoardFit("stm32f407-discovery", 1048576, 131072, -524288, 129500)] * 2
    found = dataclasses.replace(report, flash=[("code", 9)], ram=[("arena", 9)], boards=boards)
    written = write_page(found, page.with_name(f"boards-{width}.html"))
    view = View(browser, written, width)
    inside = "const b = document.getElementById('board-table').parentElement;"
    wide, room = view.run(f"{inside} return [b.scrollWidth, b.clientWidth]")
    assert wide <= room
    cells = [c.text for c in view.find("#board-table tbody tr:first-child td") if c.is_displayed()]
    assert cells[-1] == "does not fit"
    assert {"-524.3 KB", "129.5 KB"} <= set(cells)


def test_it_loads_nothing_from_elsewhere(browser, page):
    view = View(browser, page)
    assert view.run("return performance.getEntriesByType('resource').length") == 0
    text = page.read_text()
    assert "src=" not in text.replace("default-src", "").replace("script-src", "")
    assert "@import" not in text


def names(view):
    return [e.text.split("\n")[0] for e in view.find("#layer-rows .who")]


def test_layers_are_sorted_searched_and_opened(browser, page, report):
    view = View(browser, page)
    order = view.one("#layer-order")
    order.find_element(By.XPATH, "option[text()='heaviest weights']").click()
    heaviest = sorted(report.layers, key=lambda layer: -layer.weights_bytes)
    assert names(view)[0] == heaviest[0].name.split(";")[0]
    view.one("#layer-find").send_keys("dense")
    wanted = [one for one in report.layers if "dense" in f"{one.operators} {one.name}"]
    assert len(names(view)) == len(wanted) < len(report.layers)
    view.find("#layer-rows .row:not(.names)")[0].click()
    more = view.one("#layer-rows .more").text
    assert wanted[0].strategy in more
    assert wanted[0].kernel in more
    assert "agree" in more
    view.one("#layer-rows .more button").click()
    assert view.one("#graph-reading strong").text
    assert len(view.find(".node.chosen")) == 1


def test_the_bars_are_the_times(browser, page, report):
    view = View(browser, page)
    widths = view.run(
        "return [...document.querySelectorAll('#layer-rows .track i')].map((e) => e.offsetWidth)"
    )
    seconds = [layer.seconds for layer in report.layers]
    largest = max(range(len(seconds)), key=seconds.__getitem__)
    assert widths[largest] == max(widths)
    for width, time in zip(widths, seconds, strict=True):
        assert width == pytest.approx(max(1, widths[largest] * time / seconds[largest]), abs=1.5)


def test_the_memory_is_drawn_where_it_lies(browser, page, report):
    view = View(browser, page)
    boxes = view.run(
        "return [...document.querySelectorAll('rect.tensor')].map((e) => "
        "['x', 'y', 'width', 'height'].map((k) => Number(e.getAttribute(k))))"
    )
    memory = report.memory
    assert len(boxes) == len(memory.tensors)
    heights = [box[3] / tensor.size for box, tensor in zip(boxes, memory.tensors, strict=True)]
    assert max(heights) == pytest.approx(min(heights), rel=0.01)
    for i, (box, one) in enumerate(zip(boxes, memory.tensors, strict=True)):
        for other_box, other in zip(boxes[:i], memory.tensors[:i], strict=True):
            apart = one.last < other.first or other.last < one.first
            across = min(box[0] + box[2], other_box[0] + other_box[2]) - max(box[0], other_box[0])
            assert (across <= 0.01) == apart
    view.find("rect.tensor")[0].click()
    assert memory.tensors[0].name in view.one("#memory-reading").text


def boxes_of(view):
    return view.run(
        "const {x, y} = view.layout; return x.map((left, i) => [left, y[i]])",
    )


@pytest.mark.parametrize("which", ["before", "after"])
def test_nodes_do_not_lie_on_each_other_and_edges_go_down(browser, page, report, which):
    view = View(browser, page)
    view.one(f"#graph-{which}").click()
    nodes = getattr(report, which)
    corners = boxes_of(view)
    assert len(view.find("g.node")) == len(nodes) == len(corners)
    for i, (x, y) in enumerate(corners):
        assert all(abs(x - a) >= 190 or abs(y - b) >= 46 for a, b in corners[:i])
        assert all(corners[source][1] < y for source in nodes[i].inputs)
    assert len(view.find("path.edge")) == sum(len(node.inputs) for node in nodes)


def test_the_graph_is_searched_zoomed_and_leads_to_the_other_one(browser, page, report):
    view = View(browser, page)
    search = view.one("#graph-find")
    search.send_keys("conv2d")
    hits = sum("conv2d" in node.label for node in report.after)
    assert view.one("#graph-count").text == f"{hits} found"
    assert len(view.find(".node.found")) == hits
    search.send_keys(Keys.ENTER)
    assert len(view.find(".node.chosen")) == 1
    extent = "return document.querySelector('#graph-view svg').viewBox.baseVal.width"
    before = view.run(extent)
    view.one("#graph-in").click()
    assert view.run(extent) < before
    view.one("#graph-out").click()
    assert view.run(extent) == pytest.approx(before)
    view.one("#graph-reading button").click()
    assert view.one("#graph-before").get_attribute("aria-pressed") == "true"
    assert len(view.find(".node.chosen")) == 1


def test_a_graph_with_branches_of_a_thousand_nodes_is_drawn(browser, report, tmp_path):
    from slipway.report.data import DrawnNode

    nodes = [DrawnNode("x", "input", (), "float32[1]")]
    for i in range(1, 1000):
        nodes.append(DrawnNode(f"op{i}", "operator", (i - 1, max(0, i - 7)), "float32[1]"))
    large = dataclasses.replace(report, before=nodes, after=nodes)
    view = View(browser, write_page(large, tmp_path / "large.html"))
    assert view.complaints() == []
    assert len(view.find("g.node")) == 1000


def test_it_prints_in_light_colours_without_controls(browser, page):
    view = View(browser, page, scheme="dark")
    view.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    assert not any(e.is_displayed() for e in view.find(".controls"))
    assert (
        view.run("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    )
    printed = view.browser.execute_cdp_cmd("Page.printToPDF", {})["data"]
    assert len(printed) > 10000
