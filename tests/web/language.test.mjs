// A language model token by token: an open number of tokens, caches that stay.  FOLDER has what
// test_kinds_of_models.py exported, and how the model goes on where it was compiled.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { pathToFileURL } from "node:url";

const { SLIPWAY_JS, FOLDER } = process.env;
const { load } = await import(pathToFileURL(SLIPWAY_JS));
const { opening, tokens } = JSON.parse(await readFile(`${FOLDER}/verse.json`, "utf8"));

test("a language model goes on", async () => {
  const model = await load(`${FOLDER}/verse.wasm`);
  let held = 0;
  const next = async (given) => {
    const { output } = await model.run({ tokens: given, position: [held] });
    held += given.length;
    return output.indexOf(Math.max(...output));
  };
  const made = [await next(opening)];
  while (made.length < tokens.length) {
    made.push(await next([made.at(-1)]));
  }
  assert.deepEqual(made, tokens);
});
