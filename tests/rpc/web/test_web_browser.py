"""The tracker's page in a browser: what it shows, also on a phone, and who acts through it."""

import time

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from tests.rpc.web import test_web

from slipway.rpc.farm.view import take_sample
from slipway.rpc.web import feed as web_feed

LONG = "kind-with-a-name-that-is-much-longer-than-the-screen-of-any-phone-is-wide"


@pytest.fixture
def site(monkeypatch):
    monkeypatch.setattr(web_feed, "PERIOD_S", 0.05)
    running = test_web.Site(token="secret")
    for number in range(4):
        running.add("rpi4", 9090 + number)
    running.add(LONG, 9100)
    running.hand_out(key="rpi4")
    failed = running.hand_out(key=LONG)
    running.run(running.farm.idle, failed, failed.lease, "SIGSEGV in <b>conv2d</b>")
    running.run(take_sample, running.farm)
    running.run(take_sample, running.farm)
    yield running
    running.stop()


class Page:
    def __init__(self, browser, site, width=1280, height=900):
        self.browser = browser
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        browser.get_log("browser")
        browser.get(f"http://127.0.0.1:{site.port}/")
        self.wait(lambda: self.text("link") == "live")

    def wait(self, condition):
        deadline = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < deadline, self.browser.get_log("browser")
            time.sleep(0.02)

    def find(self, selector):
        return self.browser.find_elements(By.CSS_SELECTOR, selector)

    def text(self, name):
        return self.browser.find_element(By.ID, name).text

    def run(self, script, *args):
        return self.browser.execute_script(script, *args)

    def rows(self):
        """Return the texts of the rows that are visible."""
        return self.run(
            "return [...document.querySelectorAll('#rows tr:not([hidden])')]"
            ".map((row) => row.innerText)"
        )

    def button(self, row, word):
        (found,) = [b for b in self.find(f"#rows tr:nth-child({row}) button") if b.text == word]
        return found


def test_page_shows_the_farm_and_follows_it(browser, site):
    page = Page(browser, site)
    assert (page.text("online"), page.text("used"), page.text("waiting")) == ("5", "1", "0")
    assert len(page.rows()) == 5
    assert sum("in use" in row for row in page.rows()) == 1
    assert "ana@here 7" in " ".join(page.rows())
    (error,) = page.find("#errors li")
    assert "session failed" in error.text
    assert "SIGSEGV in <b>conv2d</b>" in error.text  # as text, never as markup
    site.add("phone", 9300)
    page.wait(lambda: len(page.rows()) == 6)
    for _ in range(4):
        site.run(site.farm.request, "phone", 1, "slipway 0.1 ben@there 9", lambda _: None)
    page.wait(lambda: page.text("waiting") == "3")
    assert "ben@there 9" in page.text("queue")
    site.run(lambda: site.farm.remove(site.farm.devices[1], "it was silent for 12 s"))
    page.wait(lambda: "offline" in " ".join(page.rows()))
    assert page.text("online-more") == "1 offline"
    assert page.run("return document.querySelector('#chart path.busy').getAttribute('d')").count(
        "L"
    )
    assert "online" in page.find("#chart")[0].get_attribute("aria-label")
    severe = [line for line in browser.get_log("browser") if line["level"] in ("SEVERE", "WARNING")]
    assert severe == []


def test_before_anything_has_come_the_page_says_nothing(browser, site):
    blocked = {"urls": ["*api/events*"]}
    browser.execute_cdp_cmd("Network.enable", {})
    browser.execute_cdp_cmd("Network.setBlockedURLs", blocked)
    try:
        browser.get(f"http://127.0.0.1:{site.port}/")
        time.sleep(1.2)  # what counts seconds has run
        browser.find_element(By.ID, "find").send_keys("x")
        words = browser.find_element(By.TAG_NAME, "main").text
        figures = [e.text for e in browser.find_elements(By.CSS_SELECTOR, ".tile .figure")]
    finally:
        browser.execute_cdp_cmd("Network.setBlockedURLs", {"urls": []})
        browser.execute_cdp_cmd("Network.disable", {})
    assert figures == ["\u2013"] * 4
    for claim in ("0\n", "Nobody waits", "No session", "None since", "No device"):
        assert claim not in words, words


@pytest.mark.parametrize("signed_in", [False, True])
def test_phone_does_not_scroll_sideways(browser, site, signed_in):
    page = Page(browser, site, 390, 844)
    if signed_in:
        sign_in(page)
    page.wait(lambda: len(page.rows()) == 5)
    width = "return [document.documentElement.scrollWidth, window.innerWidth]"
    assert page.run(width) == [390, 390]
    wide = page.run(
        "return [...document.querySelectorAll('main *')].filter((e) => e.getClientRects().length"
        " && e.getBoundingClientRect().right > 391).map((e) => e.outerHTML.slice(0, 80))"
    )
    assert wide == []
    small = page.run(
        "return [...document.querySelectorAll('button')].filter((e) => e.offsetParent"
        " && e.getBoundingClientRect().height < 36).map((e) => e.textContent)"
    )
    assert small == []  # a thumb finds every button


