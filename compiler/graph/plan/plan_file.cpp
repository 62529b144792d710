// Reads plans with suspicion.
#include "compiler/graph/plan/plan_file.h"

#include <cstring>

#include <flatbuffers/flatbuffers.h>
#include <fmt/format.h>

#include "base/file.h"
#include "compiler/graph/ir/parse_expr.h"
#include "compiler/graph/plan/packing.h"
#include "compiler/graph/plan/plan_file_header.h"
#include "compiler/graph/plan/plan_generated.h"
#include "compiler/graph/plan/plan_kernel.h"

namespace fornax::graph {
namespace {

constexpr uint32_t kMaxTables = 1u << 22;

Error Damaged(std::string message) {
    return {ErrorCode::kDataLoss, std::move(message)};
}

template <typename T>
size_t Size(const T* vector) {
    return vector == nullptr ? 0 : vector->size();
}

// Takes a verified FlatBuffer apart. Parts of one may be used in several places, which its writer
// does not do: `budget` ends the reading of a small file that would become a large plan.
class PlanReader {
  public:
    PlanReader(const stored::Plan& stored,
               uint64_t structure_bytes,
               Bytes weights,
               const WeightSource& elsewhere)
        : stored_(stored),
          budget_(structure_bytes),
          weights_(std::move(weights)),
          elsewhere_(elsewhere) {}

    Result<Plan> Read(WeightCheck check) {
        FORNAX_ASSIGN_OR_RETURN(plan_.name, Text(stored_.name()));
        FORNAX_ASSIGN_OR_RETURN(plan_.graph_hash, Text(stored_.graph_hash()));
        FORNAX_RETURN_IF_ERROR(ReadSizes());
        FORNAX_RETURN_IF_ERROR(ReadWeights(check));
        FORNAX_RETURN_IF_ERROR(ReadBlocks());
        FORNAX_RETURN_IF_ERROR(ReadPorts(stored_.inputs(), plan_.inputs));
        FORNAX_RETURN_IF_ERROR(ReadPorts(stored_.outputs(), plan_.outputs));
        for (size_t i = 0; i < Size(stored_.kernels()); ++i) {
            FORNAX_ASSIGN_OR_RETURN(const std::string text, Text(stored_.kernels()->Get(i)));
            FORNAX_ASSIGN_OR_RETURN(PlanKernel kernel, ParsePlanKernel(text));
            plan_.kernels.push_back(std::move(kernel));
        }
        for (size_t i = 0; i < Size(stored_.steps()); ++i) {
            const stored::Step& step = *stored_.steps()->Get(i);
            FORNAX_RETURN_IF_ERROR(Spend(sizeof(uint32_t)));
            if ((step.dispatch() == nullptr) == (step.host() == nullptr)) {
                return Damaged(fmt::format("Step {} of the plan is of no known kind.", i));
            }
            FORNAX_RETURN_IF_ERROR(step.host() != nullptr ? ReadHost(*step.host())
                                                          : ReadDispatch(*step.dispatch()));
        }
        FORNAX_ASSIGN_OR_RETURN(plan_.model_inputs, ReadTypes(stored_.model_inputs()));
        FORNAX_ASSIGN_OR_RETURN(plan_.model_outputs, ReadTypes(stored_.model_outputs()));
        FORNAX_RETURN_IF_ERROR(Spend(sizeof(uint32_t) * Size(stored_.fixed_inputs())));
        for (size_t i = 0; i < Size(stored_.fixed_inputs()); ++i) {
            plan_.fixed_inputs.push_back(stored_.fixed_inputs()->Get(i));
        }
        FORNAX_RETURN_IF_ERROR(ValidatePlan(plan_));
        return std::move(plan_);
    }

  private:
    Status Spend(uint64_t bytes) {
        if (bytes > budget_) {
            return Damaged("The plan uses parts of its file in more than one place.");
        }
        budget_ -= bytes;
        return OkStatus();
    }

    Result<std::string> Text(const flatbuffers::String* text) {
        if (text == nullptr) {
            return std::string();
        }
        FORNAX_RETURN_IF_ERROR(Spend(text->size()));
        return text->str();
    }

    Result<Expr> Expression(uint32_t number) const {
        if (number >= expressions_.size()) {
            return Damaged(
                fmt::format("The plan uses expression {} of {}.", number, expressions_.size()));
        }
        return expressions_[number];
    }

