"""wgpu-py (wgpu-native): kernels/*.wgsl, a texture written by a kernel, and what the adapter says."""

import sys

import case_runner
import numpy as np
import webgpu_cases
import wgpu

WRITES_A_TEXTURE = """
@group(0) @binding(0) var texels: texture_storage_2d<rgba8unorm, write>;
@compute @workgroup_size(8, 8)
fn main(@builtin(global_invocation_id) g: vec3u) {
    textureStore(texels, g.xy, vec4f(f32(g.x) / 255.0, f32(g.y) / 255.0, f32(g.x ^ g.y) / 255.0, 1.0));
}
"""


def make_pipeline(device, code):
    module = device.create_shader_module(code=code)
    return device.create_compute_pipeline(layout="auto", compute={"module": module, "entry_point": "main"})


def submit(device, pipeline, bind_group, workgroups, copy=None):
    encoder = device.create_command_encoder()
    compute = encoder.begin_compute_pass()
    compute.set_pipeline(pipeline)
    compute.set_bind_group(0, bind_group)
    compute.dispatch_workgroups(*workgroups)
    compute.end()
    if copy:
        copy(encoder)
    device.queue.submit([encoder.finish()])


def run_kernel(device, name, workgroups, a, b, expected, tolerance, share):
    usage = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC | wgpu.BufferUsage.COPY_DST
    buffers = [device.create_buffer_with_data(data=np.ascontiguousarray(array), usage=usage)
               for array in (a, b, np.zeros_like(expected))]
    pipeline = make_pipeline(device, (webgpu_cases.KERNELS / f"{name}.wgsl").read_text())
    group = device.create_bind_group(
        layout=pipeline.get_bind_group_layout(0),
        entries=[{"binding": i, "resource": {"buffer": buffer, "offset": 0, "size": buffer.size}}
                 for i, buffer in enumerate(buffers)])

    def once():
        submit(device, pipeline, group, workgroups)
        device.queue.read_buffer(buffers[2], 0, 4)  # waits

    once()
    result = np.frombuffer(device.queue.read_buffer(buffers[2]), expected.dtype).reshape(expected.shape)
    right = case_runner.is_close(result, expected, tolerance, share)
    case_runner.report(name, right=right, **case_runner.measured(once))


def run_texture(device):
    size = 256
    # Without COPY_DST wgpu would clear it by a render pass.
    texture = device.create_texture(size=(size, size, 1), format="rgba8unorm",
                                    usage=wgpu.TextureUsage.STORAGE_BINDING | wgpu.TextureUsage.COPY_SRC |
                                    wgpu.TextureUsage.COPY_DST)
    pipeline = make_pipeline(device, WRITES_A_TEXTURE)
    group = device.create_bind_group(layout=pipeline.get_bind_group_layout(0),
                                     entries=[{"binding": 0, "resource": texture.create_view()}])
    out = device.create_buffer(size=size * size * 4, usage=wgpu.BufferUsage.COPY_SRC | wgpu.BufferUsage.COPY_DST)

    def once():
        submit(device, pipeline, group, (size // 8, size // 8, 1), lambda encoder: encoder.copy_texture_to_buffer(
            {"texture": texture}, {"buffer": out, "bytes_per_row": size * 4, "rows_per_image": size}, (size, size, 1)))
        return np.frombuffer(device.queue.read_buffer(out), np.uint8).reshape(size, size, 4)

    y, x = np.mgrid[0:size, 0:size]
    expected = np.stack([x, y, x ^ y, np.full_like(x, 255)], axis=-1).astype(np.uint8)
    case_runner.run_case("storage texture", once, expected)


def main():
    adapter = wgpu.gpu.request_adapter_sync(power_preference="high-performance")
    print(dict(adapter.info), file=sys.stderr)
    device = adapter.request_device_sync(required_limits={"max-storage-buffers-per-shader-stage": 8})
    for case in webgpu_cases.cases():
        try:
            run_kernel(device, *case)
        except Exception as error:  # whatever a client raises is its answer
            case_runner.report_error(case[0], error)
    run_texture(device)


if __name__ == "__main__":
    main()
