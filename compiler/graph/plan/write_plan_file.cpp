// Writes plans with FlatBuffers.
#include <cstring>
#include <map>

#include <flatbuffers/flatbuffers.h>
#include <fmt/format.h>

#include "base/hash.h"
#include "compiler/graph/plan/packing.h"
#include "compiler/graph/plan/plan_file.h"
#include "compiler/graph/plan/plan_file_header.h"
#include "compiler/graph/plan/plan_generated.h"
#include "compiler/graph/plan/plan_kernel.h"

namespace fornax::graph {
namespace {

template <typename T>
using Offset = flatbuffers::Offset<T>;

struct Weight {
    uint64_t offset = 0;
    std::span<const uint8_t> bytes;
    Hash128 digest;
    bool is_elsewhere = false;
};

class PlanWriter {
  public:
    PlanWriter(const Plan& plan, uint64_t elsewhere_bytes)
        : plan_(plan), elsewhere_bytes_(elsewhere_bytes) {}

    Status Write() {
        std::vector<Offset<flatbuffers::String>> kernels;
        for (const PlanKernel& kernel : plan_.kernels) {
            kernels.push_back(builder_.CreateString(ToText(kernel)));
        }
        const auto symbols = WriteSymbols();
        std::vector<Offset<stored::Guard>> guards;
        for (const Guard& guard : plan_.guards) {
            guards.push_back(stored::CreateGuard(builder_, static_cast<uint8_t>(guard.relation),
                                                 Number(guard.a), Number(guard.b)));
        }
        std::vector<Offset<stored::Source>> sources;
        for (const SymbolSource& source : plan_.sources) {
            sources.push_back(stored::CreateSource(builder_, symbol_numbers_[source.symbol],
                                                   source.port, source.axis));
        }
        std::vector<Offset<stored::Block>> blocks;
        for (const PlanBlock& block : plan_.blocks) {
            blocks.push_back(WriteBlock(block));
        }
        const auto inputs = WritePorts(plan_.inputs);
        const auto outputs = WritePorts(plan_.outputs);
        std::vector<Offset<stored::Step>> steps;
        for (const PlanStep& step : plan_.steps) {
            FORNAX_ASSIGN_OR_RETURN(
                const Offset<stored::Step> stored,
                std::visit([&](const auto& held) { return WriteStep(held); }, step));
            steps.push_back(stored);
        }
        std::vector<Offset<stored::Weight>> weights;
        for (const Weight& weight : weights_) {
            weights.push_back(stored::CreateWeight(builder_, weight.offset, weight.bytes.size(),
                                                   weight.digest.high, weight.digest.low,
                                                   weight.is_elsewhere));
        }
        const auto model_inputs = WriteTypes(plan_.model_inputs);
        const auto model_outputs = WriteTypes(plan_.model_outputs);
        const std::vector<std::string>& texts = expressions_;
        builder_.Finish(stored::CreatePlan(
            builder_, builder_.CreateString(plan_.name), builder_.CreateString(plan_.graph_hash),
            builder_.CreateVectorOfStrings(texts), builder_.CreateVector(symbols),
            builder_.CreateVector(guards), builder_.CreateVector(sources),
            builder_.CreateVector(weights), builder_.CreateVector(blocks),
            builder_.CreateVector(inputs), builder_.CreateVector(outputs),
            builder_.CreateVector(kernels), builder_.CreateVector(steps),
            builder_.CreateVector(model_inputs), builder_.CreateVector(model_outputs),
            builder_.CreateVector(plan_.fixed_inputs)));
        return OkStatus();
    }

    std::vector<std::byte> File() const {
        PlanFileHeader header;
        header.structure_bytes = builder_.GetSize();
        for (const Weight& weight : weights_) {
            if (!weight.is_elsewhere) {
                header.weight_bytes = weight.offset + weight.bytes.size();
            }
        }
        header.checksum =
            HashBytes(std::as_bytes(std::span(builder_.GetBufferPointer(), builder_.GetSize())));
        const uint64_t weights = WeightsOffset(header);
        std::vector<std::byte> file(weights + header.weight_bytes);
        std::memcpy(file.data(), &header, sizeof(header));
        std::memcpy(file.data() + sizeof(header), builder_.GetBufferPointer(), builder_.GetSize());
        for (const Weight& weight : weights_) {
            if (!weight.is_elsewhere && !weight.bytes.empty()) {
                std::memcpy(file.data() + weights + weight.offset, weight.bytes.data(),
                            weight.bytes.size());
            }
        }
        return file;
    }

