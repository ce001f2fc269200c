// A module whose memory workers share.  FOLDER has what tests/compiler/web/test_web_threads.py exported.
import assert from "node:assert/strict";
import { copyFile, mkdtemp, readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { test } from "node:test";
import { pathToFileURL } from "node:url";

const { SLIPWAY_JS, FOLDER } = process.env;
const slipway = await import(pathToFileURL(SLIPWAY_JS));
const image = ({ shape }) => Float32Array.from({ length: shape.reduce((a, b) => a * b) }, (_, i) => Math.sin(i));

function wait(ms) {
  for (const end = performance.now() + ms; performance.now() < end; );
}

test("any number of threads gives the same bytes", async () => {
  const found = [];
  for (const threads of [1, 2, 3, 7]) {
    const model = await slipway.load(`${FOLDER}/threads.wasm`, { threads });
    assert.equal(model.runtime.numThreads, threads);
    for (let run = 0; run < 20; ++run) {
      found.push((await model.run({ x: image(model.inputs[0]) })).output.toString());
    }
    model.dispose();
    assert.equal(model.runtime.numThreads, 1);
  }
  assert.ok(found[0].length > 1000 && !found[0].includes("NaN"));
  assert.equal(new Set(found).size, 1);
});

test("all threads of the machine where none are asked for", async () => {
  const model = await slipway.load(`${FOLDER}/threads.wasm`);
  assert.ok(model.runtime.numThreads >= 1);
  assert.equal(model.runtime.numThreads, Math.min(16, (await import("node:os")).cpus().length));
  model.dispose();
});

test("an engine whose workers share no memory runs one thread, and says why it has no more", async () => {
  const kept = globalThis.SharedArrayBuffer;
  try {
    delete globalThis.SharedArrayBuffer;
    const model = await slipway.load(`${FOLDER}/threads.wasm`);
    assert.equal(model.runtime.numThreads, 1);
    await assert.rejects(slipway.load(`${FOLDER}/threads.wasm`, { threads: 2 }),
      { name: "UnsupportedError", message: /this engine has no SharedArrayBuffer/ });
  } finally {
    globalThis.SharedArrayBuffer = kept;
  }
});

test("a worker has a part of the work, and what stops it is an error of the call", async () => {
  const tvm = await slipway.instantiate(`${FOLDER}/calls.wasm`, { threads: 2 });
  const f = tvm.systemLib().getFunction("calls");
  const [x, y] = [tvm.tensor(new Float32Array(8)), tvm.empty([8])];
  tvm.registerFunc("js.slow", () => wait(60)); // the worker wakes, and has no such function
  assert.throws(() => f(x, y), { name: "RuntimeError", message: /belongs to another thread/ });
  tvm.stopThreads();
  f(x, y); // and it goes on, with one thread
  await tvm.startThreads(await WebAssembly.compile(await readFile(`${FOLDER}/calls.wasm`)), 2);
  assert.throws(() => f(x, y), { message: /belongs to another thread/ }); // with two again
  tvm.stopThreads();
});

test("an error in a task is the call's, whoever met it", async () => {
  const tvm = await slipway.instantiate(`${FOLDER}/checks.wasm`, { threads: 2 });
  const f = tvm.systemLib().getFunction("checks");
  const y = tvm.empty([64]);
  for (let bad = 0; bad < 64; bad += 7) {
    const x = tvm.tensor(Float32Array.from({ length: 64 }, (_, i) => (i === bad ? -1 : i)));
    assert.throws(() => f(x, y), { message: /below zero/ });
  }
  f(tvm.tensor(Float32Array.from({ length: 64 }, (_, i) => i)), y);
  assert.deepEqual([...y.toArray()], Array.from({ length: 64 }, (_, i) => 2 * i));
  tvm.stopThreads();
});

test("a program ends although its workers wait", async () => {
  const script = 'const { load } = await import(process.env.SLIPWAY_JS);' +
    'const { runtime } = await load(`${process.env.FOLDER}/threads.wasm`, { threads: 2 });' +
    'console.log(runtime.numThreads);';
  const { execFileSync } = await import("node:child_process");
  const words = execFileSync(process.execPath, ["--input-type=module", "-e", script], { timeout: 20000 });
  assert.equal(String(words).trim(), "2");
});

test("what cannot be is said", async () => {
  const bytes = await readFile(`${FOLDER}/threads.wasm`);
  const refused = (source, threads, about) => assert.rejects(slipway.load(source, { threads }), about);
  await refused(bytes, 1.5, { name: "ValueError", message: /1\.5/ });
  await refused(bytes, 0, { name: "ValueError" });
  await refused(`${FOLDER}/single.wasm`, 2, { name: "UnsupportedError", message: /\+atomics/ });
  globalThis.crossOriginIsolated = false; // as in a page without the headers
  try {
    await refused(bytes, 2, { name: "UnsupportedError", message: /Cross-Origin-Embedder-Policy/ });
    const model = await slipway.load(bytes);
    assert.equal(model.runtime.numThreads, 1);
    model.dispose();
  } finally {
    delete globalThis.crossOriginIsolated;
  }
});

test("memory that an engine does not give is an error, a smaller one is tried first", async () => {
  const bytes = await readFile(`${FOLDER}/threads.wasm`);
  const { Memory } = WebAssembly;
  const asked = [];
  try {
    WebAssembly.Memory = function ({ initial, maximum, shared }) {
      asked.push(maximum);
      if (maximum > 8192) {
        throw new RangeError("could not allocate memory");
      }
      return new Memory({ initial, maximum, shared });
    };
    const model = await slipway.load(bytes, { threads: 1 });
    assert.deepEqual(asked, [65536, 32768, 16384, 8192]);
    model.dispose();
    WebAssembly.Memory = function () {
      throw new RangeError("could not allocate memory");
    };
    await assert.rejects(slipway.load(bytes), { name: "MemoryError", message: /could not allocate/ });
  } finally {
    WebAssembly.Memory = Memory;
  }
});

test("without the script of the workers there is one thread, or an error", async () => {
  const folder = await mkdtemp(`${tmpdir()}/slipway-`);
  await copyFile(SLIPWAY_JS, `${folder}/slipway.mjs`);
  const alone = await import(pathToFileURL(`${folder}/slipway.mjs`));
  await assert.rejects(alone.load(`${FOLDER}/threads.wasm`, { threads: 2 }), {
    name: "UnsupportedError", message: /thread\.mjs must be beside/,
  });
  const model = await alone.load(`${FOLDER}/threads.wasm`);
  assert.equal(model.runtime.numThreads, 1);
});
