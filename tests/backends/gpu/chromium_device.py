"""WebGPU in headless Chromium as a device of the tests: WGSL by Tint, on the processor."""

import base64
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
  window.bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  window.text = (bytes) => {
    let all = "";
    for (let at = 0; at < bytes.length; at += 8192)
      all += String.fromCharCode(...bytes.subarray(at, at + 8192));
    return btoa(all);
  };
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
  for (const [binding, access, data] of given) {
    const held = buffer(bytes(data), U.STORAGE | U.COPY_SRC);
    entries.push({ binding, resource: { buffer: held } });
    if (access === "read_write") written.push([binding, held]);
  }
  if (numbers) {
    const held = buffer(bytes(numbers[1]), U.UNIFORM);
    entries.push({ binding: numbers[0], resource: { buffer: held } });
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
  const found = [];
  for (const [binding, to] of copies) {
    await to.mapAsync(GPUMapMode.READ);
    found.push([binding, text(new Uint8Array(to.getMappedRange()))]);
  }
  return { found };
})().then(done, (error) => done({ error: String(error) }));
"""


class Refused(Exception):
    """What the browser says of a kernel."""


class _Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>kernels</title>")

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
        tensors = [[n, access, _text(data)] for n, (access, data) in given.items()]
        uniform = None if numbers is None else [numbers[0], _text(numbers[1])]
        done = self.browser.execute_async_script(_RUN, name, text, grid, tensors, uniform)
        if "error" in done:
            raise Refused(done["error"])
        return {number: base64.b64decode(data) for number, data in done["found"]}


def _text(data):
    return base64.b64encode(data).decode()
