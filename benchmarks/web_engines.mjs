// The engines of the comparison, for node and for pages: each runs a model on the same numbers.

function numbers(count, dtype) {
  let state = 12345;
  const next = () => (state = (state * 48271) % 2147483647);
  const isReal = dtype.startsWith("float");
  return Array.from({ length: count }, () => (isReal ? next() / 2147483647 - 0.5 : next() % 100));
}

/** Return `{run, output}` of a model for Slipway; `bytes` are those of its .wasm. */
export async function slipwayRunner({ load }, bytes) {
  const model = await load(bytes);
  for (const { name, shape, dtype } of model.inputs) {
    model.setInput(name, numbers(shape.reduce((a, b) => a * b, 1), dtype));
  }
  const run = model.getFunction("run");
  return { run: async () => run(), output: async () => model.runSync()[model.outputs[0].name] };
}

/** The same for onnxruntime-web; `dist` is where its WebAssembly lies. */
export async function onnxruntimeRunner(ort, bytes, dist) {
  ort.env.wasm.numThreads = 1;
  ort.env.wasm.wasmPaths = dist;
  const session = await ort.InferenceSession.create(bytes,
    { executionProviders: ["wasm"], graphOptimizationLevel: "all" });
  const feeds = {};
  session.inputMetadata.forEach(({ name, shape, type }) => {
    const values = numbers(shape.reduce((a, b) => a * b, 1), type);
    const data = type === "int64" ? BigInt64Array.from(values, BigInt)
      : type === "int32" ? Int32Array.from(values) : Float32Array.from(values);
    feeds[name] = new ort.Tensor(type, data, shape);
  });
  const run = () => session.run(feeds);
  return { run, output: async () => (await run())[session.outputNames[0]].data };
}

/** Warm up, and return the beginning of the first output. */
export async function warmed({ run, output }) {
  for (let i = 0; i < 3; ++i) await run();
  return Array.from(await output(), Number).slice(0, 4096);
}
