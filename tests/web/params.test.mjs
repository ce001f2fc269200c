// Parameters outside of the module.  FOLDER has what tests/compiler/web/test_web_params.py exported.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { createServer } from "node:http";
import { readFile, stat } from "node:fs/promises";
import { test } from "node:test";
import { pathToFileURL } from "node:url";

const { SLIPWAY_JS, FOLDER } = process.env;
const { instantiate, load } = await import(pathToFileURL(SLIPWAY_JS));
const [model, params, whole] = ["apart.wasm", "apart.params", "whole.wasm"].map((n) => `${FOLDER}/${n}`);
const x = Float32Array.from({ length: 64 }, (_, i) => Math.sin(i));

test("a model with its parameters apart is the same model", async () => {
  const progress = [];
  const apart = await load(model, { params, onProgress: (...about) => progress.push(about) });
  const one = await load(whole);
  assert.deepEqual((await apart.run({ x })).output, (await one.run({ x })).output);
  const sizes = await Promise.all([model, params, whole].map(async (file) => (await stat(file)).size));
  assert.deepEqual(progress, [[sizes[0], sizes[0], "model"], [sizes[1], sizes[1], "params"]]);
  assert.ok(sizes[0] < sizes[2] - 64 * 4096 * 4, `${sizes}`); // the matrix is not in it
  const given = await load(model, { params: await readFile(params) });
  assert.deepEqual((await given.run({ x })).output, (await one.run({ x })).output);
});

test("other parameters, none, and too many are errors", async () => {
  const refused = (options, about, source = model) => assert.rejects(load(source, options), about);
  await refused({}, { name: "ValueError", message: /without its parameters.*params_file/ });
  await refused({ params }, { name: "ValueError", message: /inside/ }, whole);
  await refused({ params: `${FOLDER}/none` }, { name: "FileNotFoundError" });
  const bytes = new Uint8Array(await readFile(params));
  const cut = bytes.subarray(0, bytes.length - 1);
  const changed = bytes.slice();
  changed[bytes.length >> 1] ^= 1;
  for (const wrong of [cut, changed, new Uint8Array(0)]) {
    await refused({ params: wrong }, { name: "ArtifactError", message: /not the parameters of this model/ });
  }
});

test("parameters that fail while the model is on its way end the load, not the program", async () => {
  const late = async () => {
    await new Promise((done) => setTimeout(done, 30)); // the failure is there first
    return readFile(model);
  };
  const gone = () => Promise.reject(new Error("no network"));
  await assert.rejects(load(late(), { params: gone() }), { message: "no network" });
  await assert.rejects(load(`${FOLDER}/none.wasm`, { params: gone() }), { name: "FileNotFoundError" });
});

test("parameters come beside the model, and are told of when their size is known", async () => {
  const sent = await readFile(params);
  let asked;
  const isAsked = new Promise((done) => (asked = done));
  const server = createServer(async (request, response) => {
    asked();
    response.end(sent);
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  const progress = [];
  const options = { params: `http://127.0.0.1:${server.address().port}/`, onProgress: (...about) => progress.push(about) };
  const bytes = isAsked.then(() => new Promise((done) => setTimeout(done, 30))).then(() => readFile(model));
  const loaded = await load(bytes, options); // whose model comes after they were asked for
  assert.deepEqual(progress.at(-1), [sent.length, sent.length, "params"]);
  assert.ok(progress.every(([, total]) => total === sent.length));
  assert.ok(loaded.inputs.length > 0);
  server.close();
});

test("the sum of bytes is SHA-256", async () => {
  const runtime = await instantiate(model);
  for (const size of [0, 1, 55, 56, 64, 1000, 100003]) {
    const bytes = Uint8Array.from({ length: size }, (_, i) => (i * 7919) >> 3);
    assert.equal(runtime.sha256(bytes), createHash("sha256").update(bytes).digest("hex"));
  }
});

test("each layer of a profile has the name of its own node", async () => {
  const layers = (await load(whole)).profile(3).map(({ layer }) => layer);
  assert.equal(new Set(layers).size, layers.length, `${layers}`);
});
