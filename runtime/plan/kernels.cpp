#include "runtime/plan/kernels.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>

#include "compiler/graph/plan/plan_kernel.h"

namespace fornax::runtime {
namespace {

Result<KernelShader> ShaderOf(const graph::PlanKernel& kernel, const graph::loop::Target& target) {
    FORNAX_ASSIGN_OR_RETURN(graph::KernelCode code, graph::CodeOf(kernel, target));
    KernelShader shader;
    shader.name = graph::NameOf(kernel);
    shader.words = std::move(code.module.words);
    shader.constants = std::move(code.constants);
    shader.binding_count = static_cast<uint32_t>(graph::BuffersOf(kernel).size());
    shader.interface.push_constants = std::move(code.push_constants);
    shader.interface.workgroups = std::move(code.module.workgroups);
    shader.interface.limits = std::move(code.module.limits);
    return shader;
}

}  // namespace

Status MakeKernels(const graph::Plan& plan,
                   const graph::loop::Target& target,
                   const std::function<Status(size_t kernel, const KernelShader& shader)>& make,
                   const std::function<void(size_t done, size_t total)>& done) {
    const size_t count = plan.kernels.size();
    std::vector<Status> made(count, OkStatus());
    std::atomic<size_t> next = 0;
    std::mutex done_mutex;
    size_t done_count = 0;
    const auto work = [&] {
        for (size_t i = next++; i < count; i = next++) {
            const Result<KernelShader> shader = ShaderOf(plan.kernels[i], target);
            made[i] = shader.ok() ? make(i, *shader) : Status(shader.error());
            if (done) {
                const std::lock_guard lock(done_mutex);
                done(++done_count, count);
            }
        }
    };
    std::vector<std::thread> threads;
    const size_t thread_count =
        std::min<size_t>(std::max(std::thread::hardware_concurrency(), 1u), count);
    for (size_t i = 1; i < thread_count; ++i) {
        threads.emplace_back(work);
    }
    work();
    for (std::thread& thread : threads) {
        thread.join();
    }
    for (Status& status : made) {
        FORNAX_RETURN_IF_ERROR(status);
    }
    return OkStatus();
}

}  // namespace fornax::runtime
