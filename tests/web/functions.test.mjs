// Functions that Python compiled, called from JavaScript and calling it.  FOLDER has what
// tests/compiler/web/test_web.py exported.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { pathToFileURL } from "node:url";

const { SLIPWAY_JS, FOLDER } = process.env;
const slipway = await import(pathToFileURL(SLIPWAY_JS));
const exp = () => slipway.instantiate(`${FOLDER}/exp.wasm`);
const packed = () => slipway.instantiate(`${FOLDER}/packed.wasm`);

test("a function of tensors", async () => {
  const tvm = await exp();
  assert.deepEqual(tvm.listFunctionNames(), ["expo"]);
  const f = tvm.systemLib().getFunction("expo");
  const a = tvm.tensor([0, 1, 2, 3, 4]);
  const b = tvm.empty([5], "float32", tvm.cpu());
  assert.equal(f(a, b), undefined);
  b.toArray().forEach((v, i) => assert.ok(Math.abs(v - Math.exp(i) - 1) <= 1e-6 * v));
  assert.deepEqual([b.shape, b.dtype, b.ndim, String(b.device)], [[5], "float32", 1, "cpu(0)"]);
});

test("errors of compiled functions have name and message", async () => {
  const tvm = await exp();
  const f = tvm.systemLib().getFunction("expo");
  const a = tvm.empty([5]);
  assert.throws(() => f(a, tvm.empty([4])), { name: "ValueError", message: /expected 5/ });
  assert.throws(() => f(a, tvm.empty([5], "int32")), { name: "TypeError", message: /int32/ });
  assert.throws(() => f(a), { name: "TypeError" });
  assert.throws(() => f(a, {}), { name: "TypeError", message: /cannot be passed/ });
  assert.throws(() => tvm.systemLib().getFunction("nix"), { message: /'nix'/ });
  f(a, tvm.empty([5])); // and it goes on
});

test("tensors lie in the upper two gigabytes, too, and what does not fit is an error", async () => {
  const tvm = await exp();
  const low = tvm.exports.slw_web_get_memory(0x88000000); // nobody touches it
  const a = tvm.tensor([1, 2]);
  const b = tvm.empty([2]);
  assert.ok(low > 0 && a.address >= 2 ** 31, `${low} ${a.address}`); // an address has no sign
  tvm.systemLib().getFunction("expo")(a, b);
  assert.ok(Math.abs(b.toArray()[0] - Math.E - 1) < 1e-5);
  assert.throws(() => tvm.empty([2 ** 31], "uint8"), { name: "MemoryError", message: /no memory for a tensor/ });
  assert.throws(() => tvm.systemLib().getFunction("none"), { name: "AttributeError", message: /'none'/ });
  a.dispose();
  tvm.exports.slw_web_give_memory(low);
});

test("compiled code calls JavaScript", async () => {
  const tvm = await packed();
  const f = tvm.systemLib().getFunction("outer");
  const [x, y] = [tvm.tensor([1, 2, 3, 4]), tvm.empty([4])];
  assert.throws(() => f(x, y), { message: /'js\.twice'/ });
  tvm.registerFunc("js.twice", (from, to) => void to.copyFrom(from.toArray().map((v) => 2 * v)));
  f(x, y);
  assert.deepEqual([...y.toArray()], [2, 4, 6, 8]);
  assert.deepEqual(tvm.listGlobalFuncNames(), ["js.twice"]);
  assert.throws(() => tvm.registerFunc("js.none", 3), { name: "TypeError", message: /got 'js.none' and 3/ });
  assert.throws(() => tvm.getGlobalFunc("js.twice")(2n ** 63n), { name: "OverflowError" });
  assert.throws(() => tvm.registerFunc("js.twice", () => 1), { message: /override/ });
  const thrown = new RangeError("not today");
  tvm.registerFunc("js.twice", () => { throw thrown; }, true);
  assert.throws(() => f(x, y), (error) => error === thrown);
  tvm.registerFunc("js.twice", () => { throw "a text"; }, true);
  assert.throws(() => f(x, y), { message: "a text" });
  tvm.removeGlobalFunc("js.twice");
  assert.throws(() => tvm.getGlobalFunc("js.twice"), { message: /registered are: none/ });
});

test("one function under two names, of which one is replaced", async () => {
  const tvm = await packed();
  const both = () => 1;
  tvm.registerFunc("a", both);
  tvm.registerFunc("b", both);
  tvm.registerFunc("a", () => 2, true);
  assert.deepEqual([tvm.getGlobalFunc("a")(), tvm.getGlobalFunc("b")()], [2, 1]);
});

