"""The page of one's own: a drawn stroke is a one."""

import functools
import http.server
import subprocess
import sys
import threading
import time

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By

pytest.importorskip("onnx")


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


def test_a_stroke_is_a_one(repository, browser, tmp_path):
    script = repository / "examples" / "web" / "build.py"
    subprocess.run([sys.executable, script, "--out", tmp_path], check=True, timeout=300)
    handler = functools.partial(Quiet, directory=str(tmp_path))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        browser.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": 800, "height": 800, "deviceScaleFactor": 1, "mobile": False},
        )
        browser.get(f"http://127.0.0.1:{server.server_port}/")

        def says(text):
            deadline = time.monotonic() + 60
            while browser.find_element(By.ID, "answer").text != text:
                assert time.monotonic() < deadline, browser.find_element(By.ID, "answer").text
                time.sleep(0.02)

        says("Ready.")
        pad = browser.find_element(By.ID, "pad")
        for _ in range(3):
            drawing = ActionChains(browser, duration=50).move_to_element_with_offset(pad, 0, -130)
            drawing.click_and_hold()
            for y in range(-120, 140, 10):
                drawing.move_to_element_with_offset(pad, 0, y)
            drawing.release().perform()
        says("It looks like 1.")
        server.shutdown()
