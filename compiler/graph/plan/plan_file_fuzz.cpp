// Coverage-guided fuzzing of what becomes of a plan's file: any structure behind a right header is
// parsed, validated, printed, placed in memory, its small kernels are interpreted, and SPIR-V is
// written for its kernels.
//
// An input is the size of the weights (4 bytes), the structure, and the weights.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <random>

#include "base/fuzz_outcomes.h"
#include "compiler/graph/loop/emit_spirv.h"
#include "compiler/graph/loop/random_kernel.h"
#include "compiler/graph/loop/scope.h"
#include "compiler/graph/plan/fuzz_kernels.h"
#include "compiler/graph/plan/plan_file.h"
#include "compiler/graph/plan/plan_file_header.h"
#include "compiler/graph/plan/plan_kernel.h"
#include "compiler/graph/plan/test_plan.h"

namespace {

using namespace fornax::graph;
using Input = std::vector<uint8_t>;
using Random = std::mt19937;

constexpr uint64_t kMaxInterpretedBytes = 1 << 16;
constexpr double kMaxInterpretedPoints = 300;
constexpr size_t kRandomSeeds = 16;
constexpr size_t kSmallKernel = 8;   // scalars
constexpr uint32_t kWritesCode = 4;  // one plan of so many

// The header's numbers are right, and weights have no checksums, so that these stop nothing.
Bytes FileOf(const Input& input) {
    uint32_t weights = 0;
    if (input.size() >= sizeof(weights)) {
        std::memcpy(&weights, input.data(), sizeof(weights));
    }
    const size_t rest = input.size() - std::min(input.size(), sizeof(weights));
    const uint8_t* payload = input.data() + (input.size() - rest);
    PlanFileHeader header;
    header.weight_bytes = std::min<uint64_t>(weights, rest);
    header.structure_bytes = rest - header.weight_bytes;
    header.checksum = fornax::HashBytes(std::as_bytes(std::span(payload, header.structure_bytes)));
    auto file = std::make_shared<std::vector<uint8_t>>(WeightsOffset(header) + header.weight_bytes);
    std::memcpy(file->data(), &header, sizeof(header));
    if (rest != 0) {  // memcpy takes no null, even for nothing
        std::memcpy(file->data() + sizeof(header), payload, header.structure_bytes);
        std::memcpy(file->data() + WeightsOffset(header), payload + header.structure_bytes,
                    header.weight_bytes);
    }
    return file;
}

Input InputOf(const std::vector<std::byte>& file) {
    PlanFileHeader header;
    std::memcpy(&header, file.data(), sizeof(header));
    const auto weights = static_cast<uint32_t>(header.weight_bytes);
    Input input(sizeof(weights) + header.structure_bytes + header.weight_bytes);
    std::memcpy(input.data(), &weights, sizeof(weights));
    std::memcpy(input.data() + sizeof(weights), file.data() + sizeof(header),
                header.structure_bytes);
    if (weights != 0) {
        std::memcpy(input.data() + sizeof(weights) + header.structure_bytes,
                    file.data() + WeightsOffset(header), weights);
    }
    return input;
}

// With a kernel of every kind of scalar, and a host step with a body.
Plan MakeSeed() {
    Plan plan = MakeTestPlan();
    plan.kernels.push_back({loop::ParseKernel("kernel all(in a: f32[n,8], out c: f32[n,8])\n"
                                              "  sizes n in 1..100\n"
                                              "  parallel $i0 < n\n"
                                              "  sequential $s0 < 8\n"
                                              "  rows 1\n"
                                              "  %0 = constant f32 1.5\n"
                                              "  %1 = load a[$i0 - 1,$s0] otherwise %0\n"
                                              "  %2 = index 8*$i0 + floor($s0, 2)\n"
                                              "  %3 = inrange $i0 - 1 < n\n"
                                              "  %4 = load a[$i0,$r0]\n"
                                              "  %5 = reduce max $r0 < 8 of %4\n"
                                              "  %6 = position min last $r1 < n of %1\n"
                                              "  %7 = load a[mod($v2, n),$v6]\n"
                                              "  %8 = cast f16 %7 saturate up\n"
                                              "  %9 = cast f32 %8\n"
                                              "  %10 = bitcast u32 %9\n"
                                              "  %11 = cast f32 %10\n"
                                              "  %12 = select %3, %11, %5\n"
                                              "  %13 = load c[$i0,max($s0 - 1, 0)]\n"
                                              "  %14 = add %12, %13\n"
                                              "  store c[$i0,$s0] = %14 if %3\n")
                                .value()});
    Graph body("body");
    body.AddOutput("y", body.AddInput("x", plan.blocks[3].type));
    plan.steps.emplace_back(HostStep{"same",
                                     op::Composite{"same", {{"a", 1.5}}},
                                     {std::make_shared<const Graph>(std::move(body))},
                                     {BlockId(3)},
                                     {plan.blocks[3].type},
                                     {BlockId(8)},
                                     {plan.blocks[3].type},
                                     "of a test"});
    plan.blocks.push_back(
        {"same", plan.blocks[3].type, BlockKind::kTemporary, nullptr, nullptr, 4, 5});
    plan.blocks.push_back(
        {"all", plan.blocks[3].type, BlockKind::kTemporary, nullptr, nullptr, 5, 5});
    plan.steps.emplace_back(DispatchStep{"all", KernelId(2), {BlockId(8), BlockId(9)}, 0, 0, 0});
    plan.steps.emplace_back(DispatchStep{"copy", KernelId(1), {BlockId(8), BlockId(8)}, 0, 0, 0});
    for (PlanBlock& block : plan.blocks) {
        block.last = block.last == 4 ? 7 : block.last;
    }
    plan.blocks[3].last = 4;
    plan.blocks[8].last = 6;
    return plan;
}

// One dispatch of a kernel, whose buffers are the plan's inputs and outputs.
Plan PlanOfKernel(const PlanKernel& kernel, const Bindings& hints) {
    Plan plan;
    plan.kernels.push_back(kernel);
    plan.ranges = SizesOf(kernel);
    plan.hints = hints;
    DispatchStep step{"step", KernelId(0), {}, 0, 0, 0};
    for (const loop::Buffer& buffer : BuffersOf(kernel)) {
        const BlockId block(plan.blocks.size());
        const BlockKind kind = buffer.written ? BlockKind::kOutput : BlockKind::kInput;
        plan.blocks.push_back({buffer.name, buffer.type, kind, nullptr, nullptr, 0, 1});
        step.bindings.push_back(block);
        (buffer.written ? plan.outputs : plan.inputs).push_back({buffer.name, buffer.type, block});
    }
    for (uint32_t port = 0; port < plan.inputs.size(); ++port) {
        const Shape& shape = plan.inputs[port].type.shape;
        for (uint32_t axis = 0; axis < shape.rank(); ++axis) {
            const std::vector<Symbol> symbols = shape[axis].Symbols();
            if (symbols.size() == 1 && shape[axis] == Expr(symbols[0])) {
                plan.sources.push_back({symbols[0], port, axis});
            }
        }
    }
    plan.steps.emplace_back(std::move(step));
    return plan;
}

// The tensors have n and m as their last dimensions where the template has two sizes or more.
Plan PlanOfTemplate(const Template& of) {
    const Symbol n("n"), m("m");
    std::vector<Expr> arguments;
    for (const TemplateParameter& parameter : of.parameters) {
        const bool is_row = parameter.name == "rows", is_length = parameter.name == "length";
        arguments.push_back(is_row      ? Expr(n)
                            : is_length ? Expr(m)
                                        : Expr(std::max<int64_t>(parameter.low, 1)));
    }
    PlanKernel kernel;
    kernel.of_template =
        TemplateKernel::Make(of.name, std::move(arguments), {{n, {0, 100}}, {m, {0, 100}}}).value();
    return PlanOfKernel(kernel, {{n, 3}, {m, 5}});
}

// One with a part of every kind, kernels of every form, and small plans, which are read many times
// a second.
const std::vector<Plan>& Seeds() {
    static const std::vector<Plan> seeds = [] {
        std::vector<Plan> plans = {MakeSeed()};
        for (const char* text : kFuzzKernels) {
            const loop::Kernel kernel = loop::ParseKernel(text).value();
            Bindings hints;
            for (const auto& [symbol, range] : kernel.sizes) {
                hints[symbol] = std::min<int64_t>(range.high, 2);
            }
            plans.push_back(PlanOfKernel({kernel}, hints));
        }
        for (const Template& of : Templates()) {
            plans.push_back(PlanOfTemplate(of));
        }
        for (const Plan& plan : plans) {
            if (!ValidatePlan(plan).ok()) {
                std::fprintf(stderr, "%s\n", ValidatePlan(plan).error().message.c_str());
                std::abort();
            }
        }
        const size_t count = plans.size() + kRandomSeeds;
        for (uint64_t seed = 0; plans.size() < count; ++seed) {
            const loop::RandomKernel random = loop::MakeRandomKernel(seed);
            Plan plan = PlanOfKernel({random.kernel}, random.sizes);
            // Kernels of sizes that are no input's are none that a plan can have alone.
            if (random.kernel.scalars.size() <= kSmallKernel && ValidatePlan(plan).ok()) {
                plans.push_back(std::move(plan));
            }
        }
        return plans;
    }();
    return seeds;
}

// The input that was read last and its plan: what is changed next is seldom another.
struct LastRead {
    Input input;
    std::optional<Plan> plan;  // none if it is refused
};

LastRead& Last() {
    static LastRead last;
    return last;
}

const std::optional<Plan>& Read(const Input& input) {
    LastRead& last = Last();
    if (last.input != input || input.empty()) {
        fornax::Result<Plan> plan = ParsePlan(FileOf(input), WeightCheck::kTrust);
        last.input = input;
        last.plan = plan.ok() ? std::optional<Plan>(*std::move(plan)) : std::nullopt;
    }
    return last.plan;
}

int64_t Number(Random& random) {
    switch (random() % 5) {
        case 0:
            return random() % 10;
        case 1:
            return int64_t{1} << random() % 63;
        case 2:
            return static_cast<int64_t>(~uint64_t{0} >> random() % 64);
        case 3:
            return -static_cast<int64_t>(random() % 10);
        default:
            return random() % 300;
    }
}

// Changes, copies, removes or exchanges one element.
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
            if (elements.size() < 32) {
                elements.insert(place, T(*place));
            }
            return;
        case 2:
            std::swap(*place, elements[random() % elements.size()]);
            return;
        default:
            change(*place);
    }
}

