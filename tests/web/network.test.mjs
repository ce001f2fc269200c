// What a network, a server and a browser's cache do to a model on its way; node's fetch, a cache of ours.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";

const { SLIPWAY_JS, FOLDER } = process.env;
const { instantiate, load } = await import(pathToFileURL(SLIPWAY_JS));
const whole = await readFile(`${FOLDER}/two_simd.wasm`);
let base, body, goOn;
const server = createServer((request, response) => {
  response.writeHead(200, { "Content-Length": body.length });
  if (request.url === "/broken") {
    response.write(body.subarray(0, body.length >> 1), () => setTimeout(() => response.destroy(), 50));
  } else if (request.url === "/halves") { // the second when the page has told of the first
    response.write(body.subarray(0, body.length >> 1));
    goOn = () => response.end(body.subarray(body.length >> 1));
  } else {
    response.end(body);
  }
});
before(async () => {
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  base = `http://127.0.0.1:${server.address().port}`;
});
after(() => {
  server.close();
  server.closeAllConnections();
});

function useCache(store, open = async () => store) {
  globalThis.caches = { open };
}

const memory = () => {
  const kept = new Map();
  return {
    kept,
    match: async (name) => kept.get(name)?.clone(),
    put: async (name, response) => kept.set(name, new Response(await response.arrayBuffer())),
    delete: async (name) => kept.delete(name),
  };
};

test("a connection that breaks is an error with the address", async () => {
  body = whole;
  for (const options of [{}, { onProgress: () => {} }]) {
    await assert.rejects(load(`${base}/broken`, options), { name: "OSError", message: /\/broken .*Try again/ });
  }
});

test("a cache that refuses, is full or fails leaves the model usable", async () => {
  body = whole;
  const no = async () => {
    throw new DOMException("full", "QuotaExceededError");
  };
  useCache(undefined, no);
  assert.equal((await load(`${base}/m`, { cache: "c" })).outputs.length, 2);
  useCache({ match: async () => undefined, put: no, delete: no });
  assert.equal((await load(`${base}/m`, { cache: "c" })).outputs.length, 2);
  useCache({ match: no, put: no, delete: no });
  assert.equal((await load(`${base}/m`, { cache: "c" })).outputs.length, 2);
});

test("a file for the cache is told of as it comes", { timeout: 10000 }, async () => {
  body = whole;
  const store = memory();
  useCache(store);
  const sizes = [];
  const onProgress = (loaded) => {
    sizes.push(loaded);
    goOn();
  };
  await load(`${base}/halves`, { cache: "c", onProgress });
  assert.ok(sizes[0] < whole.length && sizes.at(-1) === whole.length, `${sizes}`);
  assert.equal((await store.kept.get(`${base}/halves`).clone().arrayBuffer()).byteLength, whole.length);
  body = Buffer.from("the server is gone");
  await load(`${base}/halves`, { cache: "c", onProgress });
});

test("what a server once answered in place of the model is not kept for ever", async () => {
  const store = memory();
  useCache(store);
  body = Buffer.from("<html>there is no such file");
  await assert.rejects(load(`${base}/m`, { cache: "c" }), { name: "ArtifactError", message: /no WebAssembly/ });
  assert.equal(store.kept.size, 0);
  store.kept.set(`${base}/m`, new Response("<html>kept by an older version of the page"));
  body = whole;
  assert.equal((await load(`${base}/m`, { cache: "c" })).outputs.length, 2);
  body = Buffer.from("the server is gone");
  assert.equal((await load(`${base}/m`, { cache: "c" })).outputs.length, 2); // from the cache
});

test("a description that is damaged, and a module of others, are errors that say so", async () => {
  const damaged = new Uint8Array(whole);
  damaged[whole.indexOf("slipway.metadata") + "slipway.metadata".length] = "#".charCodeAt(0);
  await assert.rejects(load(damaged), { name: "ArtifactError", message: /description is damaged/ });
  const importing = new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0, 1, 4, 1, 96, 0, 0, 2, 7, 1, 1, 97, 1, 98, 0, 0]);
  await assert.rejects(instantiate(importing), { name: "ArtifactError", message: /cannot be started/ });
  body = whole;
  const read = await fetch(`${base}/m`);
  await read.arrayBuffer();
  await assert.rejects(load(read), { name: "ValueError", message: /read already/ });
});
