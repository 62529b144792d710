#include "compiler/kernel/fuzz/judge.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <string>

#include "base/guarded_memory.h"
#include "compiler/kernel/codegen/jit.h"
#include "compiler/kernel/codegen/jit_kernel.h"
#include "compiler/kernel/codegen/scratch_bound.h"
#include "compiler/kernel/codegen/target_machine.h"
#include "compiler/kernel/interpret/interpret.h"
#include "compiler/kernel/interpret/random_kernel.h"
#include "compiler/kernel/ir/text.h"
#include "compiler/kernel/ir/verify.h"
#include "compiler/kernel/spirv/reader.h"
#include "compiler/kernel/transform/passes.h"

namespace fornax::kernel::fuzz {

namespace {

constexpr uint32_t kWorkgroups[3] = {2, 1, 1};
constexpr uint64_t kSteps = 20'000'000;

// The resources, each with poison before it and nothing behind.
class Memory {
  public:
    Memory(uint64_t seed, const RandomModule& module) {
        constexpr uint32_t kOffsetAlignment = 16;
        constexpr uint32_t kMaxTexelBytes = 16;
        constexpr uint32_t kColumns = kMaxInvocations * kMaxWorkgroups;
        static constexpr uint32_t kSizes[] = {kInputBytes,
                                              kOutputBytes,
                                              kUniformBytes,
                                              kArrayBuffers * kArrayBufferBytes,
                                              kColumns * kOwnTexels * kMaxTexelBytes,
                                              kInputImageSide * kInputImageSide * kMaxTexelBytes};
        constexpr int kCount = std::size(kSizes);
        Random random(seed);
        for (int i = 0; i < kCount; ++i) {
            memory_.emplace_back(kSizes[i], kOffsetAlignment, 0xa5);
            Fill(random, memory_[i].data(), kSizes[i]);
        }
        Fill(random, push_, sizeof(push_));
        auto address = [&](int which) { return reinterpret_cast<uint64_t>(memory_[which].data()); };
        for (int i = 0; i < 3; ++i) {
            set_.buffers[i] = {address(i), kSizes[i]};
        }
        for (uint32_t i = 0; i < kArrayBuffers; ++i) {
            set_.buffers[3 + i] = {address(3) + i * kArrayBufferBytes, kArrayBufferBytes};
        }
        set_.images[0] = Image(address(4), module.own_texel, kColumns, kOwnTexels);
        set_.images[1] = Image(address(5), module.input_texel, kInputImageSide, kInputImageSide);
        if (module.addressed) {
            const uint64_t addresses[] = {address(0), address(1)};
            static_assert(sizeof(addresses) == kAddressBytes);
            std::memcpy(push_ + kPushBytes - kAddressBytes, addresses, kAddressBytes);
        }
        frame_.descriptor_sets = sets_;
        frame_.push_constants = push_;
        std::ranges::copy(kWorkgroups, frame_.workgroup_count);
    }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;

    const hal::DispatchFrame& frame() const { return frame_; }
    // What the kernel may have changed, and what it must not.
    std::vector<uint8_t> bytes() const {
        std::vector<uint8_t> bytes;
        for (const GuardedMemory& memory : memory_) {
            bytes.insert(bytes.end(), memory.readable().begin(), memory.readable().end());
        }
        return bytes;
    }

  private:
    static hal::ImageDescriptor Image(uint64_t address,
                                      hal::TexelFormat format,
                                      uint32_t width,
                                      uint32_t height) {
        hal::ImageDescriptor image;
        image.format = format;
        image.width = width;
        image.height = height;
        image.depth = 1;
        image.row_pitch = width * format.bytes;
        image.slice_pitch = image.row_pitch * height;
        image.levels = 1;
        image.memory = {address, image.slice_pitch};
        return image;
    }

    // Small integers, small floats, any bits: comparisons go either way.
    static void Fill(Random& random, uint8_t* data, uint32_t bytes) {
        for (uint32_t i = 0; i < bytes; i += 4) {
            uint32_t word = random.Below(16);
            uint32_t choice = random.Below(8);
            if (choice < 3) {
                word = std::bit_cast<uint32_t>(static_cast<float>(random.Below(64)) / 8 - 4);
            } else if (choice == 3) {
                word = static_cast<uint32_t>(random.Next());
            }
            std::memcpy(data + i, &word, 4);
        }
    }