def test_search_and_filter(browser, site):
    page = Page(browser, site)
    page.find("#find")[0].send_keys("9092")
    page.wait(lambda: len(page.rows()) == 1)
    page.find("#find")[0].clear()
    page.find("#find")[0].send_keys(Keys.SPACE)
    (used,) = [chip for chip in page.find("#chips button") if chip.text.startswith("In use")]
    used.click()
    page.wait(lambda: len(page.rows()) == 1)
    assert used.get_attribute("aria-pressed") == "true"
    assert "9090" in page.rows()[0]


def test_chart_is_read_with_the_keyboard(browser, site):
    page = Page(browser, site)
    chart = page.find("#chart")[0]
    assert page.text("reading") == ""
    chart.send_keys(Keys.ARROW_LEFT)
    assert "in use" in page.text("reading")
    page.run("document.activeElement.blur()")
    assert page.text("reading") == ""


def sign_in(page, token="secret"):
    page.wait(lambda: page.find("#admin")[0].is_displayed())
    page.find("#admin")[0].click()
    page.find("#token")[0].send_keys(token, Keys.ENTER)
    if token == "secret":
        page.wait(lambda: page.text("admin") == "Sign out")


def test_administrator_at_work(browser, site):
    page = Page(browser, site)
    assert page.find("#rows button") == []
    sign_in(page, "wrong")
    page.wait(lambda: "not the administrator's token" in page.text("sign-in-error"))
    page.find("#token")[0].send_keys("secret", Keys.ENTER)
    page.wait(lambda: page.text("admin") == "Sign out")
    # Rows are sorted by kind: the long name, then the four boards; the first board is in use.
    page.button(1, "Drain").click()
    page.wait(lambda: "out of service" in page.rows()[0])
    page.button(1, "Resume").click()
    page.wait(lambda: "free" in page.rows()[0])
    page.button(2, "End session").click()
    page.wait(lambda: page.find("#confirm")[0].is_displayed())
    page.find("#confirm button[value=no]")[0].click()
    assert "in use" in page.rows()[1]
    page.button(2, "End session").click()
    page.wait(lambda: page.find("#confirm")[0].is_displayed())
    page.find("#confirm button[value=yes]")[0].click()
    page.wait(lambda: "free" in page.rows()[1])
    assert site.farm.devices[1].link.released
    page.find("#admin")[0].click()
    page.wait(lambda: page.text("admin") == "Sign in")
    page.wait(lambda: page.find("#rows button") == [])


def test_notes_reservations_and_a_day(browser, site):
    page = Page(browser, site)
    assert "a board" in page.rows()[0]  # the device's own description
    sign_in(page)
    page.wait(lambda: page.text("admin") == "Sign out")
    page.button(1, "Manage").click()
    page.wait(lambda: page.find("#manage")[0].is_displayed())
    for name, text in (("note", "keep the <b>cable</b> free"), ("tags", "camera, rack 2")):
        page.find(f"#{name}")[0].send_keys(text)
    page.find("#who")[0].send_keys("ana")
    page.find("#manage-form [type=submit]")[0].click()
    page.wait(lambda: "for ana until" in page.rows()[0])
    assert "keep the <b>cable</b> free" in page.rows()[0]
    assert [tag.text for tag in page.find("#rows .tag")] == ["camera", "rack 2"]
    page.find("#find")[0].send_keys("rack 2")
    page.wait(lambda: len(page.rows()) == 1)
    page.find("#find")[0].send_keys(Keys.BACKSPACE * 10)
    page.button(1, "Manage").click()
    assert page.run("return document.getElementById('who').value") == "ana"
    page.run("document.getElementById('who').value = ''")
    page.find("#manage-form [type=submit]")[0].click()
    page.wait(lambda: "for ana" not in page.rows()[0])
    page.find("#spans button")[1].click()
    page.wait(lambda: page.text("chart-title") == "Last day")
    page.wait(lambda: "24 h ago" in page.find("#chart")[0].text)
    assert "session failed" not in page.text("jobs")
    (job,) = page.find("#jobs li")
    assert "SIGSEGV in <b>conv2d</b>" in job.text


CONTRAST = """
const light = (c) => { const [r, g, b] = c.match(/[\\d.]+/g).map(Number).slice(0, 3)
  .map((v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
const behind = (e) => { for (; e; e = e.parentElement) {
  const c = getComputedStyle(e).backgroundColor;
  if (!/, 0\\)$/.test(c)) return c; } return "rgb(255, 255, 255)"; };
return [...document.querySelectorAll("main *, header *, footer *")].filter((e) => e.offsetParent &&
  [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim())).map((e) => {
    const a = light(getComputedStyle(e).color), b = light(behind(e));
    return [(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), e.textContent.slice(0, 40)]; })
  .filter(([ratio]) => ratio < 4.5);
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_contrast_and_everything_a_name(browser, site, scheme):
    feature = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", feature)
    page = Page(browser, site)
    sign_in(page)
    page.wait(lambda: len(page.rows()) == 5)
    assert page.run(CONTRAST) == []
    tree = browser.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    roles = ("button", "textbox", "searchbox", "link", "table", "region", "img")
    nameless = [
        node["role"]["value"]
        for node in tree
        if not node.get("ignored")
        and node.get("role", {}).get("value") in roles
        and not node.get("name", {}).get("value")
    ]
    assert nameless == []
    dark = page.run("return getComputedStyle(document.body).backgroundColor")
    assert (dark == "rgb(14, 20, 27)") == (scheme == "dark")
