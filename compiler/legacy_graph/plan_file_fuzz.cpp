// Coverage-guided fuzzing of the plan reader: any payload behind a right header, and behind the
// digest of the kernels that this build has.
#include "compiler/legacy_graph/plan_file.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <random>

#include <flatbuffers/flatbuffers.h>

#include "base/fuzz_outcomes.h"
#include "base/hash.h"
#include "compiler/legacy_graph/compile.h"
#include "compiler/legacy_graph/plan_generated.h"
#include "compiler/legacy_graph/testing/graph_builder.h"

namespace {

using namespace fornax::legacy_graph;
using Payload = std::vector<uint8_t>;
using Random = std::mt19937;
using testing::GraphBuilder;
using testing::ShapeOf;

constexpr size_t kHeaderBytes = 40;

// Writes the digest that ReadPlan wants into a payload that FlatBuffers can read.
void RepairDigest(Payload& payload) {
    flatbuffers::Verifier verifier(payload.data(), payload.size());
    if (stored::VerifyPlanBuffer(verifier)) {
        flatbuffers::GetMutableRoot<flatbuffers::Table>(payload.data())
            ->SetField<uint64_t>(stored::Plan::VT_KERNEL_LIBRARY_DIGEST, KernelLibraryDigest(), 0);
    }
}

// The header's fields in the order of plan_file.cpp, so that the checksum stops nothing.
std::vector<std::byte> WithHeader(const Payload& payload) {
    const fornax::Hash128 checksum = fornax::HashBytes(std::as_bytes(std::span(payload)));
    const uint32_t version_and_reserved[2] = {kPlanFormatVersion, 0};
    const uint64_t payload_bytes = payload.size();
    std::vector<std::byte> file(kHeaderBytes + payload.size());
    std::memcpy(file.data(), "FNXPLAN\n", 8);
    std::memcpy(file.data() + 8, version_and_reserved, 8);
    std::memcpy(file.data() + 16, &payload_bytes, 8);
    std::memcpy(file.data() + 24, &checksum, 16);
    if (!payload.empty()) {  // memcpy takes no null, even for nothing
        std::memcpy(file.data() + kHeaderBytes, payload.data(), payload.size());
    }
    return file;
}

Payload PayloadOf(const Plan& plan) {
    const std::vector<std::byte> file = SerializePlan(plan).value();
    Payload payload(file.size() - kHeaderBytes);
    std::memcpy(payload.data(), file.data() + kHeaderBytes, payload.size());
    return payload;
}

Plan Compiled(GraphBuilder& b, ValueId result) {
    b.graph.AddOutput("y", result);
    return Compile(std::move(b.graph), {}).value();
}

// Valid plans that between them use every kernel.
std::vector<Plan> MakeSeeds() {
    std::vector<Plan> seeds;
    {
        GraphBuilder b;
        const ValueId x = b.Input("x", {2, 3, 8, 8});
        const ValueId conv = b.Relu("relu", b.Conv3x3("conv", x, b.Constant("w", {4, 3, 3, 3})));
        const ValueId flat = b.Node("flat", op::Reshape{ShapeOf({2, 256})}, {conv});
        const ValueId product = b.Node("mm", op::MatMul{}, {flat, b.Constant("m", {256, 2})});
        seeds.push_back(Compiled(b, b.Node("softmax", op::Softmax{1}, {product})));
    }
    {
        GraphBuilder b;
        const ValueId x = b.Input("x", {1, 4, 6, 6});
        op::Conv depthwise;
        depthwise.group = 4;
        const ValueId conv = b.Node("conv", depthwise, {x, b.Constant("w", {4, 1, 1, 1})});
        op::Pool pool;
        pool.window.kernel = {2, 2};
        const ValueId pooled = b.Node("pool", pool, {conv});
        const ValueId reduced = b.Node("sum", op::Reduce{op::ReduceKind::kSum, 2, 2}, {pooled});
        seeds.push_back(Compiled(b, b.Add("add", pooled, reduced)));
    }
    {
        GraphBuilder b;
        const ValueId x = b.Input("x", {9, 7});
        const ValueId y = b.Node("turned", op::Transpose{{1, 0}}, {x});
        const ValueId both = b.Node("both", op::Concat{1}, {y, y});
        const ValueId wide = b.Node("mm", op::MatMul{}, {both, b.Constant("m", {18, 16})});
        seeds.push_back(Compiled(b, b.Relu("relu", wide)));
    }
    return seeds;
}

uint64_t Number(Random& random) {
    switch (random() % 6) {
        case 0:
            return random() % 8;
        case 1:
            return random() % 64 * kTensorAlignment;
        case 2:
            return uint64_t{1} << random() % 64;
        case 3:
            return ~uint64_t{0} >> random() % 64;
        case 4:
            return random() % 300;
        default:
            return uint64_t{random()} << 32 | random();
    }
}

template <typename T>
void ChangeNumber(T& number, Random& random) {
    const auto step = static_cast<T>(random() % 3);
    number = random() % 2 == 0 ? static_cast<T>(number + step - 1) : static_cast<T>(Number(random));
}

// Changes, copies or removes one element.
template <typename T, typename Change>
void ChangeOne(std::vector<T>& elements, Random& random, Change&& change) {
    if (elements.empty()) {
        return;
    }
    const size_t index = random() % elements.size();
    const auto place = elements.begin() + static_cast<ptrdiff_t>(index);
    switch (random() % 16) {
        case 0:
            elements.erase(place);
            return;
        case 1:
            if (elements.size() < 64) {
                const T copy = *place;
                elements.insert(place, copy);
            }
            return;
        case 2:
            std::swap(*place, elements[random() % elements.size()]);
            return;
        default:
            change(*place);
    }
}

void ChangeTensor(PlanTensor& tensor, Random& random) {
    switch (random() % 4) {
        case 0:
            return ChangeNumber(tensor.offset_bytes, random);
        case 1:
            return ChangeNumber(tensor.first_step, random);
        case 2:
            return ChangeNumber(tensor.last_step, random);
        default:
            tensor.kind = static_cast<TensorKind>(random() % 5);
    }
}

void ChangeDispatch(PlanDispatch& dispatch, Random& random) {
    const auto number = [&](uint32_t& value) { ChangeNumber(value, random); };
    switch (random() % 6) {
        case 0:
            dispatch.kernel =
                static_cast<KernelId>(random() % (static_cast<uint32_t>(kLastKernelId) + 1));
            return;
        case 1:
            return number(dispatch.grid[random() % 3]);
        case 2:
            return number(dispatch.set);
        case 3:
            dispatch.barrier_before = !dispatch.barrier_before;
            return;
        default:
            ChangeOne(dispatch.parameters, random, number);
    }
}

void ChangePlan(Plan& plan, Random& random) {
    const auto number = [&](uint32_t& value) { ChangeNumber(value, random); };
    const auto port = [&](PlanPort& value) { number(value.tensor); };
    switch (random() % 8) {
        case 0:
            return ChangeOne(plan.tensors, random,
                             [&](PlanTensor& tensor) { ChangeTensor(tensor, random); });
        case 1:
            return ChangeOne(plan.inputs, random, port);
        case 2:
            return ChangeOne(plan.outputs, random, port);
        case 3:
            return ChangeOne(plan.sets, random,
                             [&](PlanSet& set) { ChangeOne(set.tensors, random, number); });
        case 4:
            return ChangeNumber(plan.arena_bytes, random);
        case 5:
            return ChangeNumber(plan.peak_live_bytes, random);
        default:
            return ChangeOne(plan.dispatches, random,
                             [&](PlanDispatch& dispatch) { ChangeDispatch(dispatch, random); });
    }
}

// One 32-bit word becomes another: fields and offsets are words.
void ChangeWord(Payload& payload, Random& random) {
    const size_t position = random() % (payload.size() / 4) * 4;
    uint32_t word;
    std::memcpy(&word, payload.data() + position, sizeof(word));
    ChangeNumber(word, random);
    std::memcpy(payload.data() + position, &word, sizeof(word));
}

}  // namespace

