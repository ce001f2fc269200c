"""What every test may ask for: the folder of shared models, an emulator, an empty cache."""

import os
import shutil
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the checkout."""
    return REPOSITORY


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder `shared` beside the checkout, or where SLIPWAY_SHARED says."""
    folder = Path(os.environ.get("SLIPWAY_SHARED", REPOSITORY.parent / "shared"))
    if not folder.is_dir():
        pytest.skip(f"no folder {folder} with shared models; set SLIPWAY_SHARED")
    return folder


@pytest.fixture
def qemu():
    """A function from "aarch64" to the path of its user-mode emulator; skips when missing."""

    def find(arch: str) -> str:
        path = shutil.which(f"qemu-{arch}-static") or shutil.which(f"qemu-{arch}")
        if path is None:
            pytest.skip(f"no qemu-{arch}: apt-get install qemu-user-static")
        return path

    return find


@pytest.fixture
def cache_folder(tmp_path, monkeypatch):
    """An empty cache folder, with the kernel cache on and nothing remembered from before."""
    from slipway.codegen.llvm import machine

    monkeypatch.setenv("SLIPWAY_CACHE", str(tmp_path))
    monkeypatch.delenv("SLIPWAY_KERNEL_CACHE", raising=False)
    machine.part_object.cache_clear()
    yield tmp_path
    machine.part_object.cache_clear()


@pytest.fixture(scope="module")
def browser():
    """Headless Chromium, driven by selenium."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("no Chromium: apt-get install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    running = webdriver.Chrome(options=options, service=Service(driver))
    running.set_page_load_timeout(120)
    yield running
    running.quit()
