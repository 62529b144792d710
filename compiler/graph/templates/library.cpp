// The templates: a kernel of shaders/ is declared here, and nowhere else.
#include <algorithm>
#include <complex>
#include <cstring>
#include <iterator>
#include <numbers>
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
    if (rows == 0 || length == 0) {
        return;
    }
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

// A workgroup a row or, on devices that run no more, for several; none for nothing.
constexpr std::string_view kRowsWithElements = "min(rows, 65535)*min(length, 1)";

// The choice `combine` of scan_rows.
constexpr Combine kScanned[] = {Combine::kSum, Combine::kProduct, Combine::kMin, Combine::kMax};

template <ElementType type>
void InterpretScan(std::span<const int64_t> arguments, std::span<std::vector<uint8_t>> buffers) {
    const Combine combine = kScanned[arguments[0]];
    const bool exclusive = arguments[1] != 0, reverse = arguments[2] != 0;
    const int64_t rows = arguments[3], length = arguments[4], bytes = BytesOf(type);
    for (int64_t row = 0; length != 0 && row < rows; ++row) {
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
            .workgroups = kRowsWithElements,
            .operations = "rows*length",
            .interpret = InterpretScan<type>};
}

// A transform's choices, as fourier_rows has them.
struct FourierChoices {
    explicit FourierChoices(std::span<const int64_t> arguments)
        : points(arguments[0]),
          radices(arguments.begin() + 1, arguments.begin() + 6),
          packed(arguments[6] != 0),
          inverse(arguments[7] != 0),
          given(arguments[8]),
          made(arguments[9]),
          rows(arguments[10]) {}

    bool AreOfTransform() const {
        int64_t product = 1;
        for (size_t i = 0; i < radices.size(); ++i) {
            product *= radices[i];
            if (i > 0 && radices[i - 1] == 1 && radices[i] != 1) {
                return false;
            }
        }
        if (product != points) {
            return false;
        }
        if (packed) {
            return inverse ? given == 2 * points + 2 && made == 2 * points
                           : given == 2 * points && (made == 2 * points + 2 || made == 4 * points);
        }
        const auto is_row = [&](int64_t floats) {
            return floats == 2 * points || floats == points || floats == points / 2 * 2 + 2;
        };
        return is_row(given) && is_row(made);
    }

    int64_t points;
    std::vector<int64_t> radices;
    bool packed, inverse;
    int64_t given, made, rows;
};

using Complex = std::complex<double>;

// The passes of fourier_rows, in f64.
class FourierInterpreter {
  public:
    FourierInterpreter(const FourierChoices& of, std::span<std::vector<uint8_t>> buffers)
        : of_(of), buffers_(buffers) {}

    void Run() {
        for (int64_t row = 0; row < of_.rows; ++row) {
            std::vector<Complex> numbers;
            for (int64_t i = 0; i < of_.points; ++i) {
                const Complex value = Loaded(row, i);
                numbers.push_back(of_.inverse ? std::conj(value) : value);
            }
            int64_t before = 1;
            for (const int64_t radix : of_.radices) {
                numbers = radix == 1 ? std::move(numbers) : Pass(numbers, radix, before);
                before *= radix;
            }
            of_.packed && !of_.inverse ? StorePacked(row, numbers) : Store(row, numbers);
        }
    }

  private:
    double Float(size_t buffer, int64_t index) const {
        return ReadElement(ElementType::kF32, buffers_[buffer].data() + index * 4).number;
    }
    Complex Given(int64_t row, int64_t i) const {
        const int64_t at = row * of_.given + 2 * i;
        return {Float(0, at), Float(0, at + 1)};
    }
    Complex PackedRoot(int64_t k) const {
        return {Float(1, 2 * of_.points + k), Float(1, 3 * of_.points + 1 + k)};
    }
    void Make(int64_t row, int64_t i, double value) {
        WriteElement(ElementType::kF32, Scalar::Float(value),
                     buffers_[2].data() + (row * of_.made + i) * 4);
    }
    void Make(int64_t row, int64_t i, Complex value) {
        Make(row, 2 * i, value.real());
        Make(row, 2 * i + 1, value.imag());
    }

    Complex Loaded(int64_t row, int64_t i) const {
        if (of_.inverse && of_.packed) {
            const Complex a = i == 0 ? Given(row, 0).real() : Given(row, i);
            const Complex b =
                i == 0 ? Given(row, of_.points).real() : std::conj(Given(row, of_.points - i));
            return a + b + Complex(0, 1) * std::conj(PackedRoot(i)) * (a - b);
        }
        if (of_.given == 2 * of_.points) {
            return Given(row, i);
        }
        if (of_.given == of_.points) {
            return Float(0, row * of_.given + i);
        }
        return i <= of_.points / 2 ? Given(row, i) : std::conj(Given(row, of_.points - i));
    }

