// One engine and one model in node: answers "run N" with milliseconds of processor time a run.
//
//     node web_worker.mjs slipway|onnxruntime MODEL SLIPWAY_JS_FOLDER NODE_MODULES
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const [engine, file, folder, modules] = process.argv.slice(2);

/** The same numbers for every engine. */
function numbers(count, dtype) {
  let state = 12345;
  const next = () => (state = (state * 48271) % 2147483647);
  const isReal = dtype.startsWith("float");
  return Array.from({ length: count }, () => (isReal ? next() / 2147483647 - 0.5 : next() % 100));
}

async function slipwayRunner() {
  const { load } = await import(pathToFileURL(`${folder}/slipway.mjs`));
  const model = await load(file);
  for (const { name, shape, dtype } of model.inputs) {
    model.setInput(name, numbers(shape.reduce((a, b) => a * b, 1), dtype));
  }
  const run = model.getFunction("run");
  return { run: async () => run(), output: async () => model.runSync()[model.outputs[0].name] };
}

async function onnxruntimeRunner() {
  const ort = createRequire(`${modules}/`)("onnxruntime-web/wasm");
  ort.env.wasm.numThreads = 1;
  ort.env.wasm.wasmPaths = `${modules}/onnxruntime-web/dist/`;
  const session = await ort.InferenceSession.create(new Uint8Array(await readFile(file)),
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

try {
  const { run, output } = await (engine === "slipway" ? slipwayRunner() : onnxruntimeRunner());
  for (let i = 0; i < 3; ++i) await run();
  console.log(JSON.stringify({ output: Array.from(await output(), Number).slice(0, 4096) }));
  for await (const line of createInterface({ input: process.stdin })) {
    const count = Number(line.split(" ")[1]);
    const start = process.cpuUsage();
    for (let i = 0; i < count; ++i) await run();
    const used = process.cpuUsage(start);
    console.log(JSON.stringify({ ms: (used.user + used.system) / 1e3 / count }));
  }
} catch (error) {
  console.log(JSON.stringify({ error: String(error.message ?? error).slice(0, 300) }));
}
