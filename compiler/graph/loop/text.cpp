// Loop kernels as text; parse.cpp reads it back. A name that is not of letters, digits, '_' and '.'
// is in quotes.
//
//     kernel padded(in x: f32[n,8], out y: f32[n + 2,8])
//       sizes n in 1..100
//       parallel $i0 < n + 2, $i1 < 8
//       local h: f32[2,8]                             in kernels of phases
//       sequential $s0 < 3
//       rows 1                                        a workgroup for each point of the first loop
//       %0 = constant f32 1.5
//       %1 = load x[$i0 - 1,$i1] otherwise %0
//       %2 = index 8*$i0 + $i1                        an i64
//       %3 = inrange $i0 - 1 < n                      a bool
//       %4 = add %1, %0                               any scalar function
//       %5 = cast f16 %4 saturate up                  overflow and rounding where not the default
//       %6 = bitcast u32 %0
//       %7 = reduce sum $r0 < 8, $r1 < n of %1
//       %8 = position max last $r0 < 8 of %1          an i64
//       store y[$i0,$i1] = %4 if %3                   or, before the stores of each phase:
//       before $i0 < 8                                or each, after; perhaps without loops
#include "compiler/graph/loop/text.h"

#include <fmt/format.h>

#include "compiler/graph/loop/kernel.h"

namespace fornax::graph::loop {
namespace {

std::string NameText(std::string_view name) {
    if (IsPlainName(name)) {
        return std::string(name);
    }
    std::string text = "\"";
    for (const char c : name) {
        if (c < ' ' || c > '~' || c == '"' || c == '\\') {
            text += fmt::format("\\x{:02x}", static_cast<uint8_t>(c));
        } else {
            text += c;
        }
    }
    return text + '"';
}

std::string LoopsText(std::span<const Loop> loops) {
    std::string text;
    for (const Loop& loop : loops) {
        text += fmt::format("{}{} < {}", text.empty() ? "" : ", ", loop.variable.name(),
                            loop.extent.ToString());
    }
    return text;
}

std::string AccessText(const Buffer& buffer, const std::vector<Expr>& index) {
    return NameText(buffer.name) + Shape(index).ToString();
}

struct ScalarText {
    const Kernel& kernel;
    ElementType type;

    std::string operator()(const Constant& constant) const {
        const Scalar& value = constant.value;
        return fmt::format("constant {} {}", Name(type),
                           value.is_float ? fmt::format("{}", value.number)
                           : type == ElementType::kU64
                               ? fmt::format("{}", static_cast<uint64_t>(value.integer))
                               : fmt::format("{}", value.integer));
    }
    std::string operator()(const Load& load) const {
        const std::string otherwise =
            load.otherwise.valid() ? fmt::format(" otherwise %{}", load.otherwise.value()) : "";
        return "load " + AccessText(kernel[load.buffer], load.index) + otherwise;
    }
    std::string operator()(const Index& index) const {
        return fmt::format("index {}", index.value.ToString());
    }
    std::string operator()(const InRange& range) const {
        return fmt::format("inrange {} < {}", range.value.ToString(), range.extent.ToString());
    }
    std::string operator()(const Map& map) const {
        std::string text(Name(map.function));
        for (size_t i = 0; i < map.arguments.size(); ++i) {
            text += fmt::format("{} %{}", i == 0 ? "" : ",", map.arguments[i].value());
        }
        return text;
    }
    std::string operator()(const Cast& cast) const {
        return fmt::format("cast {} %{}{}{}", Name(type), cast.argument.value(),
                           cast.overflow == Overflow::kSaturate ? " saturate" : "",
                           cast.rounding == Rounding::kUp     ? " up"
                           : cast.rounding == Rounding::kDown ? " down"
                                                              : "");
    }
    std::string operator()(const Bitcast& cast) const {
        return fmt::format("bitcast {} %{}", Name(type), cast.argument.value());
    }
    std::string operator()(const Reduce& reduce) const {
        return fmt::format("reduce {} {} of %{}", Name(reduce.combine), LoopsText(reduce.loops),
                           reduce.body.value());
    }
    std::string operator()(const ArgReduce& reduce) const {
        return fmt::format("position {}{} {} of %{}", Name(reduce.combine),
                           reduce.last ? " last" : "", LoopsText({&reduce.loop, 1}),
                           reduce.body.value());
    }
};

std::string StoresText(const Kernel& kernel, std::span<const Store> stores) {
    std::string text;
    for (const Store& store : stores) {
        text += fmt::format("  store {} = %{}", AccessText(kernel[store.buffer], store.index),
                            store.value.value());
        text += store.condition.valid() ? fmt::format(" if %{}\n", store.condition.value()) : "\n";
    }
    return text;
}

}  // namespace

bool IsPlainName(std::string_view name) {
    const auto is_letter = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    };
    if (name.empty() || !is_letter(name[0])) {
        return false;
    }
    for (const char c : name) {
        if (!is_letter(c) && (c < '0' || c > '9') && c != '.') {
            return false;
        }
    }
    return true;
}

std::string ToText(const Kernel& kernel) {
    std::string text = fmt::format("kernel {}(", NameText(kernel.name));
    for (size_t i = 0; i < kernel.buffers.size(); ++i) {
        const Buffer& buffer = kernel.buffers[i];
        text += fmt::format("{}{} {}: {}", i == 0 ? "" : ", ", buffer.written ? "out" : "in",
                            NameText(buffer.name), buffer.type.ToString());
    }
    text += ")\n";
    std::string sizes;
    for (const auto& [symbol, range] : kernel.sizes) {
        sizes += fmt::format("{}{} in {}..{}", sizes.empty() ? "" : ", ", symbol.name(), range.low,
                             range.high);
    }
    if (!sizes.empty()) {
        text += fmt::format("  sizes {}\n", sizes);
    }
    for (const Buffer& local : kernel.locals) {
        text += fmt::format("  local {}: {}\n", NameText(local.name), local.type.ToString());
    }
    if (!kernel.parallel.empty()) {
        text += fmt::format("  parallel {}\n", LoopsText(kernel.parallel));
    }
    if (!kernel.sequential.empty()) {
        text += fmt::format("  sequential {}\n", LoopsText(kernel.sequential));
    }
    if (kernel.mapping == Mapping::kRow) {
        text += fmt::format("  rows {}\n", kernel.row_loops);
    } else if (kernel.mapping == Mapping::kProduct) {
        text += "  product\n";
    } else if (kernel.mapping == Mapping::kAttention) {
        text += "  attention\n";
    }
    for (size_t i = 0; i < kernel.scalars.size(); ++i) {
        const ScalarNode& node = kernel.scalars[i];
        text +=
            fmt::format("  %{} = {}\n", i, std::visit(ScalarText{kernel, node.type}, node.value));
    }
    text += StoresText(kernel, kernel.stores);
    for (const Phase& phase : kernel.phases) {
        constexpr std::string_view kWhen[] = {"before", "each", "after"};
        text += fmt::format("  {}{}{}\n", kWhen[static_cast<size_t>(phase.when)],
                            phase.lanes.empty() ? "" : " ", LoopsText(phase.lanes));
        text += StoresText(kernel, phase.stores);
    }
    return text;
}

}  // namespace fornax::graph::loop