    Result<Symbol> NewSymbol(const flatbuffers::String* text) {
        FORNAX_ASSIGN_OR_RETURN(const std::string name, Text(text));
        if (!IsSymbolName(name)) {
            return Damaged("The plan has a symbol without a name of letters and digits.");
        }
        return Symbol(name);
    }

    Status ReadSizes() {
        for (size_t i = 0; i < Size(stored_.expressions()); ++i) {
            FORNAX_ASSIGN_OR_RETURN(const std::string text, Text(stored_.expressions()->Get(i)));
            Result<Expr> expr = ParseExpr(text);
            if (!expr.ok()) {
                return Damaged(fmt::format("Expression {} of the plan cannot be read: {}.", i,
                                           expr.error().message));
            }
            expressions_.push_back(*std::move(expr));
        }
        std::vector<Symbol> symbols;
        for (size_t i = 0; i < Size(stored_.symbols()); ++i) {
            const stored::Symbol& stored = *stored_.symbols()->Get(i);
            FORNAX_RETURN_IF_ERROR(Spend(sizeof(uint32_t)));
            FORNAX_ASSIGN_OR_RETURN(const Symbol symbol, NewSymbol(stored.name()));
            symbols.push_back(symbol);
            if (stored.has_range()) {
                plan_.ranges[symbol] = {stored.low(), stored.high()};
            }
            if (stored.has_hint()) {
                plan_.hints[symbol] = stored.hint();
            }
        }
        for (size_t i = 0; i < Size(stored_.guards()); ++i) {
            const stored::Guard& stored = *stored_.guards()->Get(i);
            FORNAX_RETURN_IF_ERROR(Spend(sizeof(uint32_t)));
            Guard guard;
            guard.relation = static_cast<Relation>(stored.relation());
            FORNAX_ASSIGN_OR_RETURN(guard.a, Expression(stored.a()));
            FORNAX_ASSIGN_OR_RETURN(guard.b, Expression(stored.b()));
            plan_.guards.push_back(std::move(guard));
        }
        for (size_t i = 0; i < Size(stored_.sources()); ++i) {
            const stored::Source& stored = *stored_.sources()->Get(i);
            FORNAX_RETURN_IF_ERROR(Spend(sizeof(uint32_t)));
            if (stored.symbol() >= symbols.size()) {
                return Damaged(fmt::format("The plan has a source of symbol {} of {}.",
                                           stored.symbol(), symbols.size()));
            }
            plan_.sources.push_back({symbols[stored.symbol()], stored.port(), stored.axis()});
        }
        return OkStatus();
    }

    Status ReadWeights(WeightCheck check) {
        const uint64_t available = weights_->size();
        for (size_t i = 0; i < Size(stored_.weights()); ++i) {
            const stored::Weight& weight = *stored_.weights()->Get(i);
            FORNAX_RETURN_IF_ERROR(Spend(sizeof(uint32_t)));
            if (weight.elsewhere()) {
                const Hash128 digest = {weight.digest_high(), weight.digest_low()};
                Bytes data = elsewhere_ ? elsewhere_(digest) : nullptr;
                if (!data || data->size() != weight.size()) {
                    return Error{
                        ErrorCode::kNotFound,
                        fmt::format("Weight {} of the plan, {} bytes of digest {}, is kept "
                                    "elsewhere and is not there.",
                                    i, weight.size(), digest.ToHex())};
                }
                parts_.push_back(std::move(data));
                continue;
            }
            if (weight.offset() > available || weight.size() > available - weight.offset() ||
                weight.offset() % kTensorAlignment != 0) {
                return Damaged(fmt::format(
                    "Weight {} of the plan has {} bytes at {} of {}, or is not aligned to {}.", i,
                    weight.size(), weight.offset(), available, kTensorAlignment));
            }
            Bytes data = weights_.Part(weight.offset(), weight.size());
            if (check == WeightCheck::kVerify &&
                HashBytes(std::as_bytes(*data)) !=
                    Hash128{weight.digest_high(), weight.digest_low()}) {
                return Damaged(
                    fmt::format("The checksum of weight {} does not match its contents.", i));
            }
            parts_.push_back(std::move(data));
        }
        return OkStatus();
    }

    Result<TensorType> ReadType(const stored::Type* stored) {
        if (stored == nullptr) {
            return Damaged("A tensor of the plan has no type.");
        }
        const size_t rank = Size(stored->dims());
        FORNAX_RETURN_IF_ERROR(Spend(sizeof(uint32_t) * (1 + rank)));
        std::vector<Expr> dims;
        for (size_t i = 0; i < rank; ++i) {
            FORNAX_ASSIGN_OR_RETURN(Expr dim, Expression(stored->dims()->Get(i)));
            dims.push_back(std::move(dim));
        }
        return TensorType{static_cast<ElementType>(stored->element()), Shape(std::move(dims))};
    }

