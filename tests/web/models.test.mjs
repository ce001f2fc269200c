// Models that Python compiled, against what NumPy or onnxruntime found for the same input.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { pathToFileURL } from "node:url";

const { SLIPWAY_JS, FOLDER } = process.env;
const slipway = await import(pathToFileURL(SLIPWAY_JS));
const cases = JSON.parse(await readFile(`${FOLDER}/models.json`, "utf8"));

for (const { file, is_program, inputs, outputs, tolerance } of cases) {
  test(file, async () => {
    const model = await slipway.load(`${FOLDER}/${file}`);
    assert.deepEqual(model.inputs.map((i) => i.name).sort(), Object.keys(inputs).sort());
    for (let again = 0; again < 2; ++again) {
      const found = await model.run(inputs);
      outputs.forEach((wanted, i) => {
        const given = found[model.outputs[i].name];
        assert.deepEqual(given.shape, wanted.shape);
        const peak = Math.max(...wanted.values.map(Math.abs));
        wanted.values.forEach((v, k) =>
          assert.ok(Math.abs(Number(given[k]) - v) <= tolerance * peak, `[${k}] ${given[k]} is not ${v}`));
      });
    }
    const [first] = model.inputs;
    await assert.rejects(model.run({ none: [1] }), { message: new RegExp(`'${first.name}'`) });
    await assert.rejects(model.run({ [first.name]: [1, 2, 3] }), { name: "ValueError", message: /3 were given/ });
    for (const wrong of [null, 3, "text"]) {
      await assert.rejects(model.run(wrong), { name: "TypeError", message: /takes an object of inputs/ });
    }
    const count = first.shape.reduce((a, b) => a * b, 1);
    for (const element of ["1", null, undefined, {}]) { // none becomes 0 or NaN without a word
      const values = new Array(count).fill(0).with(count - 1, element);
      await assert.rejects(model.run({ [first.name]: values }), { name: "TypeError", message: new RegExp(`element ${count - 1}`) });
    }
    const column = model.runtime.empty([...first.shape, 1], first.dtype); // as many numbers in another shape
    assert.throws(() => model.getFunction("set_input")(first.name, column), { name: "ExecutionError", message: /got .*shape|, got \(/ });
    column.dispose();
    if (is_program) {
      assert.throws(() => model.profile(2), { name: "UnsupportedError", message: /Executor\("graph"\)/ });
    } else {
      const layers = model.profile(2);
      assert.ok(layers.length && layers.every((layer) => layer.ms >= 0));
    }
    const held = model.getFunction("run");
    model.dispose();
    await assert.rejects(model.run(inputs), { name: "ReferenceError", message: "this model was disposed of" });
    assert.throws(() => held(), { name: "ReferenceError" });
  });
}
