"""What every test may ask for: the folder of shared models, an emulator, an empty cache."""

import functools
import gc
import os
import shutil
import sys
from pathlib import Path

import pytest
import typer.testing

# Every program that a test compiles is verified between all passes; so it is in processes that
# tests start (transform/verify.py).
os.environ.setdefault("SLIPWAY_VERIFY", "1")

# Some tests start the interpreter anew, which then takes three times as long where nobody keeps
# what it compiles of the package.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Each line that a test gives to the command line would make all commands anew: 65 ms.
typer.testing._get_command = functools.cache(typer.testing._get_command)

# Torch, transformers and thousands of tests are some million objects, over which Python goes again
# and again in search of cycles.
gc.set_threshold(10_000)

REPOSITORY = Path(__file__).resolve().parent.parent


class _AtOnce:
    """Names a failure when it happens: a run that is ended, or its log cut, has told it."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        terminal = self._config.pluginmanager.get_plugin("terminalreporter")
        if report.failed and terminal is not None:
            last = str(report.longrepr).strip().splitlines()[-12:]
            terminal.ensure_newline()
            terminal.write_line("\n".join([f"{report.when} of {report.nodeid} failed:", *last]))


_FAILED = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item):
    report = yield
    if report.failed:
        item.stash[_FAILED] = True
    return report


def _emptied(folder: Path) -> None:
    """Free what a folder takes; its name stays, so that no later file has the path of an old one.

    The loader gives a library that is open to whoever asks for another one of its path.
    """
    for entry in folder.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry, ignore_errors=True)
        else:
            entry.unlink()


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # a worker of xdist has no terminal
        config.pluginmanager.register(_AtOnce(config))


@pytest.fixture
def tmp_path(tmp_path, request):
    """The test's own folder, which is kept with what is in it where the test fails."""
    yield tmp_path
    if not request.node.stash.get(_FAILED, False):
        _emptied(tmp_path)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef, request):
    """Let go what a module's fixture made with `tmp_path_factory` when the module has passed."""
    if fixturedef.scope == "session" or "tmp_path_factory" not in fixturedef.argnames:
        return (yield)
    base = request.getfixturevalue("tmp_path_factory").getbasetemp()
    before, made = set(base.iterdir()), set()

    def let_go():
        if not request.session.testsfailed:
            for folder in made:
                _emptied(folder)

    fixturedef.addfinalizer(let_go)  # it runs after what the fixture does itself
    value = yield
    made |= set(base.iterdir()) - before
    return value


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
    from slipway.codegen.c import backend
    from slipway.codegen.llvm import machine

    monkeypatch.setenv("SLIPWAY_CACHE", str(tmp_path))
    monkeypatch.delenv("SLIPWAY_KERNEL_CACHE", raising=False)
    for part in (machine.part_object, backend._part_object):
        part.cache_clear()
    yield tmp_path
    for part in (machine.part_object, backend._part_object):
        part.cache_clear()


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