    std::vector<Complex> Pass(const std::vector<Complex>& in, int64_t radix, int64_t before) const {
        const int64_t after = of_.points / (radix * before);
        std::vector<Complex> roots, out(in.size());
        for (int64_t k = 0; k < radix; ++k) {
            roots.push_back(std::polar(
                1.0, -2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(radix)));
        }
        for (int64_t i = 0; i < of_.points / radix; ++i) {
            const int64_t f = i / after, a = i % after;
            for (int64_t k = 0; k < radix; ++k) {
                Complex value = in[static_cast<size_t>((f * radix + k) * after + a)];
                if (before != 1 && k != 0) {
                    const int64_t root = 2 * before * k + f;
                    value *= Complex(Float(1, root), Float(1, root + before));
                }
                for (int64_t m = 0; m < radix; ++m) {
                    out[static_cast<size_t>(m * (of_.points / radix) + i)] +=
                        value * roots[static_cast<size_t>(k * m % radix)];
                }
            }
        }
        return out;
    }

    void Store(int64_t row, const std::vector<Complex>& numbers) {
        const double count = static_cast<double>(of_.points * (of_.packed ? 2 : 1));
        for (int64_t i = 0; i < of_.points; ++i) {
            const Complex number = numbers[static_cast<size_t>(i)];
            const Complex value = of_.inverse ? std::conj(number) / count : number;
            if (of_.made == of_.points) {
                Make(row, i, value.real());
            } else if (of_.made == 2 * of_.points || i <= of_.points / 2) {
                Make(row, i, value);
            }
        }
    }

    void StorePacked(int64_t row, const std::vector<Complex>& numbers) {
        for (int64_t k = 0; k <= of_.points; ++k) {
            const Complex a = numbers[static_cast<size_t>(k % of_.points)];
            const Complex b =
                std::conj(numbers[static_cast<size_t>((of_.points - k) % of_.points)]);
            const Complex value = (a + b + Complex(0, -1) * PackedRoot(k) * (a - b)) / 2.0;
            Make(row, k, value);
            if (of_.made == 4 * of_.points && k != 0 && k != of_.points) {
                Make(row, 2 * of_.points - k, std::conj(value));
            }
        }
    }

    const FourierChoices& of_;
    const std::span<std::vector<uint8_t>> buffers_;
};

void InterpretFourier(std::span<const int64_t> arguments, std::span<std::vector<uint8_t>> buffers) {
    const FourierChoices choices(arguments);
    if (choices.AreOfTransform()) {
        FourierInterpreter(choices, buffers).Run();
    }
}

Template FourierRows() {
    return {.name = "fourier_rows",
            .parameters = {{"points", 2, kMostFourierPoints, true},
                           {"radix0", 1, 16, true},
                           {"radix1", 1, 16, true},
                           {"radix2", 1, 16, true},
                           {"radix3", 1, 16, true},
                           {"radix4", 1, 16, true},
                           {"packed", 0, 1, true},
                           {"inverse", 0, 1, true},
                           {"given", 2, 4 * kMostFourierPoints, true},
                           {"made", 2, 4 * kMostFourierPoints, true},
                           {"rows"}},
            .buffers = {{"given", ElementType::kF32, {"rows", "given"}, false},
                        {"roots", ElementType::kF32, {"2*points + packed*(2*points + 2)"}, false},
                        {"made", ElementType::kF32, {"rows", "made"}, true}},
            .workgroups = "min(rows, 65535)",
            .operations = "50*rows*points",
            .interpret = InterpretFourier};
}

const std::vector<Template>& Library() {
    static const std::vector<Template> library = {
        FourierRows(),
        ScanRows<ElementType::kF32>("scan_rows_f32"),
        ScanRows<ElementType::kF64>("scan_rows_f64"),
        ScanRows<ElementType::kI32>("scan_rows_i32"),
        ScanRows<ElementType::kI64>("scan_rows_i64"),
        {.name = "select_rows",
         .parameters = {{"rows"}, {"length"}, {"count", 0, 1024}},
         .buffers = {{"keys", ElementType::kU32, {"rows", "length"}, false},
                     {"positions", ElementType::kI32, {"rows", "count"}, true}},
         .workgroups = kRowsWithElements,
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
         .workgroups = kRowsWithElements,
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