    Result<std::vector<TensorType>> ReadTypes(
        const flatbuffers::Vector<flatbuffers::Offset<stored::Type>>* stored) {
        std::vector<TensorType> types;
        for (size_t i = 0; i < Size(stored); ++i) {
            FORNAX_ASSIGN_OR_RETURN(TensorType type, ReadType(stored->Get(i)));
            types.push_back(std::move(type));
        }
        return types;
    }

    Result<std::vector<BlockId>> ReadIds(const flatbuffers::Vector<uint32_t>* stored) {
        FORNAX_RETURN_IF_ERROR(Spend(sizeof(uint32_t) * Size(stored)));
        std::vector<BlockId> ids;
        for (size_t i = 0; i < Size(stored); ++i) {
            ids.emplace_back(stored->Get(i));
        }
        return ids;
    }

    Status ReadBlocks() {
        for (size_t i = 0; i < Size(stored_.blocks()); ++i) {
            const stored::Block& stored = *stored_.blocks()->Get(i);
            PlanBlock block;
            FORNAX_ASSIGN_OR_RETURN(block.name, Text(stored.name()));
            FORNAX_ASSIGN_OR_RETURN(block.type, ReadType(stored.type()));
            block.kind = static_cast<BlockKind>(stored.kind());
            block.first = stored.first();
            block.last = stored.last();
            if (stored.weight() > parts_.size()) {
                return Damaged(fmt::format("Block {} of the plan holds weight {} of {}.", i,
                                           stored.weight() - 1, parts_.size()));
            }
            if (stored.weight() != 0) {
                block.data = parts_[stored.weight() - 1];
            }
            if (stored.strings() != nullptr) {
                auto strings = std::make_shared<std::vector<std::string>>();
                for (size_t s = 0; s < stored.strings()->size(); ++s) {
                    FORNAX_RETURN_IF_ERROR(Spend(sizeof(uint32_t)));
                    FORNAX_ASSIGN_OR_RETURN(std::string text, Text(stored.strings()->Get(s)));
                    strings->push_back(std::move(text));
                }
                block.strings = std::move(strings);
            }
            plan_.blocks.push_back(std::move(block));
        }
        return OkStatus();
    }

    Status ReadPorts(const flatbuffers::Vector<flatbuffers::Offset<stored::Port>>* stored,
                     std::vector<PlanPort>& ports) {
        for (size_t i = 0; i < Size(stored); ++i) {
            PlanPort port;
            FORNAX_ASSIGN_OR_RETURN(port.name, Text(stored->Get(i)->name()));
            FORNAX_ASSIGN_OR_RETURN(port.type, ReadType(stored->Get(i)->type()));
            port.block = BlockId(stored->Get(i)->block());
            ports.push_back(std::move(port));
        }
        return OkStatus();
    }

    Status ReadDispatch(const stored::Dispatch& stored) {
        DispatchStep step;
        FORNAX_ASSIGN_OR_RETURN(step.name, Text(stored.name()));
        step.kernel = KernelId(stored.kernel());
        FORNAX_ASSIGN_OR_RETURN(step.bindings, ReadIds(stored.bindings()));
        FORNAX_ASSIGN_OR_RETURN(step.operations, Expression(stored.operations()));
        FORNAX_ASSIGN_OR_RETURN(step.bytes_read, Expression(stored.bytes_read()));
        FORNAX_ASSIGN_OR_RETURN(step.bytes_written, Expression(stored.bytes_written()));
        plan_.steps.emplace_back(std::move(step));
        return OkStatus();
    }