Expr AnyExpr(Random& random, int depth = 0) {
    const std::array<Symbol, 3> symbols = {Symbol("n"), Symbol("m"), Symbol("k")};
    const auto part = [&] { return AnyExpr(random, depth + 1); };
    switch (random() % (depth > 3 ? 4 : 10)) {
        case 0:
            return Number(random);
        case 1:
        case 2:
        case 3:
            return symbols[random() % 3];
        case 4:
            return part() + part();
        case 5:
            return part() * part();
        case 6:
            return FloorDiv(part(), part());
        case 7:
            return Mod(part(), part());
        case 8:
            return Min(part(), part());
        default:
            return Max(part(), part());
    }
}

void ChangeExpr(Expr& expr, Random& random) {
    expr = random() % 2 == 0 ? expr + Number(random) % 3 : AnyExpr(random);
}

void ChangeType(TensorType& type, Random& random) {
    if (random() % 4 == 0) {
        type.element = static_cast<ElementType>(random() % 24);
    } else {
        ChangeOne(type.shape.mutable_dims(), random, [&](Expr& dim) { ChangeExpr(dim, random); });
    }
}

void ChangeId(BlockId& id, Random& random) {
    id = BlockId(static_cast<size_t>(random() % 12));
}

void ChangeStep(DispatchStep& step, Random& random) {
    switch (random() % 3) {
        case 0:
            step.kernel = KernelId(static_cast<size_t>(random() % 4));
            return;
        case 1:
            return ChangeExpr(step.operations, random);
        default:
            ChangeOne(step.bindings, random, [&](BlockId& id) { ChangeId(id, random); });
    }
}

