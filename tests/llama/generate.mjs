// Generates tokens with llama.cpp, as node-llama-cpp ships it.
//
// Usage: node generate.mjs MODULES MODEL DEVICE STEPS [TOKEN,...]
//   MODULES  the folder of node_modules
//   DEVICE   cpu or vulkan
//   TOKEN    what to go on with after each step, instead of the likeliest token
// Prints a JSON object: the devices' names, the layers on them, the prompt's tokens, and for each step the likeliest token
// and the logits of all tokens.
import {createRequire} from "node:module";
import {pathToFileURL} from "node:url";

const PROMPT = "A furnace (fornax) melts what is thrown into it, and gives back what is asked. ";
const REPEATS = 3;

const [modules, model_path, device, steps, forced_text] = process.argv.slice(2);
const entry = createRequire(modules + "/").resolve("node-llama-cpp");
const {getLlama, LlamaLogLevel} = await import(pathToFileURL(entry));

const on_cpu = device === "cpu";
const forced = forced_text ? forced_text.split(",").map(Number) : [];
const llama = await getLlama({
    gpu: on_cpu ? false : device,
    build: "never",
    maxThreads: 1,
    logLevel: LlamaLogLevel.error,
});
const model = await llama.loadModel({modelPath: model_path, gpuLayers: on_cpu ? 0 : "max"});
const context = await model.createContext({contextSize: 512, batchSize: 512});
const sequence = context.getSequence();
let input = [model.tokens.bos, ...model.tokenize(PROMPT.repeat(REPEATS))];
const result = {devices: await llama.getGpuDeviceNames(), layers: model.gpuLayers, prompt: [...input], steps: []};
for (let step = 0; step < Number(steps); ++step) {
    const last = input.pop();
    const output = await sequence.controlledEvaluate(
        [...input, [last, {generateNext: {token: true, logits: true, options: {temperature: 0}}}]]);
    const {token, logits} = output.at(-1).next;
    result.steps.push({token, logits: [...logits].sort((a, b) => a[0] - b[0]).map(([, x]) => x)});
    input = [forced[step] ?? token];
}
process.stdout.write(JSON.stringify(result), () => process.exit(0));