// libFuzzer's own change of bytes.
extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

// Changed bytes seldom leave a plan that can be read, changed fields do.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data,
                                          size_t size,
                                          size_t max_size,
                                          unsigned seed) {
    static const std::vector<Plan> seeds = MakeSeeds();
    Random random(seed);
    if (size >= 4 && random() % 4 == 0) {
        return LLVMFuzzerMutate(data, size, max_size);
    }
    Payload payload(data, data + size);
    if (size >= 4 && random() % 3 == 0) {
        ChangeWord(payload, random);
    } else {
        RepairDigest(payload);
        const fornax::Result<Plan> read = ParsePlan(WithHeader(payload));
        Plan plan = read.ok() ? *read : seeds[random() % seeds.size()];
        for (uint32_t changes = random() % 3; changes != 0; --changes) {
            ChangePlan(plan, random);
        }
        payload = PayloadOf(plan);
    }
    if (payload.size() > max_size) {
        return LLVMFuzzerMutate(data, size, max_size);
    }
    std::memcpy(data, payload.data(), payload.size());
    return payload.size();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    Payload payload(data, data + size);
    RepairDigest(payload);
    const fornax::Result<Plan> plan = ParsePlan(WithHeader(payload));
    fornax::FuzzOutcomes::Count(plan.ok());
    if (!plan.ok()) {
        return 0;
    }
    // What is accepted can be printed, and written and read again as the same plan.
    const std::string text = ToText(*plan);
    const auto written = SerializePlan(*plan);
    if (text.empty() || !written.ok()) {
        std::abort();
    }
    const fornax::Result<Plan> again = ParsePlan(*written);
    if (!again.ok() || ToText(*again) != text) {
        std::abort();
    }
    return 0;
}