    Status ReadHost(const stored::Host& stored) {
        HostStep step;
        FORNAX_ASSIGN_OR_RETURN(step.name, Text(stored.name()));
        FORNAX_ASSIGN_OR_RETURN(step.reason, Text(stored.reason()));
        FORNAX_ASSIGN_OR_RETURN(step.operands, ReadIds(stored.operands()));
        FORNAX_ASSIGN_OR_RETURN(step.operand_types, ReadTypes(stored.operand_types()));
        FORNAX_ASSIGN_OR_RETURN(step.results, ReadIds(stored.results()));
        FORNAX_ASSIGN_OR_RETURN(step.result_types, ReadTypes(stored.result_types()));
        FORNAX_ASSIGN_OR_RETURN(const std::string text, Text(stored.node()));
        const Result<Graph> graph = ParseGraph(text);
        if (!graph.ok()) {
            return Damaged(fmt::format("The host step {} of the plan cannot be read: {}", step.name,
                                       graph.error().message));
        }
        if (graph->nodes().size() != 1) {
            return Damaged(fmt::format("The host step {} of the plan has {} nodes, not 1.",
                                       step.name, graph->nodes().size()));
        }
        step.operation = graph->nodes()[0].operation;
        step.bodies = graph->nodes()[0].bodies;
        plan_.steps.emplace_back(std::move(step));
        return OkStatus();
    }

    const stored::Plan& stored_;
    uint64_t budget_;
    Bytes weights_;
    const WeightSource& elsewhere_;
    std::vector<Bytes> parts_;
    std::vector<Expr> expressions_;
    Plan plan_;
};

Status CheckHeader(const PlanFileHeader& header, uint64_t file_bytes) {
    if (header.version < kOldestPlanFormatVersion || header.version > kPlanFormatVersion) {
        return Error{ErrorCode::kUnsupported,
                     fmt::format("The plan has format version {}; this version of Fornax reads {} "
                                 "to {}. Compile the model again.",
                                 header.version, kOldestPlanFormatVersion, kPlanFormatVersion)};
    }
    if (header.reserved != 0 || header.structure_bytes > kMaxStructureBytes ||
        header.structure_bytes > file_bytes || header.weight_bytes > file_bytes ||
        WeightsOffset(header) + header.weight_bytes != file_bytes) {
        return Damaged(
            fmt::format("The plan's file has {} bytes, and its header promises a structure of {} "
                        "and weights of {}.",
                        file_bytes, header.structure_bytes, header.weight_bytes));
    }
    return OkStatus();
}

}  // namespace

Result<Plan> ParsePlan(const Bytes& file, WeightCheck check, const WeightSource& elsewhere) {
    if (!file || !LooksLikePlan(std::as_bytes(*file))) {
        return Damaged("The data do not begin with the header of a plan.");
    }
    PlanFileHeader header;
    std::memcpy(&header, file->data(), sizeof(header));
    FORNAX_RETURN_IF_ERROR(CheckHeader(header, file->size()));
    // A copy: FlatBuffers reads fields in place and needs their alignment, and what is proved must
    // not change with a file that is mapped.
    std::vector<uint64_t> copy((header.structure_bytes + 7) / 8);
    if (header.structure_bytes != 0) {
        std::memcpy(copy.data(), file->data() + sizeof(header), header.structure_bytes);
    }
    const std::span structure(reinterpret_cast<const uint8_t*>(copy.data()),
                              header.structure_bytes);
    if (header.checksum != HashBytes(std::as_bytes(structure))) {
        return Damaged("The plan's checksum does not match its contents.");
    }
    flatbuffers::Verifier::Options options;
    options.max_tables = kMaxTables;
    flatbuffers::Verifier verifier(structure.data(), structure.size(), options);
    if (!stored::VerifyPlanBuffer(verifier)) {
        return Damaged("The plan's structure is damaged.");
    }
    return PlanReader(*stored::GetPlan(structure.data()), structure.size(),
                      file.Part(WeightsOffset(header), header.weight_bytes), elsewhere)
        .Read(check);
}

Result<Plan> ParsePlan(std::span<const std::byte> file) {
    const auto* data = reinterpret_cast<const uint8_t*>(file.data());
    return ParsePlan(Bytes(std::make_shared<std::vector<uint8_t>>(data, data + file.size())));
}

bool LooksLikePlan(std::span<const std::byte> bytes) {
    return bytes.size() >= sizeof(PlanFileHeader) &&
           std::memcmp(bytes.data(), PlanFileHeader().magic, sizeof(PlanFileHeader().magic)) == 0;
}

Result<Plan> ReadPlanFile(const std::string& path, WeightCheck check) {
    FORNAX_ASSIGN_OR_RETURN(std::shared_ptr<const MappedFile> file, MappedFile::Open(path));
    const std::span<const std::byte> bytes = file->bytes();
    const Bytes shared({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()},
                       std::move(file));
    Result<Plan> plan = ParsePlan(shared, check);
    if (!plan.ok()) {
        return Error{plan.error().code, fmt::format("{}: {}", path, plan.error().message)};
    }
    return plan;
}

}  // namespace fornax::graph