test("values of every kind go in and come out", async () => {
  const tvm = await packed();
  const echo = tvm.toPackedFunc((value) => value);
  for (const value of [undefined, 0, -1, 2 ** 40, 2.5, -Infinity, true, false, "", "häßlich €", "x".repeat(1e5)]) {
    assert.equal(echo(value), value);
  }
  assert.equal(echo(null), undefined);
  assert.equal(echo(2n ** 62n), 2n ** 62n);
  assert.ok(Number.isNaN(echo(NaN)));
  assert.deepEqual(echo(new slipway.Device("cuda", 3)), new slipway.Device("cuda", 3));
  assert.equal(tvm.toPackedFunc((bytes) => bytes.reduce((a, b) => a + b))(new Uint8Array([1, 2, 3])), 6);
  assert.equal(echo(new slipway.Scalar(2, "float64")), 2);
  assert.equal(echo((x) => x + 1)(41), 42);
  assert.equal(tvm.toPackedFunc((f) => f(20) + 1)((x) => 2 * x), 41);
  const module = echo(tvm.systemLib());
  assert.equal(typeof module.getFunction("outer"), "function");
  const inner = echo(tvm.systemLib().getFunction("outer"));
  assert.throws(() => inner(), { name: "TypeError" });
  const x = tvm.tensor([1, 2]);
  const made = echo(x);
  made.copyFrom([3, 4]);
  assert.deepEqual([[...x.toArray()], [...made.toArray()]], [[1, 2], [3, 4]]);
  assert.ok(tvm.isPackedFunc(echo) && !tvm.isPackedFunc(() => 1));
  assert.equal(tvm.toPackedFunc(echo), echo);
});

test("tensors of every type", async () => {
  const tvm = await exp();
  for (const [dtype, low, high] of [["int8", -128, 127], ["uint8", 0, 255], ["int16", -32768, 32767],
    ["uint16", 0, 65535], ["int32", -(2 ** 31), 2 ** 31 - 1], ["uint32", 0, 2 ** 32 - 1]]) {
    assert.deepEqual([...tvm.tensor([low, 1, high], [3], dtype).toArray()], [low, 1, high]);
  }
  assert.deepEqual([...tvm.tensor([1, 2n ** 60n], [2], "int64").toArray()], [1n, 2n ** 60n]);
  assert.deepEqual([...tvm.tensor(new BigInt64Array([5n]), [1], "float32").toArray()], [5]);
  assert.deepEqual([...tvm.tensor([true, false], [2], "bool").toArray()], [1, 0]);
  assert.equal(tvm.tensor(new Int16Array(3)).dtype, "int16");
  assert.deepEqual(tvm.tensor([[1, 2, 3], [4, 5, 6]]).shape, [2, 3]);
  assert.deepEqual(tvm.tensor(7).shape, []);
  assert.throws(() => tvm.tensor([1.5], [1], "int64"), { name: "ValueError" });
  assert.throws(() => tvm.tensor([256], [1], "uint8"), { name: "ValueError", message: /256 \(element 0\) does not fit/ });
  assert.throws(() => tvm.tensor([0.5], [1], "int8"), { name: "ValueError" });
  assert.throws(() => tvm.tensor([NaN], [1], "int32"), { name: "ValueError" });
  assert.throws(() => tvm.tensor([2n ** 63n], [1], "int64"), { name: "ValueError" });
  assert.equal(tvm.tensor([3n], [1], "float32").toArray()[0], 3);
  for (const shape of ["x", [1.5], [NaN], {}, undefined]) {
    assert.throws(() => tvm.empty(shape), { name: "TypeError", message: /a shape is a list of whole numbers/ });
  }
  assert.throws(() => tvm.empty([-1]), { message: /shape \[-1\]/ });
  assert.throws(() => tvm.empty([2 ** 31]), { message: /memory/ });
  assert.throws(() => tvm.empty([1], "float31"), { message: /float31/ });
  assert.throws(() => tvm.empty([2]).copyFrom([1]), { message: /2 elements/ });
  assert.throws(() => tvm.empty([2]).copyFrom(tvm.empty([3])), { name: "ValueError" });
  assert.throws(() => tvm.empty([2]).copyFrom("no"), { name: "TypeError" });
});

test("numbers of 16 bits are rounded to the nearest, ties to even", async () => {
  const tvm = await exp();
  const expected = JSON.parse(await readFile(`${FOLDER}/halves.json`, "utf8"));
  for (const dtype of ["float16", "bfloat16"]) {
    const values = expected.values;
    const found = tvm.tensor(values, [values.length], dtype);
    assert.deepEqual([...found.data], expected[dtype].bits);
    assert.deepEqual([...found.toArray()], expected[dtype].values.map((v) => Number(v.replace("inf", "Infinity"))));
  }
});

test("memory comes back: by dispose, by scope", async () => {
  const tvm = await exp();
  const grow = (action) => {
    action();
    const before = tvm.memory.buffer.byteLength;
    for (let i = 0; i < 300; ++i) action();
    return tvm.memory.buffer.byteLength - before;
  };
  assert.equal(grow(() => tvm.empty([100_000]).dispose()), 0);
  assert.equal(grow(() => tvm.withNewScope(() => { tvm.empty([50_000]); tvm.empty([7]); })), 0);
  tvm.beginScope();
  const kept = tvm.detachFromCurrentScope(tvm.tensor([1, 2]));
  const lost = tvm.tensor([3]);
  tvm.endScope();
  assert.deepEqual([...kept.toArray()], [1, 2]);
  assert.throws(() => lost.toArray(), { name: "ReferenceError" });
  assert.throws(() => tvm.endScope(), { message: /beginScope/ });
  assert.deepEqual([...tvm.withNewScope(() => tvm.tensor([9])).toArray()], [9]);
  lost.dispose(); // twice is once
});