  private:
    uint32_t Number(const Expr& expr) {
        const auto [found, inserted] =
            numbers_.emplace(expr.ToString(), static_cast<uint32_t>(expressions_.size()));
        if (inserted) {
            expressions_.push_back(found->first);
        }
        return found->second;
    }

    std::vector<Offset<stored::Symbol>> WriteSymbols() {
        std::map<Symbol, Offset<flatbuffers::String>> names;
        for (const auto& [symbol, range] : plan_.ranges) {
            names.emplace(symbol, 0);
        }
        for (const auto& [symbol, hint] : plan_.hints) {
            names.emplace(symbol, 0);
        }
        for (const SymbolSource& source : plan_.sources) {
            names.emplace(source.symbol, 0);
        }
        std::vector<Offset<stored::Symbol>> symbols;
        for (auto& [symbol, name] : names) {
            name = builder_.CreateString(symbol.name());
            const auto range = plan_.ranges.find(symbol);
            const auto hint = plan_.hints.find(symbol);
            const bool has_range = range != plan_.ranges.end();
            const bool has_hint = hint != plan_.hints.end();
            symbol_numbers_[symbol] = static_cast<uint32_t>(symbols.size());
            symbols.push_back(stored::CreateSymbol(
                builder_, name, has_range, has_range ? range->second.low : 0,
                has_range ? range->second.high : 0, has_hint, has_hint ? hint->second : 0));
        }
        return symbols;
    }

    Offset<stored::Type> WriteType(const TensorType& type) {
        std::vector<uint32_t> dims;
        for (const Expr& dim : type.shape.dims()) {
            dims.push_back(Number(dim));
        }
        return stored::CreateTypeDirect(builder_, static_cast<uint8_t>(type.element), &dims);
    }

    std::vector<Offset<stored::Type>> WriteTypes(const std::vector<TensorType>& types) {
        std::vector<Offset<stored::Type>> offsets;
        for (const TensorType& type : types) {
            offsets.push_back(WriteType(type));
        }
        return offsets;
    }

    std::vector<Offset<stored::Port>> WritePorts(const std::vector<PlanPort>& ports) {
        std::vector<Offset<stored::Port>> offsets;
        for (const PlanPort& port : ports) {
            const auto type = WriteType(port.type);
            const auto name = builder_.CreateString(port.name);
            offsets.push_back(stored::CreatePort(builder_, name, type, port.block.value()));
        }
        return offsets;
    }

    // One more than the weight's number.
    uint32_t WriteWeight(const Bytes& data) {
        const Hash128 digest = HashBytes(std::as_bytes(*data));
        const auto [first, last] = weight_numbers_.equal_range(digest);
        for (auto found = first; found != last; ++found) {
            const std::span<const uint8_t> known = weights_[found->second].bytes;
            if (std::equal(known.begin(), known.end(), data->begin(), data->end())) {
                return found->second + 1;
            }
        }
        const auto number = static_cast<uint32_t>(weights_.size());
        weight_numbers_.emplace(digest, number);
        if (data->size() >= elsewhere_bytes_) {
            weights_.push_back({0, *data, digest, true});
            return number + 1;
        }
        weights_.push_back({next_weight_, *data, digest, false});
        next_weight_ += (data->size() + kTensorAlignment - 1) / kTensorAlignment * kTensorAlignment;
        return number + 1;
    }

    Offset<stored::Block> WriteBlock(const PlanBlock& block) {
        const auto type = WriteType(block.type);
        const auto name = builder_.CreateString(block.name);
        const uint32_t weight = block.data ? WriteWeight(block.data) : 0;
        Offset<flatbuffers::Vector<Offset<flatbuffers::String>>> strings = 0;
        if (block.strings != nullptr) {
            strings = builder_.CreateVectorOfStrings(*block.strings);
        }
        return stored::CreateBlock(builder_, name, type, static_cast<uint8_t>(block.kind), weight,
                                   strings, block.first, block.last);
    }

