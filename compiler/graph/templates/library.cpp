// The templates: a kernel of shaders/ is declared here, and nowhere else.
#include <algorithm>
#include <cstring>
#include <iterator>
#include <numeric>

#include "compiler/graph/ir/scalar_function.h"
#include "compiler/graph/templates/template.h"

namespace fornax::graph {
namespace {

uint32_t Word(const std::vector<uint8_t>& buffer, int64_t index) {
    uint32_t word = 0;
    std::memcpy(&word, buffer.data() + index * 4, sizeof(word));
    return word;
}

// The positions of each row's first keys in order; keys are [word][row][element].
void InterpretSort(int64_t words,
                   int64_t rows,
                   int64_t length,
                   int64_t count,
                   const std::vector<uint8_t>& keys,
                   std::vector<uint8_t>& positions) {
    std::vector<uint32_t> order(static_cast<size_t>(length));
    for (int64_t row = 0; row < rows; ++row) {
        std::iota(order.begin(), order.end(), 0U);
        std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
            for (int64_t word = words - 1; word >= 0; --word) {
                const int64_t first = (word * rows + row) * length;
                const uint32_t of_a = Word(keys, first + a), of_b = Word(keys, first + b);
                if (of_a != of_b) {
                    return of_a < of_b;
                }
            }
            return a < b;
        });
        const auto kept = static_cast<size_t>(std::min(count, length));
        if (kept > 0) {
            std::memcpy(positions.data() + row * count * 4, order.data(), kept * 4);
        }
    }
}

// The choice `combine` of scan_rows.
constexpr Combine kScanned[] = {Combine::kSum, Combine::kProduct, Combine::kMin, Combine::kMax};

template <ElementType type>
void InterpretScan(std::span<const int64_t> arguments, std::span<std::vector<uint8_t>> buffers) {
    const Combine combine = kScanned[arguments[0]];
    const bool exclusive = arguments[1] != 0, reverse = arguments[2] != 0;
    const int64_t rows = arguments[3], length = arguments[4], bytes = BytesOf(type);
    for (int64_t row = 0; row < rows; ++row) {
        Scalar total = NeutralElement(combine, type);
        for (int64_t i = 0; i < length; ++i) {
            const int64_t at = (row * length + (reverse ? length - 1 - i : i)) * bytes;
            const Scalar with =
                EvaluateCombine(combine, type, total, ReadElement(type, buffers[0].data() + at));
            WriteElement(type, exclusive ? total : with, buffers[1].data() + at);
            total = with;
        }
    }
}

template <ElementType type>
Template ScanRows(std::string_view name) {
    return {.name = name,
            .parameters = {{"combine", 0, std::size(kScanned) - 1, true},
                           {"exclusive", 0, 1, true},
                           {"reverse", 0, 1, true},
                           {"rows"},
                           {"length"}},
            .buffers = {{"values", type, {"rows", "length"}, false},
                        {"results", type, {"rows", "length"}, true}},
            .workgroups = "min(rows, 65535)",
            .operations = "rows*length",
            .interpret = InterpretScan<type>};
}

const std::vector<Template>& Library() {
    static const std::vector<Template> library = {
        ScanRows<ElementType::kF32>("scan_rows_f32"),
        ScanRows<ElementType::kF64>("scan_rows_f64"),
        ScanRows<ElementType::kI32>("scan_rows_i32"),
        ScanRows<ElementType::kI64>("scan_rows_i64"),
        {.name = "select_rows",
         .parameters = {{"rows"}, {"length"}, {"count", 0, 1024}},
         .buffers = {{"keys", ElementType::kU32, {"rows", "length"}, false},
                     {"positions", ElementType::kI32, {"rows", "count"}, true}},
         .workgroups = "min(rows, 65535)",
         .operations = "2*rows*length + 2*rows*count*count",
         .interpret =
             [](std::span<const int64_t> a, std::span<std::vector<uint8_t>> buffers) {
                 InterpretSort(1, a[0], a[1], a[2], buffers[0], buffers[1]);
             }},
        {.name = "sort_rows",
         .parameters = {{"words", 1, 2, true}, {"rows"}, {"length"}, {"count"}},
         .buffers = {{"keys", ElementType::kU32, {"words", "rows", "length"}, false},
                     {"scratch", ElementType::kU32, {"rows", "4", "length"}, true},
                     {"positions", ElementType::kI32, {"rows", "count"}, true}},
         .workgroups = "min(rows, 65535)",
         .operations = "32*words*rows*length",
         .interpret =
             [](std::span<const int64_t> a, std::span<std::vector<uint8_t>> buffers) {
                 InterpretSort(a[0], a[1], a[2], a[3], buffers[0], buffers[2]);
             }},
    };
    return library;
}

}  // namespace

std::span<const Template> Templates() {
    return Library();
}

}  // namespace fornax::graph
