// Dawn by its npm package `webgpu`: kernels/*.wgsl on the inputs that webgpu_cases.py has written into the folder of the
// first argument. Prints lines as case_runner.py does.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const folder = process.argv[2];
const { create, globals } = createRequire(join(process.argv[3], "package.json"))("webgpu");
Object.assign(globalThis, globals);

function median(values) {
    return values.sort((a, b) => a - b)[Math.floor(values.length / 2)];
}

async function measure(run) {
    const begin = performance.now();
    for (let runs = 0; runs < 3 || performance.now() - begin < 2000; ++runs) await run();
    const times = [];
    while (times.length < 3 || times.reduce((a, b) => a + b) < 1500) {
        const start = performance.now();
        await run();
        times.push(performance.now() - start);
    }
    return median(times) / 1000;
}

function isClose(result, expected, tolerance, share) {
    const scale = expected.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
    let wrong = 0;
    expected.forEach((value, i) => {
        if (!(Math.abs(result[i] - value) <= tolerance * scale)) ++wrong;
    });
    return wrong <= share * expected.length;
}

async function runCase(device, test) {
    const read = (suffix) => new Uint8Array(readFileSync(join(folder, `${test.name}.${suffix}`)));
    const inputs = [read("a"), read("b")];
    const expectedBytes = read("expected");
    const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST;
    const buffers = [...inputs, expectedBytes].map((bytes) => device.createBuffer({ size: bytes.length, usage }));
    inputs.forEach((bytes, i) => device.queue.writeBuffer(buffers[i], 0, bytes));
    const module = device.createShaderModule({ code: readFileSync(test.kernel, "utf8") });
    const pipeline = await device.createComputePipelineAsync({ layout: "auto", compute: { module, entryPoint: "main" } });
    const group = device.createBindGroup({
        layout: pipeline.getBindGroupLayout(0),
        entries: buffers.map((buffer, binding) => ({ binding, resource: { buffer } })),
    });
    const submit = (copy) => {
        const encoder = device.createCommandEncoder();
        const pass = encoder.beginComputePass();
        pass.setPipeline(pipeline);
        pass.setBindGroup(0, group);
        pass.dispatchWorkgroups(...test.workgroups);
        pass.end();
        copy?.(encoder);
        device.queue.submit([encoder.finish()]);
    };
    const staging = device.createBuffer({
        size: expectedBytes.length, usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST,
    });
    submit((encoder) => encoder.copyBufferToBuffer(buffers[2], 0, staging, 0, expectedBytes.length));
    await staging.mapAsync(GPUMapMode.READ);
    const View = test.floats ? Float32Array : Uint32Array;
    const result = new View(staging.getMappedRange().slice(0));
    staging.unmap();
    const right = isClose(result, new View(expectedBytes.buffer), test.tolerance, test.share);
    const seconds = await measure(async () => {
        submit();
        await device.queue.onSubmittedWorkDone();
    });
    return { right, seconds };
}

const gpu = create(["backend=vulkan"]);
const adapter = await gpu.requestAdapter();
if (!adapter) throw new Error("Dawn has no adapter for this driver.");
console.error(adapter.info.description, adapter.info.device);
const device = await adapter.requestDevice();
for (const test of JSON.parse(readFileSync(join(folder, "cases.json"), "utf8"))) {
    let answer;
    try {
        answer = await runCase(device, test);
    } catch (error) {
        answer = { right: false, error: String(error).split("\n")[0].slice(0, 200) };
    }
    console.log(JSON.stringify({ case: test.name, ...answer }));
}
device.destroy();
process.exit(0); // Dawn's event loop would go on