    static std::vector<uint32_t> Ids(const std::vector<BlockId>& blocks) {
        std::vector<uint32_t> ids;
        for (const BlockId block : blocks) {
            ids.push_back(block.value());
        }
        return ids;
    }

    Result<Offset<stored::Step>> WriteStep(const DispatchStep& step) {
        const std::vector<uint32_t> bindings = Ids(step.bindings);
        const auto name = builder_.CreateString(step.name);
        const auto dispatch = stored::CreateDispatch(
            builder_, name, step.kernel.value(), builder_.CreateVector(bindings),
            Number(step.operations), Number(step.bytes_read), Number(step.bytes_written));
        return stored::CreateStep(builder_, dispatch, 0);
    }

    Result<Offset<stored::Step>> WriteStep(const HostStep& step) {
        FORNAX_ASSIGN_OR_RETURN(const std::string node, NodeText(step));
        const auto operand_types = WriteTypes(step.operand_types);
        const auto result_types = WriteTypes(step.result_types);
        const auto name = builder_.CreateString(step.name);
        const auto reason = builder_.CreateString(step.reason);
        const auto text = builder_.CreateString(node);
        const std::vector<uint32_t> operands = Ids(step.operands), results = Ids(step.results);
        const auto operand_ids = builder_.CreateVector(operands);
        const auto operand_offsets = builder_.CreateVector(operand_types);
        const auto result_ids = builder_.CreateVector(results);
        const auto host =
            stored::CreateHost(builder_, name, reason, text, operand_ids, operand_offsets,
                               result_ids, builder_.CreateVector(result_types));
        return stored::CreateStep(builder_, 0, host);
    }

    // The operation and its bodies, as a graph with this node only.
    Result<std::string> NodeText(const HostStep& step) const {
        Graph graph("");
        for (const auto& [symbol, range] : plan_.ranges) {
            const auto hint = plan_.hints.find(symbol);
            graph.sizes().Declare(symbol.name(),
                                  hint == plan_.hints.end() ? range.low : hint->second, range);
        }
        std::vector<ValueId> operands;
        for (const TensorType& type : step.operand_types) {
            operands.push_back(graph.AddInput("", type));
        }
        const Result<NodeId> node = graph.AddNode("", step.operation, operands, step.bodies);
        if (!node.ok()) {
            return Error{node.error().code, fmt::format("The host step {} cannot be written: {}.",
                                                        step.name, node.error().message)};
        }
        return ToText(graph);
    }

    const Plan& plan_;
    const uint64_t elsewhere_bytes_;
    flatbuffers::FlatBufferBuilder builder_;
    std::vector<std::string> expressions_;
    std::map<std::string, uint32_t> numbers_;
    std::map<Symbol, uint32_t> symbol_numbers_;
    std::vector<Weight> weights_;
    std::multimap<Hash128, uint32_t> weight_numbers_;
    uint64_t next_weight_ = 0;
};

// What the structure takes at most, roughly: FlatBuffers aborts beyond its limit.
uint64_t StructureBytes(const Plan& plan) {
    uint64_t bytes = plan.name.size();
    for (const PlanBlock& block : plan.blocks) {
        bytes += block.name.size() + 256;
        if (block.strings != nullptr) {
            for (const std::string& text : *block.strings) {
                bytes += text.size() + 16;
            }
        }
    }
    for (const PlanStep& step : plan.steps) {
        bytes += std::visit([](const auto& held) { return held.name.size(); }, step) + 256;
        if (const auto* host = std::get_if<HostStep>(&step)) {
            for (const Body& body : host->bodies) {
                for (const Value& value : body->values()) {
                    bytes += 2 * (value.constant.data ? value.constant.data->size() : 0);
                }
            }
        }
    }
    return bytes;
}

}  // namespace

Result<std::vector<std::byte>> SerializePlan(const Plan& plan, uint64_t elsewhere_bytes) {
    if (StructureBytes(plan) > kMaxStructureBytes / 2) {
        return Error{ErrorCode::kUnsupported,
                     fmt::format("The structure of the plan {} has more than {} bytes, the limit "
                                 "of its file.",
                                 plan.name, kMaxStructureBytes / 2)};
    }
    PlanWriter writer(plan, elsewhere_bytes);
    FORNAX_RETURN_IF_ERROR(writer.Write());
    return writer.File();
}

}  // namespace fornax::graph
