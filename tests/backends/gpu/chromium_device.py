"""WebGPU in headless Chromium as a device of the tests: WGSL by Tint, on the processor."""

import http.server
import shutil
import threading

import pytest
from webgpu_device import WgslDevice

_FLAGS = ("--headless=new", "--no-sandbox", "--enable-unsafe-webgpu", "--ignore-gpu-blocklist",
          "--use-webgpu-adapter=swiftshader", "--use-vulkan=swiftshader",
          "--enable-features=Vulkan,WebGPU")  # fmt: skip
_BEGIN = """
const done = arguments[0];
(async () => {
  const adapter = navigator.gpu && await navigator.gpu.requestAdapter();
  if (!adapter) return "no adapter";
  window.device = await adapter.requestDevice();
  window.pipelines = new Map();
  window.bytes = async (binding) => new Uint8Array(await (await fetch(binding)).arrayBuffer());
  return "";
})().then(done, (error) => done(String(error)));
"""
_RUN = """
const [name, code, grid, given, numbers, done] = arguments;
(async () => {
  device.pushErrorScope("validation");
  if (!pipelines.has(name + code)) {
    const module = device.createShaderModule({ code });
    const wrong = (await module.getCompilationInfo()).messages.filter((m) => m.type === "error");
    if (wrong.length) {
      await device.popErrorScope();
      return { error: `${wrong[0].lineNum}: ${wrong[0].message}` };
    }
    const compute = { module, entryPoint: name };
    pipelines.set(name + code, device.createComputePipeline({ layout: "auto", compute }));
  }
  const pipeline = pipelines.get(name + code);
  const buffer = (data, usage) => {
    const made = device.createBuffer({ size: data.length, usage, mappedAtCreation: true });
    new Uint8Array(made.getMappedRange()).set(data);
    made.unmap();
    return made;
  };
  const U = GPUBufferUsage, entries = [], written = [];
  for (const [binding, access] of given) {
    const held = buffer(await bytes(binding), U.STORAGE | U.COPY_SRC);
    entries.push({ binding, resource: { buffer: held } });
    if (access === "read_write") written.push([binding, held]);
  }
  if (numbers !== null) {
    const held = buffer(await bytes(numbers), U.UNIFORM);
    entries.push({ binding: numbers, resource: { buffer: held } });
  }
  const group = device.createBindGroup({ layout: pipeline.getBindGroupLayout(0), entries });
  const encoder = device.createCommandEncoder();
  const pass = encoder.beginComputePass();
  pass.setPipeline(pipeline);
  pass.setBindGroup(0, group);
  pass.dispatchWorkgroups(...grid);
  pass.end();
  const copies = written.map(([binding, held]) => {
    const to = device.createBuffer({ size: held.size, usage: U.COPY_DST | U.MAP_READ });
    encoder.copyBufferToBuffer(held, 0, to, 0, held.size);
    return [binding, to];
  });
  device.queue.submit([encoder.finish()]);
  const error = await device.popErrorScope();
  if (error) return { error: error.message };
  for (const [binding, to] of copies) {
    await to.mapAsync(GPUMapMode.READ);
    const body = new Uint8Array(to.getMappedRange()).slice();
    await fetch(binding, { method: "POST", body });
  }
  return {};
})().then(done, (error) => done({ error: String(error) }));
"""


class Refused(Exception):
    """What the browser says of a kernel."""


class _Page(http.server.BaseHTTPRequestHandler):
    """An empty page, and the bytes of a kernel's tensors by binding: given, and written back."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        number = self.path.strip("/")
        body = b"<!doctype html><title>kernels</title>"
        if number.isdecimal():
            body = self.server.given[int(number)]
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.written[int(self.path.strip("/"))] = body
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args):
        pass


class ChromiumDevice(WgslDevice):
    """WGSL by a page of Chromium: `navigator.gpu` is there on localhost."""

    refusals = Refused

    def __init__(self, folder):
        webdriver = pytest.importorskip("selenium.webdriver", reason="pip install selenium")
        paths = {name: shutil.which(name) for name in ("chromium", "chromedriver")}
        if None in paths.values():
            pytest.skip("no Chromium: apt-get install chromium chromium-driver")
        options = webdriver.ChromeOptions()
        options.binary_location = paths["chromium"]
        for flag in _FLAGS:
            options.add_argument(flag)
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Page)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        service = webdriver.ChromeService(paths["chromedriver"])
        self.browser = webdriver.Chrome(options=options, service=service)
        self.browser.set_script_timeout(120)
        self.browser.get(f"http://127.0.0.1:{self.server.server_port}/")
        problem = self.browser.execute_async_script(_BEGIN)
        if problem:
            self.close()
            pytest.skip(f"no WebGPU in this Chromium: {problem}")
        super().__init__(folder)

    def close(self):
        """End the browser and the server of its page."""
        self.browser.quit()
        self.server.shutdown()
        self.server.server_close()

    def dispatch(self, name, text, grid, given, numbers):
        """Run a kernel."""
        self.server.written = {}
        self.server.given = {n: data for n, (_, data) in given.items()}
        if numbers is not None:
            self.server.given[numbers[0]] = numbers[1]
        tensors = [[n, access] for n, (access, _) in given.items()]
        uniform = None if numbers is None else numbers[0]
        done = self.browser.execute_async_script(_RUN, name, text, grid, tensors, uniform)
        if "error" in done:
            raise Refused(done["error"])
        return self.server.written
