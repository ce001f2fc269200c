"""An engine in a page of headless Chromium, timed by the processor time of its process."""

import functools
import gzip
import http.server
import os
import shutil
import threading
import time
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.chrome.service import Service

HERE = Path(__file__).parent
TICK_MS = 1e3 / os.sysconf("SC_CLK_TCK")
SECONDS = 1.5  # of one engine's turn: processor time comes in steps of a tick
START_S = 120


class _Files(http.server.SimpleHTTPRequestHandler):
    """The page, the engines and the model, whose addresses a table leads to files."""

    def __init__(self, *args, routes, served, **options):
        self.routes = routes
        self.served = served
        super().__init__(*args, **options)

    def translate_path(self, path):
        name = path.partition("?")[0].lstrip("/")
        for prefix, root in self.routes.items():
            if name.startswith(prefix):
                found = str(root) + name.removeprefix(prefix)
                if not prefix.startswith("own/"):  # the benchmark's own
                    self.served.add(found)
                return found
        return str(HERE / "none")

    def end_headers(self):
        self.send_header("Cross-Origin-Opener-Policy", "same-origin")
        self.send_header("Cross-Origin-Embedder-Policy", "require-corp")
        super().end_headers()

    def log_message(self, *args):
        pass


@functools.lru_cache(maxsize=64)
def compressed_bytes(path):
    """Return what a server that compresses sends of a file: of each one the smaller form."""
    content = Path(path).read_bytes()
    return min(len(content), len(gzip.compress(content, 6)))


class Page:
    """An engine with one model in a browser of its own, whose caches are empty.

    `ready` holds the beginning of the output, and the milliseconds from the navigation to the first
    inference; `wire_bytes` is what the page fetched until then, compressed.
    """

    flags = ("--disable-gpu",)
    process = b"--type=renderer"  # a word of the command of those whose time is a run's

    def __init__(self, name, model, js_folder, modules, threads=1):
        routes = {
            "own/": f"{HERE}/", "js/": f"{js_folder}/", "modules/": f"{modules}/",
            "model": Path(model),
        }  # fmt: skip
        served = set()
        handler = functools.partial(_Files, routes=routes, served=served)
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium")
        for word in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", *self.flags):
            options.add_argument(word)
        self.service = Service(shutil.which("chromedriver"))
        self.browser = webdriver.Chrome(options=options, service=self.service)
        self.browser.set_script_timeout(START_S)
        address = f"http://127.0.0.1:{self.server.server_port}/own/page.html"
        self.browser.get(f"{address}?{name}&model&{threads}")
        deadline = time.monotonic() + START_S
        while (ready := self.browser.execute_script("return window.ready")) is None:
            if time.monotonic() > deadline:
                ready = {"error": f"nothing after {START_S} s"}
                break
            time.sleep(0.05)
        self.ready = ready
        self.wire_bytes = sum(map(compressed_bytes, served))
        self.times = []
        self.walls = []
        self.count = 1

    def measure(self, seconds=SECONDS):
        """Run for about so long."""
        start = self._used_ms()
        wall = self.browser.execute_async_script(
            "const done = arguments[1]; window.turn(arguments[0]).then(done);", self.count
        )
        used = max(TICK_MS, self._used_ms() - start)
        self.times.append(used / self.count)
        self.walls.append(wall)
        self.count = max(1, round(1e3 * seconds / max(wall, 1e-3)))

    def _used_ms(self):
        """Return the processor time of the processes that this browser's driver began."""
        parents, found = {}, []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
                words = (folder / "cmdline").read_bytes()
            except OSError:
                continue
            parents[int(folder.name)] = int(fields[1])
            if self.process in words:
                found.append((int(folder.name), int(fields[11]) + int(fields[12])))
        return TICK_MS * sum(ticks for pid, ticks in found if self._is_ours(pid, parents))

    def _is_ours(self, pid, parents):
        while pid in parents:
            if pid == self.service.process.pid:
                return True
            pid = parents[pid]
        return False

    def close(self):
        self.browser.quit()
        self.server.shutdown()


class WebGPUPage(Page):
    """The same with WebGPU on SwiftShader, timed by all of Chromium's processes."""

    flags = (
        "--enable-unsafe-webgpu", "--ignore-gpu-blocklist", "--use-webgpu-adapter=swiftshader",
        "--use-vulkan=swiftshader", "--enable-features=Vulkan,WebGPU",
    )  # fmt: skip
    process = b""
