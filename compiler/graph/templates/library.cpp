// The templates: a kernel of shaders/ is declared here, and nowhere else.
#include <algorithm>
#include <cstring>
#include <numeric>

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

const std::vector<Template>& Library() {
    static const std::vector<Template> library = {
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