void ChangeStep(HostStep& step, Random& random) {
    switch (random() % 4) {
        case 0:
            return ChangeOne(step.operands, random, [&](BlockId& id) { ChangeId(id, random); });
        case 1:
            return ChangeOne(step.results, random, [&](BlockId& id) { ChangeId(id, random); });
        case 2:
            return ChangeOne(step.operand_types, random,
                             [&](TensorType& type) { ChangeType(type, random); });
        default:
            ChangeOne(step.result_types, random,
                      [&](TensorType& type) { ChangeType(type, random); });
    }
}

void ChangeBlock(PlanBlock& block, Random& random) {
    switch (random() % 4) {
        case 0:
            block.first = static_cast<uint32_t>(Number(random));
            return;
        case 1:
            block.last = static_cast<uint32_t>(Number(random));
            return;
        case 2:
            block.kind = static_cast<BlockKind>(random() % 6);
            return;
        default:
            ChangeType(block.type, random);
    }
}

void ChangeKernel(PlanKernel& kernel, Random& random) {
    if (!kernel.of_template) {
        return;
    }
    const std::span<const Expr> held = kernel.of_template->arguments();
    std::vector<Expr> arguments(held.begin(), held.end());
    ChangeExpr(arguments[random() % arguments.size()], random);
    fornax::Result<TemplateKernel> changed = TemplateKernel::Make(
        kernel.of_template->name(), std::move(arguments),
        {{Symbol("n"), {0, 100}}, {Symbol("m"), {0, 100}}, {Symbol("k"), {0, 100}}});
    if (changed.ok()) {
        kernel.of_template = *std::move(changed);
    }
}

