// Models with open sizes, states, branches and other types than float32.  FOLDER has what
// test_kinds_of_models.py exported.
import assert from "node:assert/strict";
import { test } from "node:test";
import { pathToFileURL } from "node:url";

const { SLIPWAY_JS, FOLDER } = process.env;
const { load } = await import(pathToFileURL(SLIPWAY_JS));
const open = (name, options) => load(`${FOLDER}/${name}.wasm`, options);

test("a model takes every size of an open dimension", async () => {
  const model = await open("open");
  assert.deepEqual(model.inputs, [{ name: "x", dtype: "float32", shape: [8, 3], axes: ["n", 3] }]);
  assert.deepEqual(model.outputs[0].axes, ["n", 3]);
  assert.deepEqual(model.openSizes, [{ name: "n", low: 1, high: 8 }]);
  const rows = [[1, 2, 3], [1, 1, 1]];
  const forms = [rows, rows.flat(), new Float32Array(rows.flat()), rows.map((row) => new Float32Array(row)),
    model.runtime.tensor(rows)];
  for (const x of forms) {
    const { output } = await model.run({ x });
    assert.deepEqual([[...output], output.shape], [[1, 2, 3, 2, 3, 4], [2, 3]]);
  }
  for (const n of [8, 1, 5]) {
    const { output } = await model.run({ x: new Float32Array(3 * n).fill(1) });
    assert.deepEqual([output.shape, output.at(-1)], [[n, 3], n]);
  }
  const again = await model.run({ x: (await model.run({ x: rows })).output }); // what came out has a shape
  assert.deepEqual(again.output.shape, [2, 3]);
});

test("sizes that do not fit are refused with the model's words", async () => {
  const model = await open("open");
  const refused = (x, message) => assert.rejects(model.run({ x }), { message });
  await refused(new Float32Array(27), /n is 1 to 8/);
  await refused([], /n is 1 to 8/);
  await refused([1, 2, 3, 4], /shape \[n,3\], and numbers of shape \[4\]/);
  await refused([[1, 2], [3, 4]], /\(n, 3\) in this model, got \(2, 2\)/);
  await refused([[1, 2, 3], [4, 5]], /not all of the same length/);
  await refused(undefined, /takes numbers/);
  await refused(5, /shape \[n,3\]/);
  assert.deepEqual((await model.run({ x: [1, 2, 3] })).output.shape, [1, 3]); // and it lives on
});

test("nested arrays have the input's shape", async () => {
  const model = await open("branch"); // y of shape [4]
  const given = (y) => model.run({ flag: true, y });
  for (const y of [[1, 2, 3, 4], [[1, 2, 3, 4]], [[[1], [2], [3], [4]]], [new Float32Array([1, 2, 3, 4])], [[1n, true, 3, 4]]]) {
    assert.equal((await given(y)).output[3], 8);
  }
  const refused = (y, message) => assert.rejects(given(y), { name: "ValueError", message });
  for (const y of [[[1, 2], [3, 4]], [[[1, 2, 3, 4], [5, 6, 7, 8]]]]) {
    await refused(y, /'y' has shape \[4\], and nested arrays of shape \[(2,2|1,2,4)\] were given/);
  }
  for (const y of [[[1, 2], [3], [4]], [[1, 2], 3, 4], [1, [2, 3], 4], [[1, 2, 3, 4], 5], [[[1, 2], [3]], [[4]]]]) {
    await refused(y, /not all of the same length/);
  }
  const square = model.runtime.empty([2, 2]);
  assert.throws(() => square.copyFrom([[1, 2, 3, 4], [5, 6, 7, 8]]), { message: /shape \[2,2\], and nested arrays of shape \[2,4\]/ });
  assert.deepEqual([...square.copyFrom([[1, 2], [3, 4]]).data], [1, 2, 3, 4]);
  assert.deepEqual([...square.copyFrom([5, 6, 7, 8]).data], [5, 6, 7, 8]);
  // So have typed arrays that have one, as those that a run or a tensor gives.
  const shaped = (...shape) => Object.assign(new Float32Array([1, 2, 3, 4]), { shape });
  for (const y of [shaped(4), shaped(1, 4, 1)]) {
    assert.equal((await given(y)).output[3], 8);
  }
  await refused(shaped(2, 2), /'y' has shape \[4\], and numbers of shape \[2,2\] were given/);
  assert.throws(() => square.copyFrom(shaped(1, 4)), { name: "ValueError" });
  assert.deepEqual([...square.copyFrom(shaped(4)).data], [1, 2, 3, 4]);
  assert.deepEqual(model.runtime.tensor(square.toArray(), [4, 1]).shape, [4, 1]); // a shape that is said is another one
});

