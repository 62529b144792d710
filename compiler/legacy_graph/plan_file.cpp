// Writing plans with FlatBuffers, and reading them back with suspicion.
#include "compiler/legacy_graph/plan_file.h"

#include <cstring>

#include <flatbuffers/flatbuffers.h>
#include <fmt/format.h>

#include "base/hash.h"
#include "compiler/legacy_graph/plan_generated.h"
#include "compiler/legacy_graph/printable.h"

namespace fornax::legacy_graph {
namespace {

struct Header {
    char magic[8] = {'F', 'N', 'X', 'P', 'L', 'A', 'N', '\n'};
    uint32_t version = kPlanFormatVersion;
    uint32_t reserved = 0;
    uint64_t payload_bytes = 0;
    Hash128 checksum;  // of the payload
};
static_assert(sizeof(Header) == 40);  // keeps the payload aligned

constexpr uint64_t kMaxPayloadBytes = (uint64_t{1} << 31) - 1;

Error Damaged(std::string message) {
    return {ErrorCode::kDataLoss, std::move(message)};
}

std::string ToString(const flatbuffers::String* text) {
    return text == nullptr ? std::string() : Printable(text->string_view());
}

// Copies the bytes: the verifier proves the alignment of a vector's length, not that of its
// elements, and reading these in place would be undefined where a file has them elsewhere.
template <typename T>
std::vector<T> ToVector(const flatbuffers::Vector<T>* vector) {
    static_assert(std::is_arithmetic_v<T> && FLATBUFFERS_LITTLEENDIAN);
    std::vector<T> result(vector == nullptr ? 0 : vector->size());
    if (!result.empty()) {
        std::memcpy(result.data(), vector->Data(), result.size() * sizeof(T));
    }
    return result;
}

template <typename T>
size_t Size(const T* vector) {
    return vector == nullptr ? 0 : vector->size();
}

std::vector<uint64_t> ToDims(const Shape& shape) {
    return {shape.dims().begin(), shape.dims().end()};
}

template <typename Stored>
Result<TensorType> ReadType(const Stored& stored) {
    if (stored.data_type() > static_cast<uint8_t>(kLastDataType)) {
        return Damaged(fmt::format("The plan holds the unknown data type {}.", stored.data_type()));
    }
    std::vector<int64_t> dims;
    for (uint64_t dim : ToVector(stored.dims())) {
        dims.push_back(dim > static_cast<uint64_t>(INT64_MAX) ? -1 : static_cast<int64_t>(dim));
    }
    Result<Shape> shape = Shape::Make(dims);
    if (!shape.ok()) {
        return Damaged(fmt::format("The plan's {} has a bad shape: {}.", ToString(stored.name()),
                                   shape.error().message));
    }
    return TensorType{static_cast<DataType>(stored.data_type()), std::move(*shape)};
}

Result<KernelId> FindKernel(const std::string& name) {
    for (uint32_t i = 0; i <= static_cast<uint32_t>(kLastKernelId); ++i) {
        if (Kernel(KernelId{i}).name == name) {
            return KernelId{i};
        }
    }
    return Damaged(fmt::format("The plan uses a kernel named {}, which does not exist.", name));
}

Result<std::vector<PlanPort>> ReadPorts(
    const flatbuffers::Vector<flatbuffers::Offset<stored::Port>>* ports) {
    std::vector<PlanPort> result;
    for (size_t i = 0; i < Size(ports); ++i) {
        const stored::Port& port = *ports->Get(i);
        FORNAX_ASSIGN_OR_RETURN(TensorType type, ReadType(port));
        result.push_back({ToString(port.name()), std::move(type), port.tensor()});
    }
    return result;
}

Result<PlanTensor> ReadTensor(const stored::Tensor& stored) {
    if (stored.kind() > static_cast<uint8_t>(kLastTensorKind)) {
        return Damaged(fmt::format("The plan holds the unknown tensor kind {}.", stored.kind()));
    }
    PlanTensor tensor;
    tensor.name = ToString(stored.name());
    FORNAX_ASSIGN_OR_RETURN(tensor.type, ReadType(stored));
    tensor.kind = static_cast<TensorKind>(stored.kind());
    tensor.offset_bytes = stored.offset_bytes();
    tensor.first_step = stored.first_step();
    tensor.last_step = stored.last_step();
    return tensor;
}

Result<PlanDispatch> ReadDispatch(const stored::Dispatch& stored) {
    PlanDispatch dispatch;
    dispatch.name = ToString(stored.name());
    FORNAX_ASSIGN_OR_RETURN(dispatch.kernel, FindKernel(ToString(stored.kernel())));
    dispatch.parameters = ToVector(stored.parameters());
    dispatch.grid = {stored.grid_x(), stored.grid_y(), stored.grid_z()};
    dispatch.set = stored.set();
    dispatch.barrier_before = stored.barrier_before();
    FillCosts(dispatch);
    return dispatch;
}

Result<Plan> ReadPlan(const stored::Plan& stored) {
    if (stored.kernel_library_digest() != KernelLibraryDigest()) {
        return Damaged(
            "The plan was made for other kernels than this version of Fornax has; "
            "compile the model again.");
    }
    Plan plan;
    plan.name = ToString(stored.name());
    plan.graph_hash = ToString(stored.graph_hash());
    for (size_t i = 0; i < Size(stored.tensors()); ++i) {
        FORNAX_ASSIGN_OR_RETURN(PlanTensor tensor, ReadTensor(*stored.tensors()->Get(i)));
        plan.tensors.push_back(std::move(tensor));
    }
    FORNAX_ASSIGN_OR_RETURN(plan.inputs, ReadPorts(stored.inputs()));
    FORNAX_ASSIGN_OR_RETURN(plan.outputs, ReadPorts(stored.outputs()));
    for (size_t i = 0; i < Size(stored.sets()); ++i) {
        plan.sets.push_back({ToVector(stored.sets()->Get(i)->tensors())});
    }
    for (size_t i = 0; i < Size(stored.dispatches()); ++i) {
        FORNAX_ASSIGN_OR_RETURN(PlanDispatch dispatch, ReadDispatch(*stored.dispatches()->Get(i)));
        plan.dispatches.push_back(std::move(dispatch));
    }
    plan.weights = ToVector(stored.weights());
    plan.arena_bytes = stored.arena_bytes();
    plan.peak_live_bytes = stored.peak_live_bytes();
    FORNAX_RETURN_IF_ERROR(ValidatePlan(plan));
    return plan;
}

using Builder = flatbuffers::FlatBufferBuilder;

std::vector<flatbuffers::Offset<stored::Port>> WritePorts(Builder& builder,
                                                          const std::vector<PlanPort>& ports) {
    std::vector<flatbuffers::Offset<stored::Port>> offsets;
    for (const PlanPort& port : ports) {
        const std::vector<uint64_t> dims = ToDims(port.type.shape);
        offsets.push_back(stored::CreatePortDirect(
            builder, port.name.c_str(), static_cast<uint8_t>(port.type.type), &dims, port.tensor));
    }
    return offsets;
}

void WritePlan(Builder& builder, const Plan& plan) {
    std::vector<flatbuffers::Offset<stored::Tensor>> tensors;
    for (const PlanTensor& tensor : plan.tensors) {
        const std::vector<uint64_t> dims = ToDims(tensor.type.shape);
        tensors.push_back(stored::CreateTensorDirect(
            builder, tensor.name.c_str(), static_cast<uint8_t>(tensor.type.type), &dims,
            static_cast<uint8_t>(tensor.kind), tensor.offset_bytes, tensor.first_step,
            tensor.last_step));
    }
    const auto inputs = WritePorts(builder, plan.inputs);
    const auto outputs = WritePorts(builder, plan.outputs);
    std::vector<flatbuffers::Offset<stored::Set>> sets;
    for (const PlanSet& set : plan.sets) {
        sets.push_back(stored::CreateSetDirect(builder, &set.tensors));
    }
    std::vector<flatbuffers::Offset<stored::Dispatch>> dispatches;
    for (const PlanDispatch& dispatch : plan.dispatches) {
        dispatches.push_back(stored::CreateDispatchDirect(
            builder, dispatch.name.c_str(), std::string(Kernel(dispatch.kernel).name).c_str(),
            &dispatch.parameters, dispatch.grid[0], dispatch.grid[1], dispatch.grid[2],
            dispatch.set, dispatch.barrier_before));
    }
    builder.Finish(stored::CreatePlanDirect(builder, plan.name.c_str(), plan.graph_hash.c_str(),
                                            KernelLibraryDigest(), &tensors, &inputs, &outputs,
                                            &sets, &dispatches, &plan.weights, plan.arena_bytes,
                                            plan.peak_live_bytes));
}

}  // namespace

Result<std::vector<std::byte>> SerializePlan(const Plan& plan) {
    if (plan.weights.size() > kMaxPayloadBytes / 2) {
        return Error{ErrorCode::kUnsupported,
                     fmt::format("Weights of {} bytes exceed a plan file's limit of {}.",
                                 plan.weights.size(), kMaxPayloadBytes / 2)};
    }
    Builder builder(plan.weights.size() + 4096);
    WritePlan(builder, plan);
    Header header;
    header.payload_bytes = builder.GetSize();
    const auto payload = std::as_bytes(std::span(builder.GetBufferPointer(), builder.GetSize()));
    header.checksum = HashBytes(payload);
    std::vector<std::byte> bytes(sizeof(header) + payload.size());
    std::memcpy(bytes.data(), &header, sizeof(header));
    std::memcpy(bytes.data() + sizeof(header), payload.data(), payload.size());
    return bytes;
}

Result<Plan> ParsePlan(std::span<const std::byte> bytes) {
    if (!LooksLikePlan(bytes)) {
        return Damaged("The data do not begin with the header of a plan.");
    }
    Header header;
    std::memcpy(&header, bytes.data(), sizeof(header));
    if (header.version != kPlanFormatVersion) {
        return Damaged(
            fmt::format("The plan has format version {}; this version of Fornax reads "
                        "version {}.",
                        header.version, kPlanFormatVersion));
    }
    const std::span<const std::byte> payload = bytes.subspan(sizeof(header));
    if (header.payload_bytes != payload.size() || payload.size() > kMaxPayloadBytes) {
        return Damaged(fmt::format("The plan holds {} bytes, and its header promises {}.",
                                   payload.size(), header.payload_bytes));
    }
    if (header.checksum != HashBytes(payload)) {
        return Damaged("The plan's checksum does not match its contents.");
    }
    // FlatBuffers reads fields in place and needs their alignment; files are read into heap memory,
    // which has it, but a caller's span may not.
    std::vector<uint64_t> aligned((payload.size() + 7) / 8);
    if (!payload.empty()) {  // memcpy takes no null, even for nothing
        std::memcpy(aligned.data(), payload.data(), payload.size());
    }
    const auto* data = reinterpret_cast<const uint8_t*>(aligned.data());
    flatbuffers::Verifier verifier(data, payload.size());
    if (!stored::VerifyPlanBuffer(verifier)) {
        return Damaged("The plan's structure is damaged.");
    }
    return ReadPlan(*stored::GetPlan(data));
}

bool LooksLikePlan(std::span<const std::byte> bytes) {
    return bytes.size() >= sizeof(Header) &&
           std::memcmp(bytes.data(), Header().magic, sizeof(Header().magic)) == 0;
}

}  // namespace fornax::legacy_graph
