// What a model may be loaded from, and several programs beside each other.  FOLDER has what
// test_kinds_of_models.py exported.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { pathToFileURL } from "node:url";

const { SLIPWAY_JS, FOLDER } = process.env;
const { byFeature, hasFeature, instantiateSync, load } = await import(pathToFileURL(SLIPWAY_JS));
const bytes = await readFile(`${FOLDER}/branch.wasm`);
const buffer = () => bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length);
const shared = () => {
  const made = new SharedArrayBuffer(bytes.length);
  new Uint8Array(made).set(bytes);
  return made;
};

test("every form that bytes come in", async () => {
  const forms = [
    bytes, buffer(), shared(), new Uint8Array(shared()), new DataView(buffer()), new Blob([bytes]),
    new File([bytes], "model.wasm"), new Response(bytes), new Response(bytes, { headers: { "Content-Type": "text/plain" } }),
    Promise.resolve(bytes), Promise.resolve(new Response(bytes)), readFile(`${FOLDER}/branch.wasm`),
    pathToFileURL(`${FOLDER}/branch.wasm`), WebAssembly.compile(bytes),
  ];
  for (const form of forms) {
    assert.equal((await load(form)).inputs.length, 2);
  }
  for (const form of [bytes, buffer(), shared(), new DataView(buffer())]) {
    assert.equal(instantiateSync(form).numThreads, 1);
  }
  const seen = [];
  await load(new Blob([bytes]), { onProgress: (...given) => seen.push(given) });
  assert.deepEqual(seen, [[bytes.length, bytes.length, "model"]]);
});

test("what is no module", async () => {
  for (const form of [undefined, null, {}, [], 7, () => bytes]) {
    await assert.rejects(load(form), { name: "TypeError", message: /a Blob, a Response/ });
    assert.throws(() => instantiateSync(form), { name: "TypeError" });
  }
  await assert.rejects(load(new Blob(["<html>"])), { name: "ArtifactError", message: /no WebAssembly/ });
  await assert.rejects(load(new Blob([bytes.subarray(0, 4000)])), { name: "ArtifactError", message: /cut off/ });
  await assert.rejects(load(Promise.reject(new Error("gone"))), { message: "gone" });
});

test("an option that there is not", async () => {
  for (const options of [{ thread: 2 }, { onprogress() {} }, "cache"]) {
    await assert.rejects(load(bytes, options), { name: "TypeError", message: /onProgress, cache, params, threads/ });
  }
  for (const options of [[], new Map([["threads", 1]]), () => 1]) {
    await assert.rejects(load(bytes, options), { name: "TypeError", message: /onProgress, cache, params, threads/ });
  }
  await assert.rejects(load(bytes, { onProgress: "x" }), { name: "TypeError", message: /onProgress is a function, and got 'x'/ });
  await assert.rejects(load(bytes, { cache: true }), { name: "TypeError", message: /cache is a string, and got true/ });
  assert.equal((await load(bytes, null)).inputs.length, 2);
});

test("what a caller's function throws comes out as it was", async () => {
  const onProgress = () => {
    throw new RangeError("the caller's");
  };
  for (const form of [`${FOLDER}/branch.wasm`, new Blob([bytes]), new Response(bytes)]) {
    await assert.rejects(load(form, { onProgress }), { name: "RangeError", message: "the caller's" });
  }
});

test("inputs that have no names are none", async () => {
  const model = await load(bytes);
  for (const inputs of [new Map([["y", [1, 2, 3, 4]]]), Promise.resolve({ y: [1, 2, 3, 4] }), new Blob(["x"]), new ArrayBuffer(16)]) {
    await assert.rejects(model.run(inputs), { name: "TypeError", message: /by name, \{ flag.*of kind (Map|Promise|Blob|ArrayBuffer)/ });
  }
  class Inputs {
    y = [1, 2, 3, 4];
  }
  assert.equal((await model.run(Object.assign(Object.create(null), { flag: true }, new Inputs()))).output[3], 8);
  assert.equal((await model.run(new Inputs())).output[3], 8);
});

test("two models in one program: what lies in the other's memory", async () => {
  const [a, b] = [await load(bytes), await load(bytes)];
  a.runtime.empty([100_000]); // addresses differ from here on
  const y = a.runtime.tensor([1, 2, 3, 4]);
  const { output } = await b.run({ flag: false, y });
  assert.deepEqual([...output], [2, 3, 4, 5]);
  assert.throws(() => b.getFunction("set_input")("y", y), { name: "ValueError", message: /another program: copy it/ });
  assert.throws(() => b.getFunction("run")(a.module), { name: "ValueError", message: /another program/ });
  b.runtime.registerFunc("inputs of a", a.getFunction("get_num_inputs"));
  assert.equal(b.runtime.getGlobalFunc("inputs of a")(), 2);
  const own = b.runtime.toPackedFunc(a.getFunction("get_num_inputs"));
  assert.equal(own(), 2);
  a.dispose();
  a.dispose();
  assert.throws(() => own(), { name: "ReferenceError" });
  assert.equal((await b.run({ flag: true, y: [1, 2, 3, 4] })).output[3], 8);
});

test("a tensor that no memory holds is an error, and the program lives on", async () => {
  const model = await load(bytes);
  for (const shape of [[2 ** 31], [2 ** 40], [2 ** 20, 2 ** 20, 2 ** 20]]) {
    assert.throws(() => model.runtime.empty(shape), { name: "MemoryError", message: /no memory for a tensor of shape .* MB/ });
  }
  for (const shape of [[-1], [2, -3], new Array(17).fill(1)]) {
    assert.throws(() => model.runtime.empty(shape), { name: "ValueError", message: /no tensor of shape/ });
  }
  assert.equal((await model.run({ flag: true, y: [1, 2, 3, 4] })).output[3], 8);
});

test("workers end where a model cannot be made", async () => {
  const threaded = await readFile(`${FOLDER}/threaded.wasm`);
  const active = () => process.getActiveResourcesInfo().filter((kind) => kind === "MessagePort").length;
  const before = active();
  await assert.rejects(load(threaded, { threads: 3, params: new Uint8Array(3) }), { name: "ValueError" });
  for (let tries = 0; active() > before && tries < 100; ++tries) {
    await new Promise((done) => setTimeout(done, 50));
  }
  assert.equal(active(), before);
});

test("an engine chooses among modules by what it has", () => {
  assert.equal(hasFeature("simd128"), true);
  assert.equal(hasFeature("atomics"), true);
  const fast = hasFeature("relaxed-simd") ? "a" : "b"; // a flag of node 20
  assert.equal(byFeature({ "relaxed-simd": "a", simd128: "b", "": "c" }), fast);
  assert.equal(byFeature({ "simd128+atomics": 1, "": 2 }), 1);
  assert.equal(byFeature({ "": 3 }), 3);
  const without = { name: "UnsupportedError", message: /none of "relaxed-simd".*-mattr=-simd128/ };
  const validate = WebAssembly.validate;
  WebAssembly.validate = () => false; // as an engine of 2019
  try {
    assert.throws(() => byFeature({ "relaxed-simd": 1, simd128: 2 }), without);
    assert.equal(byFeature({ "relaxed-simd": 1, "": 2 }), 2);
  } finally {
    WebAssembly.validate = validate;
  }
  assert.throws(() => byFeature({}), { name: "UnsupportedError" });
  assert.throws(() => byFeature(undefined), { name: "UnsupportedError" });
  for (const name of ["simd", "toString", 7]) {
    assert.throws(() => hasFeature(name), { name: "TypeError", message: /relaxed-simd/ });
  }
});
