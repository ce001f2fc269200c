// The engines of the comparison, for node and for pages: each runs a model on the same numbers, and
// answers with `{run, output}`.

function numbers(count, dtype) {
  let state = 12345;
  const next = () => (state = (state * 48271) % 2147483647);
  const isReal = dtype.startsWith("float");
  return Array.from({ length: count }, () => (isReal ? next() / 2147483647 - 0.5 : next() % 100));
}

function typed(shape, dtype) {
  const values = numbers(shape.reduce((a, b) => a * b, 1), dtype);
  const kinds = { int8: Int8Array, uint8: Uint8Array, int32: Int32Array, float32: Float32Array };
  return dtype === "int64" ? BigInt64Array.from(values, BigInt) : kinds[dtype].from(values);
}

async function slipwayRunner({ load }, bytes, threads) {
  const model = await load(bytes, threads > 1 ? { threads } : {});
  for (const { name, shape, dtype } of model.inputs) {
    model.setInput(name, typed(shape, dtype));
  }
  const run = model.getFunction("run");
  return { run: async () => run(), output: async () => model.runSync()[model.outputs[0].name] };
}

async function onnxruntimeRunner(ort, bytes, threads, dist, provider = "wasm") {
  ort.env.wasm.numThreads = threads;
  ort.env.wasm.wasmPaths = dist;
  const session = await ort.InferenceSession.create(bytes,
    { executionProviders: [provider], graphOptimizationLevel: "all" });
  const feeds = {};
  session.inputMetadata.forEach(({ name, shape, type }) => {
    feeds[name] = new ort.Tensor(type, typed(shape, type), shape);
  });
  const run = () => session.run(feeds);
  return { run, output: async () => (await run())[session.outputNames[0]].data };
}

/** A run is over when its result is in the page's memory, as it is where the benchmark reads it. */
async function webgpuRunner(ort, bytes, threads, dist) {
  const { output } = await onnxruntimeRunner(ort, bytes, threads, dist, "webgpu");
  return { run: output, output };
}

async function litertRunner(litert, bytes, threads, wasm) {
  await litert.loadLiteRt(wasm, { threads: threads > 1 });
  const model = await litert.loadAndCompile(bytes,
    { accelerator: "wasm", cpuOptions: { numThreads: threads } });
  const inputs = model.getInputDetails().map(({ shape, dtype }) =>
    new litert.Tensor(typed([...shape], dtype), [...shape]));
  const results = async (read) => {
    const found = await model.run(inputs);
    const values = read ? found[0].toTypedArray().slice() : undefined;
    found.forEach((tensor) => tensor.delete());
    return values;
  };
  return { run: () => results(false), output: () => results(true) };
}

/** Start an engine: `engine` names it, `library` is its module, `place` where its WebAssembly lies. */
export function started(engine, library, bytes, threads, place) {
  const runner = {
    slipway: slipwayRunner, onnxruntime: onnxruntimeRunner, webgpu: webgpuRunner, litert: litertRunner,
  }[engine];
  return runner(library, bytes, threads, place);
}

/** Warm up, and return the beginning of the first output. */
export async function warmed({ run, output }) {
  for (let i = 0; i < 3; ++i) await run();
  return Array.from(await output(), Number).slice(0, 4096);
}