void ChangePlan(Plan& plan, Random& random) {
    const auto port = [&](PlanPort& held) {
        if (random() % 2 == 0) {
            ChangeId(held.block, random);
        } else {
            ChangeType(held.type, random);
        }
    };
    switch (random() % 9) {
        case 0:
            return ChangeOne(plan.blocks, random, [&](auto& held) { ChangeBlock(held, random); });
        case 1:
            return ChangeOne(random() % 2 == 0 ? plan.inputs : plan.outputs, random, port);
        case 2:
            return ChangeOne(plan.sources, random, [&](SymbolSource& source) {
                source.port = static_cast<uint32_t>(random() % 2);
                source.axis = static_cast<uint32_t>(random() % 3);
            });
        case 3:
            plan.ranges[Symbol(random() % 2 == 0 ? "n" : "k")] = {Number(random), Number(random)};
            return;
        case 4:
            plan.hints[Symbol("n")] = Number(random);
            return;
        case 5:
            plan.guards.push_back(
                {static_cast<Relation>(random() % 5), AnyExpr(random), AnyExpr(random)});
            return ChangeOne(plan.guards, random,
                             [&](Guard& guard) { ChangeExpr(guard.a, random); });
        case 6:
            return ChangeOne(plan.kernels, random,
                             [&](PlanKernel& held) { ChangeKernel(held, random); });
        default:
            return ChangeOne(plan.steps, random, [&](PlanStep& step) {
                std::visit([&](auto& held) { ChangeStep(held, random); }, step);
            });
    }
}

// A number or a word of a text becomes another, of the same length as far as possible: texts lie
// between other parts of the structure.
void ChangeText(Input& input, Random& random) {
    const auto is_digit = [](uint8_t c) { return c >= '0' && c <= '9'; };
    const size_t begin = random() % input.size();
    for (size_t i = begin; i < input.size(); ++i) {
        if (is_digit(input[i])) {
            input[i] = static_cast<uint8_t>('0' + random() % 10);
            if (random() % 2 == 0) {
                return;
            }
        }
    }
}

// One 32-bit word becomes another: fields and offsets are words.
void ChangeWord(Input& input, Random& random) {
    const size_t position = random() % (input.size() / 4) * 4;
    const auto word = static_cast<uint32_t>(Number(random));
    std::memcpy(input.data() + position, &word, sizeof(word));
}

// How often the kernel's scalars are computed, at most.
double PointsOf(const PlanKernel& held, const Bindings& sizes) {
    if (held.of_template) {
        const std::optional<int64_t> operations = held.of_template->operations().Evaluate(sizes);
        return operations ? static_cast<double>(*operations) : 1e30;
    }
    const loop::Kernel& kernel = held.loop;
    const loop::Scope scope = loop::FindScope(kernel);
    double points = static_cast<double>(kernel.scalars.size() + kernel.stores.size());
    for (const loop::Loop& loop : scope.variables) {
        const std::optional<int64_t> extent = loop.extent.Evaluate(sizes);
        if (!extent) {
            return 1e30;  // it depends on a variable or on data
        }
        points *= static_cast<double>(std::max<int64_t>(*extent, 1));
    }
    return points;
}

void InterpretSmall(const Plan& plan, const MemoryPlan& memory, const Bindings& sizes) {
    for (const PlanStep& held : plan.steps) {
        const auto* step = std::get_if<DispatchStep>(&held);
        if (step == nullptr) {
            continue;
        }
        const PlanKernel& kernel = plan.kernels[step->kernel.value()];
        std::vector<std::vector<uint8_t>> buffers;
        uint64_t bytes = 0;
        for (const BlockId block : step->bindings) {
            const uint64_t size = memory.sizes[block.value()];
            if (size > kMaxInterpretedBytes - bytes) {
                return;
            }
            bytes += size;
            buffers.emplace_back(size, uint8_t{1});
        }
        if (PointsOf(kernel, sizes) > kMaxInterpretedPoints) {
            continue;
        }
        // The blocks that the plan binds are as large as the kernel's buffers whenever it may run.
        const fornax::Status status = Interpret(kernel, sizes, buffers);
        // Sizes that a template is not for are refused before it is run.
        if (!status.ok() && status.error().code != fornax::ErrorCode::kUnsupported) {
            std::fprintf(stderr, "%s\n", status.error().message.c_str());
            std::abort();
        }
    }
}

