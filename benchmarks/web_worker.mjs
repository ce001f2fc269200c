// One engine and one model in node: answers "run N" with milliseconds of processor time a run.
//
//     node web_worker.mjs slipway|onnxruntime MODEL SLIPWAY_JS_FOLDER NODE_MODULES
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

import { onnxruntimeRunner, slipwayRunner, warmed } from "./web_engines.mjs";

const [engine, file, folder, modules] = process.argv.slice(2);

async function started() {
  const bytes = new Uint8Array(await readFile(file));
  if (engine === "slipway") {
    return slipwayRunner(await import(pathToFileURL(`${folder}/slipway.mjs`)), bytes);
  }
  const ort = createRequire(`${modules}/`)("onnxruntime-web/wasm");
  return onnxruntimeRunner(ort, bytes, `${modules}/onnxruntime-web/dist/`);
}

try {
  const runner = await started();
  console.log(JSON.stringify({ output: await warmed(runner) }));
  for await (const line of createInterface({ input: process.stdin })) {
    const count = Number(line.split(" ")[1]);
    const start = process.cpuUsage();
    for (let i = 0; i < count; ++i) await runner.run();
    const used = process.cpuUsage(start);
    console.log(JSON.stringify({ ms: (used.user + used.system) / 1e3 / count }));
  }
} catch (error) {
  console.log(JSON.stringify({ error: String(error.message ?? error).slice(0, 300) }));
}
