// Coverage-guided fuzzing of the importer and of the graph compiler behind it: any bytes as the
// structure of an FX graph, which ends as an error or as a valid plan whose kernels have
// SPIR-V.
#include "compiler/frontends/torch/importer.h"

#include <random>

#include "base/fuzz_outcomes.h"
#include "compiler/frontends/torch/operator_families.h"
#include "compiler/frontends/torch/test_program.h"
#include "compiler/graph/testing/fuzz_checks.h"

namespace {

using namespace fornax;
using namespace fornax::graph::fuzzing;
using namespace fornax::torch_frontend;
using Random = std::mt19937;

constexpr size_t kMaxCompiledNodes = 3000;
constexpr size_t kWeightBytes = 4096;

bool Read(const uint8_t* data, size_t size, stored::ProgramT& program) {
    flatbuffers::Verifier verifier(data, size);
    if (!stored::VerifyProgramBuffer(verifier)) {
        return false;
    }
    stored::GetProgram(data)->UnPackTo(&program);
    return true;
}

template <typename T>
T* Pick(std::vector<std::unique_ptr<T>>& items, Random& random) {
    return items.empty() ? nullptr : items[random() % items.size()].get();
}

uint32_t SmallNumber(Random& random, size_t count) {
    return random() % 16 == 0 || count == 0 ? static_cast<uint32_t>(random())
                                            : static_cast<uint32_t>(random() % count);
}

int64_t InterestingNumber(Random& random) {
    constexpr int64_t kNumbers[] = {0,  1,  2,  3,     4,         5,         7,         8,
                                    -1, -2, 64, 65536, INT32_MAX, INT64_MAX, INT64_MIN, 1LL << 40};
    return kNumbers[random() % std::size(kNumbers)];
}

void ChangeArgument(stored::ProgramT& program, stored::ArgumentT& argument, Random& random) {
    if (!argument.items.empty() && random() % 2 == 0) {
        return ChangeArgument(program, *Pick(argument.items, random), random);
    }
    switch (random() % 5) {
        case 0:
            argument.kind = static_cast<uint8_t>(random() % 8);
            break;
        case 1:
            argument.number = random() % 2 == 0 ? static_cast<double>(InterestingNumber(random))
                                                : static_cast<double>(random() % 64) / 16;
            break;
        case 2:
            if (!argument.items.empty()) {
                argument.items.push_back(
                    std::make_unique<stored::ArgumentT>(*argument.items.back()));
            }
            break;
        case 3:
            if (!argument.items.empty()) {
                argument.items.pop_back();
            }
            break;
        default:
            argument.index =
                SmallNumber(random, static_cast<ArgumentKind>(argument.kind) == ArgumentKind::kSize
                                        ? program.sizes.size()
                                        : program.values.size());
    }
}

void ChangeSize(stored::ProgramT& program, Random& random) {
    stored::Size size(InterestingNumber(random), SmallNumber(random, program.sizes.size()),
                      SmallNumber(random, program.sizes.size()),
                      static_cast<uint8_t>(random() % 9));
    if (random() % 2 == 0) {
        size = stored::Size(static_cast<int64_t>(random() % 9), 0, 0, 0);
    }
    if (program.sizes.empty() || random() % 4 == 0) {
        program.sizes.push_back(size);
    } else {
        program.sizes[random() % program.sizes.size()] = size;
    }
}

void ChangeValue(stored::ProgramT& program, Random& random) {
    stored::ValueT* value = Pick(program.values, random);
    if (value == nullptr) {
        return;
    }
    switch (random() % 4) {
        case 0:
            value->element = static_cast<uint8_t>(random() % 24);
            break;
        case 1:
            value->dims.push_back(SmallNumber(random, program.sizes.size()));
            break;
        case 2:
            if (!value->dims.empty()) {
                value->dims.pop_back();
            }
            break;
        default:
            if (!value->dims.empty()) {
                value->dims[random() % value->dims.size()] =
                    SmallNumber(random, program.sizes.size());
            }
    }
}

void ChangeNode(stored::ProgramT& program, Random& random) {
    static const std::vector<std::string> kTargets = [] {
        std::vector<std::string> targets;
        for (const auto family : OperatorFamilies()) {
            for (const OperatorEntry& entry : family) {
                targets.push_back("aten." + std::string(entry.name));
            }
        }
        return targets;
    }();
    stored::NodeT* node = Pick(program.nodes, random);
    if (node == nullptr) {
        return;
    }
    switch (random() % 4) {
        case 0:
            node->target = kTargets[random() % kTargets.size()];
            break;
        case 1:
            if (!node->results.empty()) {
                node->results[random() % node->results.size()] =
                    SmallNumber(random, program.values.size());
            }
            break;
        default:
            if (stored::ArgumentT* argument = Pick(node->arguments, random)) {
                ChangeArgument(program, *argument, random);
            }
    }
}

void Change(stored::ProgramT& program, Random& random) {
    switch (random() % 8) {
        case 0:
        case 1:
            return ChangeSize(program, random);
        case 2:
        case 3:
            return ChangeValue(program, random);
        case 4:
            if (stored::SymbolT* symbol = Pick(program.symbols, random)) {
                (random() % 2 == 0 ? symbol->hint : symbol->high) = InterestingNumber(random);
            }
            return;
        default:
            return ChangeNode(program, random);
    }
}

}  // namespace

// Changed bytes seldom leave a graph, changed nodes do.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data,
                                          size_t size,
                                          size_t max_size,
                                          unsigned seed) {
    Random random(seed);
    stored::ProgramT program;
    if (random() % 16 == 0 || !Read(data, size, program)) {
        return LLVMFuzzerMutate(data, size, max_size);
    }
    for (uint32_t changes = random() % 3 + 1; changes != 0; --changes) {
        Change(program, random);
    }
    flatbuffers::FlatBufferBuilder builder;
    builder.Finish(stored::Program::Pack(builder, &program));
    if (builder.GetSize() > max_size) {
        return LLVMFuzzerMutate(data, size, max_size);
    }
    std::memcpy(data, builder.GetBufferPointer(), builder.GetSize());
    return builder.GetSize();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::vector<uint8_t> weights(kWeightBytes, 1);
    const Result<GraphFile> file =
        ReadGraphFile(ToBytes(FileWith({data, size}, weights)), "fuzz", "");
    if (!file.ok()) {
        FuzzOutcomes::Count(false);
        CheckError("ReadGraphFile", file.error());
        return 0;
    }
    const Result<std::vector<uint32_t>> unsupported = UnsupportedNodes(*file, "fuzz", nullptr);
    if (!unsupported.ok()) {
        CheckError("UnsupportedNodes", unsupported.error());
    }
    Result<ImportedGraph> imported = ImportGraph(*file, "fuzz", {});
    if (!imported.ok()) {
        FuzzOutcomes::Count(false);
        CheckError("ImportGraph", imported.error());
        return 0;
    }
    graph::CompileOptions options;
    if (size % 2 == 0) {
        options.dynamic_sizes = {"n"};
    }
    FuzzOutcomes::Count(CheckGraph(std::move(imported->graph), options, kMaxCompiledNodes));
    return 0;
}