    std::vector<GuardedMemory> memory_;
    alignas(16) uint8_t push_[hal::kPushConstantBytes] = {};
    // As MakeRequest lays it out.
    struct {
        hal::BufferDescriptor buffers[3 + kArrayBuffers];
        hal::ImageDescriptor images[2];
    } set_;
    const void* sets_[1] = {&set_};
    hal::DispatchFrame frame_;
};

std::string Difference(const std::vector<uint8_t>& expected, const std::vector<uint8_t>& actual) {
    if (expected == actual) {
        return "";
    }
    size_t count = 0;
    size_t first = expected.size();
    for (size_t i = 0; i < expected.size(); i += 4) {
        if (std::memcmp(&expected[i], &actual[i], 4) != 0) {
            first = std::min(first, i);
            ++count;
        }
    }
    uint32_t words[2];
    std::memcpy(&words[0], &expected[first], 4);
    std::memcpy(&words[1], &actual[first], 4);
    char text[160];
    std::snprintf(text, sizeof(text), "%zu words differ, the first at byte %zu: %08x, not %08x",
                  count, first, words[1], words[0]);
    return text;
}

}  // namespace

struct Judge::Target {
    TargetInfo info;
    std::unique_ptr<llvm::TargetMachine> machine;
};

Judge::Judge() {
    for (const char* name : {"", "x86-64-v4", "x86-64-v3", "x86-64-v2"}) {
        Result<TargetInfo> info = DetectTarget(name);
        if (!info.ok()) {
            continue;
        }
        auto machine = CreateTargetMachine(*info, llvm::CodeGenOptLevel::Default);
        if (!machine.ok()) {
            continue;
        }
        targets_.push_back(std::make_unique<Target>(Target{*info, std::move(*machine)}));
    }
}

Judge::~Judge() = default;

Case CaseOf(uint64_t seed, size_t targets) {
    Random random(seed ^ 0xca5e);
    Case which;
    which.seed = seed;
    which.options.portable = random.Chance(15);
    which.options.robust = random.Chance(50);
    which.target = random.Below(static_cast<uint32_t>(targets));
    static constexpr uint32_t kLanes[] = {1, 8, 16, 32};
    which.lanes = random.Chance(80) ? 0 : kLanes[random.Below(4)];
    which.options.subgroup_size = 8u << random.Below(4);
    which.options.wide = !which.options.portable && random.Chance(50);
    if (random.Chance(35)) {
        which.options.subgroups = true;
        which.lanes = 0;  // a vector is a subgroup
    }
    which.tier = random.Chance(30) ? CodeTier::kBaseline : CodeTier::kOptimized;
    return which;
}

std::string Judge::Try(const Case& which, const StageSink& sink) {
    Target& target = *targets_[which.target];
    const RandomModule module = MakeRandomModule(which.seed, which.options);
    Result<ir::Kernel> read = ReadSpirv(MakeRequest(module, which.options));
    if (!read.ok()) {
        return "the reader: " + read.error().message;
    }
    if (sink) {
        sink("read.ir", ir::PrintKernel(*read));
    }
    Memory expected(which.seed, module);
    Status status =
        Interpret(*read, expected.frame(), 0, kWorkgroups[0], InterpretLimits{.steps = kSteps});
    if (!status.ok()) {
        return "the interpreter: " + status.error().message;
    }
    // A kernel that is put off may have been through the first passes or not.
    const std::optional<uint64_t> first_bound = ScratchBound(*read);
    RunFirstPasses(*read, VectorRegisters(target.info));
    const std::optional<uint64_t> scratch_bound = ScratchBound(*read);
    if (first_bound && scratch_bound && *scratch_bound > *first_bound) {
        return "the scratch memory: the first passes raise the bound from " +
               std::to_string(*first_bound) + " to " + std::to_string(*scratch_bound);
    }
    RunOtherPasses(*read, which.tier, VectorRegisters(target.info), JoinedMmasFor(target.info));
    if (Status verified = ir::Verify(*read); !verified.ok()) {
        return "the verifier after the passes: " + verified.error().message;
    }

    if (sink) {
        sink("ir", ir::PrintKernel(*read));
    }
    auto native = CompileToNative(*read, target.info, *target.machine, sink, which.lanes,
                                  /*explain=*/nullptr, which.tier);
    if (!native.ok()) {
        return "the compiler: " + native.error().message;
    }
    if (scratch_bound && native->scratch_bytes > *scratch_bound) {
        return "the scratch memory: " + std::to_string(native->scratch_bytes) +
               " bytes are more than the bound, " + std::to_string(*scratch_bound);
    }
    auto object = LoadedObject::Load(native->object, kKernelSymbol);
    if (!object.ok()) {
        return "the loader: " + object.error().message;
    }
    struct alignas(64) Line {
        uint8_t bytes[64];
    };
    constexpr size_t kMarginLines = hal::kSharedMemoryMargin / sizeof(Line);
    std::vector<Line> shared(read->shared_bytes / 64 + 1 + 2 * kMarginLines);
    std::memset(shared.data(), 0xcd, shared.size() * sizeof(Line));
    std::vector<Line> scratch(native->scratch_bytes / 64 + 1);
    std::memset(scratch.data(), 0xcd, scratch.size() * sizeof(Line));
    hal::WorkerFrame worker = {.shared_memory = shared.data() + kMarginLines,
                               .scratch = scratch.data()};
    Memory actual(which.seed, module);
    auto entry = reinterpret_cast<hal::KernelEntry>(const_cast<void*>((*object)->entry()));
    entry(&actual.frame(), &worker, 0, kWorkgroups[0]);
    if (worker.fault != 0) {
        return "the native code ends with fault " + std::to_string(worker.fault);
    }
    std::string difference = Difference(expected.bytes(), actual.bytes());
    if (difference.empty()) {
        return "";
    }
    // Which part is to blame?
    Memory passes(which.seed, module);
    status = Interpret(*read, passes.frame(), 0, kWorkgroups[0], InterpretLimits{.steps = kSteps});
    if (!status.ok()) {
        return "the interpreter after the passes: " + status.error().message;
    }
    std::string by_passes = Difference(expected.bytes(), passes.bytes());
    return by_passes.empty() ? "native code on " + target.info.cpu_name + ": " + difference
                             : "the passes: " + by_passes;
}

}  // namespace fornax::kernel::fuzz