test("inputs are given by name", async () => {
  const model = await open("branch");
  for (const inputs of [[1, 2], new Float32Array(4), model.runtime.empty([4]), 7, "y", null]) {
    await assert.rejects(model.run(inputs), { name: "TypeError", message: /run takes .* \{ flag: numbers, y: numbers \}/ });
  }
});

test("inputs that share an open dimension", async () => {
  const model = await open("two_open");
  const image = [[[1, 2], [3, 4]]];
  await assert.rejects(model.run({ image }), { name: "ExecutionError", message: /'x'.*Set it so/ });
  const found = await model.run({ image, x: [[1, 2, 3]] });
  assert.deepEqual(model.outputs.map(({ name }) => [...found[name]]), [[4, 6], [6]]);
  await assert.rejects(model.run({ image: [1, 2, 3, 4] }), { message: /give nested arrays, or a tensor/ });
  const two = model.runtime.tensor([1, 1, 1, 1, 1, 1, 1, 1], [2, 2, 2]);
  const more = await model.run({ image: two, x: [[1, 2, 3], [4, 5, 6]] });
  assert.deepEqual(model.outputs.map(({ name }) => more[name].shape), [[2, 2], [2]]);
});

for (const kind of ["graph", "aot"]) {
  test(`a state stays from run to run (${kind})`, async () => {
    const [model, other] = [await open(`state_${kind}`), await open(`state_${kind}`)];
    assert.deepEqual(model.inputs.map(({ name }) => name), ["y"]);
    assert.deepEqual(model.states, [{ name: "cache", dtype: "float32", shape: [4], axes: [4] }]);
    const step = async (which = model) => (await which.run({ y: [1, 2, 3, 4] })).output[0];
    assert.deepEqual([await step(), await step()], [10, 20]);
    const saved = model.saveState();
    assert.deepEqual([...saved.cache], [2, 4, 6, 8]);
    assert.equal(await step(), 30);
    other.loadState(saved);
    assert.equal(await step(other), 30);
    model.reset();
    assert.equal(await step(), 10);
    model.setInput("cache", [0, 0, 0, 90]);
    assert.equal(await step(), 100);
    for (const wrong of [{}, null, { ...saved, more: [1] }]) {
      assert.throws(() => model.loadState(wrong), { name: "ValueError", message: /this model has 'cache'/ });
    }
  });
}

test("a branch that is taken when the model runs", async () => {
  const model = await open("branch");
  assert.deepEqual([...(await model.run({ flag: true, y: [1, 2, 3, 4] })).output], [2, 4, 6, 8]);
  assert.deepEqual([...(await model.run({ flag: 0, y: [1, 2, 3, 4] })).output], [2, 3, 4, 5]);
});

test("numbers of every type, and those that do not fit", async () => {
  const large = 2n ** 62n + 1n;
  const same = async (dtype, given, wanted) => {
    const model = await open(`type_${dtype}`);
    const { output } = await model.run({ z: given });
    assert.deepEqual([[...output], output.dtype], [wanted, dtype]);
    return (z, message = /does not fit/) => assert.rejects(model.run({ z }), { name: "ValueError", message });
  };
  const no = await same("int64", [large, 2, true, -5], [-large, -2n, -1n, 5n]);
  await no([2n ** 63n, 0, 0, 0]);
  await no([0.5, 0, 0, 0], /whole numbers, and 0.5 is none/);
  await no([NaN, 0, 0, 0], /NaN/);
  await same("int64", new Int32Array([1, 2, 3, 4]), [-1n, -2n, -3n, -4n]);
  await (await same("uint64", [0, 1, 2n, 3], [0n, 2n ** 64n - 1n, 2n ** 64n - 2n, 2n ** 64n - 3n]))([-1, 0, 0, 0]);
  await same("float16", [1.0009765625, NaN, -Infinity, 70000], [-1.0009765625, NaN, Infinity, -Infinity]);
  await same("float64", [1e300, NaN, 2n ** 60n, -0], [-1e300, NaN, -(2 ** 60), 0]);
  const truth = await same("bool", [true, false, 1, 0], [0, 1, 0, 1]);
  await truth([2, 0, 0, 0]);
  await truth(new Uint8Array([2, 0, 0, 0]));
  await (await same("int8", new Uint8ClampedArray([1, 2, 3, 4]), [-1, -2, -3, -4]))([Infinity, 0, 0, 0]);
});