test("blocks of any size and order neither overlap nor leak", async () => {
  const tvm = await exp();
  let state = 7;
  const random = (n) => (state = (state * 48271) % 2147483647) % n;
  const held = [];
  for (let step = 0; step < 4000; ++step) {
    if (held.length && random(2)) {
      const [tensor, value] = held.splice(random(held.length), 1)[0];
      assert.ok(tensor.data.every((v) => v === value), `block of ${tensor.size} was written by another`);
      tensor.dispose();
    } else {
      const value = step & 255;
      const tensor = tvm.empty([1 + random(random(20) ? 300 : 90_000)], "uint8");
      assert.equal(tensor.dataAddress % 64, 0);
      assert.ok(tensor.data.every((v) => v === 0));
      tensor.data.fill(value);
      held.push([tensor, value]);
    }
  }
});

test("files that are none", async () => {
  const bytes = new Uint8Array(await readFile(`${FOLDER}/exp.wasm`));
  await assert.rejects(slipway.load(`${FOLDER}/none.wasm`), { name: "FileNotFoundError" });
  await assert.rejects(slipway.load(new TextEncoder().encode("<html>")), { message: /HTML/ });
  await assert.rejects(slipway.load(new Uint8Array()), { name: "ArtifactError" });
  for (const cut of [5, 100, bytes.length >> 1]) {
    await assert.rejects(slipway.load(bytes.subarray(0, cut)), { name: "ArtifactError" });
  }
  await assert.rejects(slipway.load(bytes), { name: "ArtifactError", message: /no model.*instantiate.*"expo"/ });
  await assert.rejects(slipway.load(5), { name: "TypeError" });
  await assert.rejects(slipway.load(new Response("", { status: 404 })), { message: /404/ });
  const empty = new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0]);
  await assert.rejects(slipway.load(empty), { message: /no runtime inside/ });
  const compiled = await WebAssembly.compile(bytes);
  assert.deepEqual((await slipway.instantiate(compiled)).listFunctionNames(), ["expo"]);
  const seen = [];
  await slipway.instantiate(new Response(bytes), { onProgress: (loaded) => seen.push(loaded) });
  assert.equal(seen.at(-1), bytes.length);
});

test("texts with zeros and bytes go in and come out whole", async () => {
  const tvm = await packed();
  const same = tvm.toPackedFunc((value) => value);
  for (const text of ["a\0b", "\0", "", `é\0${"😀".repeat(40)}`]) {
    assert.equal(same(text), text);
  }
  for (const size of [0, 3, 7, 8, 100_000]) { // up to seven lie in the value itself
    const bytes = Uint8Array.from({ length: size }, (_, i) => i * 37);
    assert.deepEqual(same(bytes), bytes);
  }
  assert.throws(() => tvm.toPackedFunc(3), { name: "TypeError", message: /takes a function, and got 3/ });
});

test("raw bytes are those of a buffer, however it is viewed", async () => {
  const tvm = await packed();
  const tensor = tvm.empty([2]);
  const floats = new Float32Array([1.5, -2]);
  for (const source of [floats, floats.buffer, new DataView(floats.buffer), new Uint8Array(floats.buffer)]) {
    assert.deepEqual([...tensor.copyFrom([0, 0]).copyFromRawBytes(source).data], [1.5, -2]);
  }
  assert.throws(() => tensor.copyFromRawBytes([1, 2, 3, 4, 5, 6, 7, 8]), { name: "TypeError", message: /takes bytes/ });
  assert.throws(() => tensor.copyFromRawBytes(new Float32Array(1)), { name: "ValueError", message: /8 bytes, and 4/ });
});

test("a scope around what is not done when it returns is an error", async () => {
  const tvm = await packed();
  const late = async () => {
    const made = tvm.empty([2]);
    await undefined;
    return made.toArray();
  };
  assert.throws(() => tvm.withNewScope(late), { name: "TypeError", message: /async/ });
  await new Promise((done) => setTimeout(done, 5)); // what it rejects with reaches nobody
  assert.throws(() => tvm.endScope(), { message: /without beginScope/ });
});

test("seed 003: a function is registered, found and called", async () => {
  const tvm = await packed();
  tvm.registerFunc("myadd", (a, b) => a + b);
  const addTwoVectors = tvm.getGlobalFunc("myadd");
  assert.equal(addTwoVectors(1, 2), 3);
  assert.equal(addTwoVectors("type-", "erased"), "type-erased");
});