// With the symbols as they are first, and with small sizes.
void PlaceAndInterpret(const Plan& plan) {
    for (const int64_t size : {-1, 1, 2, 5}) {
        Bindings sizes;
        bool serves = true;
        for (const auto& [symbol, range] : plan.ranges) {
            const auto hint = plan.hints.find(symbol);
            const int64_t first = hint == plan.hints.end() ? range.low : hint->second;
            sizes[symbol] = size < 0 ? first : size;
            serves = serves && sizes[symbol] >= range.low && sizes[symbol] <= range.high;
        }
        for (const Guard& guard : plan.guards) {
            serves = serves && guard.Holds(sizes);
        }
        const fornax::Result<MemoryPlan> memory = PlanMemory(plan, sizes);
        if (serves && memory.ok()) {
            InterpretSmall(plan, *memory, sizes);
        }
    }
    Bindings some;
    for (const SymbolSource& source : plan.sources) {
        some[source.symbol] = 3;
    }
    (void)PlanMemory(plan, some);
}

// What the runtime does with the plan's kernels: code, or an error that is no internal one.
void WriteCode(const Plan& plan) {
    for (const PlanKernel& kernel : plan.kernels) {
        loop::Target target;
        target.matrices_f32 = true;
        target.integer_dot = true;
        const auto module = CodeOf(kernel, target);
        if (!module.ok() && module.error().code == fornax::ErrorCode::kInternal) {
            std::fprintf(stderr, "%s\n", module.error().message.c_str());
            std::abort();
        }
    }
}

}  // namespace

// Most of the time of small runs is what the allocator keeps for its reports: of where memory was
// allocated one frame is enough, and what was freed needs not be kept for long.
extern "C" const char* __asan_default_options() {
    return "malloc_context_size=1:quarantine_size_mb=4";
}

// libFuzzer's own change of bytes.
extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

// Changed bytes seldom leave a plan that can be read, changed fields and numbers do.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data,
                                          size_t size,
                                          size_t max_size,
                                          unsigned seed) {
    Random random(seed);
    if (size >= 8 && random() % 4 == 0) {
        return LLVMFuzzerMutate(data, size, max_size);
    }
    Input input(data, data + size);
    const uint32_t kind = random() % 4;
    if (size >= 8 && kind == 0) {
        ChangeWord(input, random);
    } else if (size >= 8 && kind == 1) {
        ChangeText(input, random);
    } else {
        const std::optional<Plan>& read = Read(input);
        Plan plan = read ? *read : Seeds()[random() % Seeds().size()];
        for (uint32_t changes = random() % 3; changes != 0; --changes) {
            ChangePlan(plan, random);
        }
        const fornax::Result<std::vector<std::byte>> file = SerializePlan(plan);
        if (file.ok()) {
            input = InputOf(*file);
        }
    }
    if (input.empty() || input.size() > max_size) {
        return LLVMFuzzerMutate(data, size, max_size);
    }
    std::memcpy(data, input.data(), input.size());
    return input.size();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    Last().input.clear();  // it is this one that is to be read
    const std::optional<Plan>& plan = Read(Input(data, data + size));
    fornax::FuzzOutcomes::Count(plan.has_value());
    if (!plan) {
        return 0;
    }
    // What is accepted can be printed, and written and read again as the same plan.
    const std::string text = ToText(*plan);
    const auto written = SerializePlan(*plan);
    if (!written.ok()) {
        std::fprintf(stderr, "%s\n", written.error().message.c_str());
        std::abort();
    }
    const fornax::Result<Plan> again = ParsePlan(*written);
    if (!again.ok() || ToText(*again) != text) {
        std::fprintf(stderr, "%s\n", again.ok() ? "Another text." : again.error().message.c_str());
        std::abort();
    }
    PlaceAndInterpret(*plan);
    if (fornax::HashBytes(std::as_bytes(std::span(data, size))).low % kWritesCode == 0) {
        WriteCode(*plan);
    }
    return 0;
}
