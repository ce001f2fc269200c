"""Take the pictures of docs/screens.md: the report, the farm's page, commands in a terminal.

    python tools/screens.py [--only report,farm,terminal]

Each picture is of what this checkout does now: a model is compiled, a farm of virtual devices is
started and ended. Needs Chromium and its driver, QEMU's user-mode emulators and the test packages.
"""

import argparse
import json
import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.resources import files
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

from PIL import Image
from rich.console import Console
from rich.text import Text
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By

import slipway

FOLDER = Path(__file__).parents[1] / "docs" / "screens"
DIGITS = Path(str(files("slipway"))) / "models" / "digits" / "digits.onnx"
COLUMNS = 100
COLOURS = 64  # of a picture's palette: pages are flat
TERMINALS = {
    "check": ["check", "digits.onnx", "--target", "raspberry-pi/4b-aarch64"],
    "fit": ["fit", "digits.onnx", "--all-boards"],
    "profile": ["profile", "digits.onnx"],
}


def _browser() -> webdriver.Chrome:
    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"):
        options.add_argument(argument)
    return webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))


def _take(browser: webdriver.Chrome, name: str, url: str, ready: Callable[[Any], bool]) -> None:
    """Write a page at both widths and in both schemes."""
    for width, height in ((1280, 900), (390, 844)):
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        for scheme in ("light", "dark"):
            feature = {"name": "prefers-color-scheme", "value": scheme}
            browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
            browser.get(url)
            deadline = time.monotonic() + 60
            while not ready(browser):
                if time.monotonic() > deadline:
                    raise TimeoutError(f"{url} does not show what it should")
                time.sleep(0.1)
            picture = Image.open(BytesIO(browser.get_screenshot_as_png())).convert("RGB")
            path = FOLDER / f"{name}-{width}-{scheme}.png"
            picture.quantize(COLOURS).save(path, optimize=True)
            print(path.name, path.stat().st_size)


def take_report(browser: webdriver.Chrome) -> None:
    """The report of the digits model for this machine."""
    with tempfile.TemporaryDirectory() as folder:
        page = slipway.compile(DIGITS, quiet=True).report(Path(folder) / "report.html")
        _take(browser, "report", page.as_uri(), lambda b: b.find_element(By.ID, "layers"))


def _slipway(*arguments: str) -> str:
    command = [sys.executable, "-m", "slipway", *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def take_farm(browser: webdriver.Chrome) -> None:
    """The page of a farm with two kinds of virtual devices, one of which is in use."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_RUNTIME_DIR"] = folder
        farm = json.loads(
            _slipway("farm", "up", "--virtual", "2", "--kinds", "aarch64,armv7", "--json")
        )
        try:
            host, _, port = farm["tracker"].rpartition(":")
            token = Path(farm["token_file"]).read_text().strip()
            with slipway.rpc.connect_tracker(host, int(port), token=token) as tracker:
                session = tracker.request("aarch64", timeout=60)
                session.ping(b"in use")
                _take(
                    browser,
                    "farm",
                    farm["page"],
                    lambda b: len(b.find_elements(By.CSS_SELECTOR, "#rows tr")) == 4,
                )
                session.close()
        finally:
            _slipway("farm", "down")


def _terminal(command: list[str], folder: str) -> str:
    """Return what a command prints on a terminal, escapes included."""
    read, write = pty.openpty()
    env = {**os.environ, "COLUMNS": str(COLUMNS), "TERM": "xterm-256color", "FORCE_COLOR": "1"}
    process = subprocess.Popen(
        [sys.executable, "-m", "slipway", *command],
        stdin=write, stdout=write, stderr=subprocess.DEVNULL, env=env, cwd=folder,
    )  # fmt: skip
    os.close(write)
    printed = b""
    try:
        while piece := os.read(read, 65536):
            printed += piece
    except OSError:  # the terminal has no writer any more
        pass
    os.close(read)
    if process.wait():
        raise RuntimeError(f"slipway {' '.join(command)} ends with {process.returncode}")
    return printed.decode().replace("\r\n", "\n")


def take_terminals(_: webdriver.Chrome) -> None:
    """Commands with what they print, as SVG that fetches no font."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copyfile(DIGITS, Path(folder) / "digits.onnx")
        for name, command in TERMINALS.items():
            shown = ["slipway", *command]
            console = Console(record=True, width=COLUMNS, file=StringIO())
            console.print(Text.from_ansi(f"$ {' '.join(shown)}\n{_terminal(command, folder)}"))
            svg = console.export_svg(title="", unique_id=name)
            path = FOLDER / f"terminal-{name}.svg"
            path.write_text(re.sub(r"@font-face \{.*?\}", "", svg, flags=re.DOTALL))
            print(path.name, path.stat().st_size)


SCREENS = {"report": take_report, "farm": take_farm, "terminal": take_terminals}


def main() -> None:
    """Take the pictures that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default=",".join(SCREENS), help="report, farm, terminal")
    chosen = parser.parse_args().only.split(",")
    FOLDER.mkdir(exist_ok=True)
    browser = _browser()
    try:
        for name in chosen:
            SCREENS[name](browser)
    finally:
        browser.quit()


if __name__ == "__main__":
    main()
