// A thread of a program: the same module over the same memory, with a stack of its own.  slipway.mjs
// starts it where a page is isolated, and in node; it works on parallel loops until they are over.

function start(port, { module, memory, stack }) {
  let exports;
  try {
    exports = new WebAssembly.Instance(module, { env: { memory } }).exports;
    exports.__stack_pointer.value = stack;
  } catch (cause) {
    port.postMessage({ error: String(cause.message) });
    return;
  }
  port.postMessage({});
  for (let isOver = false; !isOver; ) {
    try {
      exports.slw_web_serve();
      isOver = true;
    } catch {
      exports.__stack_pointer.value = stack;
      exports.slw_web_trapped();
    }
  }
  port.postMessage({ isOver: true });
  port.close();
}

if (typeof self === "undefined") { // node; by a name that bundlers for pages do not look for
  const threads = "node:worker_threads";
  import(/* webpackIgnore: true */ /* @vite-ignore */ threads)
    .then(({ parentPort }) => parentPort.once("message", (about) => start(parentPort, about)));
} else {
  self.onmessage = ({ data }) => start(self, data);
}
