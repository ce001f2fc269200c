// One engine and one model in node: answers "run N" with milliseconds a run, of the process and of the clock.
//
//     node worker.mjs slipway|onnxruntime|litert MODEL THREADS SLIPWAY_JS_FOLDER NODE_MODULES
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";
import { runInThisContext } from "node:vm";

import { started, warmed } from "./engines.mjs";

const [engine, file, threads, folder, modules] = process.argv.slice(2);

/** LiteRT.js looks for a worker of a page, which loads scripts; its WebAssembly knows node. */
function asWorker() {
  globalThis.self = globalThis;
  globalThis.navigator ??= { hardwareConcurrency: Number(threads), userAgent: "node" };
  globalThis.require = createRequire(import.meta.url);
  globalThis.importScripts = (path) => {
    globalThis.__filename = path;
    globalThis.__dirname = path.replace(/[^/]*$/, "");
    runInThisContext(readFileSync(path, "utf8"), path);
  };
}

async function library() {
  if (engine === "slipway") {
    return [await import(pathToFileURL(`${folder}/slipway.mjs`))];
  }
  if (engine === "onnxruntime") {
    return [createRequire(`${modules}/`)("onnxruntime-web/wasm"), `${modules}/onnxruntime-web/dist/`];
  }
  asWorker();
  const core = `${modules}/@litertjs/core`;
  return [await import(pathToFileURL(`${core}/dist/index.js`)), `${core}/wasm/`];
}

try {
  const bytes = new Uint8Array(readFileSync(file));
  const [module, place] = await library();
  const runner = await started(engine, module, bytes, Number(threads), place);
  console.log(JSON.stringify({ output: await warmed(runner) }));
  for await (const line of createInterface({ input: process.stdin })) {
    const count = Number(line.split(" ")[1]);
    const begun = performance.now();
    const start = process.cpuUsage();
    for (let i = 0; i < count; ++i) await runner.run();
    const used = process.cpuUsage(start);
    const wall = (performance.now() - begun) / count;
    console.log(JSON.stringify({ ms: (used.user + used.system) / 1e3 / count, wall }));
  }
  process.exit(0);
} catch (error) {
  console.log(JSON.stringify({ error: String(error.message ?? error).slice(0, 300) }));
  process.exit(1);
}
