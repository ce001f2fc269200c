// The probabilities after each token, by llama.cpp: node llm_error.mjs MODEL TOKENS OUT
import fs from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
const [, , path, list, out] = process.argv;
const require = createRequire(`${process.cwd()}/`);
const { getLlama, LlamaLogLevel } = await import(pathToFileURL(require.resolve("node-llama-cpp")));
const llama = await getLlama({ gpu: false, build: "never", logLevel: LlamaLogLevel.error, maxThreads: 1 });
const model = await llama.loadModel({ modelPath: path, gpuLayers: 0 });
const context = await model.createContext({ contextSize: 256, threads: 1, sequences: 1 });
const sequence = context.getSequence();
const tokens = JSON.parse(list);
const input = tokens.map((t) => [t, { generateNext: { probabilities: true, options: { temperature: 1, topK: 0, topP: 1, minP: 0 } } }]);
const found = await sequence.controlledEvaluate(input);
fs.writeFileSync(out, JSON.stringify(found.map((f) => [...f.next.probabilities.entries()])));
process.exit(0);
