// Reading records and formatting them. The memory is in reach of every kernel of the application,
// so nothing in it is trusted.
#include "driver/debug_printf.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <charconv>
#include <cstdio>
#include <cstring>

#include "base/environment.h"
#include "compiler/kernel/interface/debug_printf.h"
#include "driver/device.h"
#include "driver/report.h"

namespace fornax::driver {
namespace {

constexpr uint64_t kDefaultBytes = 1 << 20;
constexpr uint64_t kMaxBytes = 1 << 30;
// The greatest width of a conversion, so that no format asks for gigabytes of spaces.
constexpr int kMaxWidth = 512;

// One value of a record.
struct Value {
    char letter = 0;  // 0: there is none
    uint64_t bits = 0;

    bool is_float() const { return letter == 'f' || letter == 'd'; }
    double AsFloat() const {
        return letter == 'f' ? std::bit_cast<float>(static_cast<uint32_t>(bits))
                             : std::bit_cast<double>(bits);
    }
};

// Hands out the values of a record in order.
class Values {
  public:
    Values(std::string_view letters, std::span<const uint32_t> words)
        : letters_(letters), words_(words) {}

    Value Next() {
        if (letters_.empty()) {
            return {};
        }
        const char letter = letters_.front();
        letters_.remove_prefix(1);
        const size_t count = letter == 'l' || letter == 'd' ? 2 : 1;
        if (words_.size() < count) {
            return {};
        }
        uint64_t bits = words_[0];
        if (count == 2) {
            bits |= uint64_t{words_[1]} << 32;
        }
        words_ = words_.subspan(count);
        return {letter, bits};
    }

  private:
    std::string_view letters_;
    std::span<const uint32_t> words_;
};

// A conversion between '%' and its letter.
struct Conversion {
    std::string flags;  // with the width and the precision
    uint32_t components = 1;
    char letter = 0;    // 0: none that is known
    size_t length = 0;  // of all of it
};

Conversion ParseConversion(std::string_view text) {
    Conversion conversion;
    size_t at = 0;
    const auto peek = [&] { return at < text.size() ? text[at] : '\0'; };
    const auto number = [&] {
        int value = 0;
        const auto [end, error] =
            std::from_chars(text.data() + at, text.data() + text.size(), value);
        at = static_cast<size_t>(end - text.data());
        conversion.flags += std::to_string(error == std::errc() ? std::min(value, kMaxWidth) : 0);
    };
    const auto is_digit = [&] { return peek() >= '0' && peek() <= '9'; };
    while (peek() != '\0' && std::strchr("-+ #0", peek())) {
        conversion.flags += text[at++];
    }
    if (is_digit()) {
        number();
    }
    if (peek() == '.') {
        conversion.flags += text[at++];
        if (is_digit()) {
            number();
        }
    }
    if (peek() == 'v' && at + 1 < text.size() && text[at + 1] >= '2' && text[at + 1] <= '4') {
        conversion.components = static_cast<uint32_t>(text[at + 1] - '0');
        at += 2;
    }
    // "%lu", and "%ul" as Khronos' documents have it.
    if (peek() == 'u' && at + 1 < text.size() && text[at + 1] == 'l') {
        conversion.letter = 'u';
        at += 2;
    } else {
        if (peek() == 'l') {
            ++at;
        }
        if (peek() != '\0' && std::strchr("diouxXaAeEfFgGpc", peek())) {
            conversion.letter = text[at++];
        }
    }
    conversion.length = at;
    return conversion;
}

std::string Formatted(const char* format, auto value) {
    char buffer[2 * kMaxWidth + 512];
    const int length = std::snprintf(buffer, sizeof(buffer), format, value);
    return {buffer, static_cast<size_t>(std::clamp<int>(length, 0, sizeof(buffer) - 1))};
}

// Integers are printed as integers and floats as floats, whatever the conversion's letter: a wrong
// letter is what one looks for with a debugger, and not what it should hide.
std::string FormatValue(const Conversion& conversion, const Value& value) {
    if (value.letter == 0) {
        return "<no value>";
    }
    std::string format = "%" + conversion.flags;
    const bool float_letter = std::strchr("aAeEfFgG", conversion.letter) != nullptr;
    if (value.is_float()) {
        format += float_letter ? conversion.letter : 'g';
        return Formatted(format.c_str(), value.AsFloat());
    }
    if (conversion.letter == 'c') {
        format += 'c';
        return Formatted(format.c_str(), static_cast<int>(value.bits & 0x7f));
    }
    const char letter = float_letter ? 'd' : conversion.letter == 'p' ? 'x' : conversion.letter;
    format += "ll";
    format += letter;
    const bool is_signed = letter == 'd' || letter == 'i';
    long long number = static_cast<long long>(value.bits);
    if (value.letter == 'i' && is_signed) {
        number = static_cast<int32_t>(static_cast<uint32_t>(value.bits));
    }
    return Formatted(format.c_str(), number);
}

}  // namespace

std::string FormatPrintf(std::string_view format,
                         std::string_view letters,
                         std::span<const uint32_t> words) {
    Values values(letters, words);
    std::string text;
    while (!format.empty()) {
        const size_t percent = std::min(format.find('%'), format.size());
        text += format.substr(0, percent);
        format.remove_prefix(percent);
        if (format.empty()) {
            break;
        }
        format.remove_prefix(1);
        if (format.starts_with('%')) {
            text += '%';
            format.remove_prefix(1);
            continue;
        }
        const Conversion conversion = ParseConversion(format);
        if (conversion.letter == 0) {
            text += '%';  // as it stands
            continue;
        }
        for (uint32_t i = 0; i < conversion.components; ++i) {
            if (i > 0) {
                text += ", ";
            }
            text += FormatValue(conversion, values.Next());
        }
        format.remove_prefix(conversion.length);
    }
    return text;
}

Result<std::unique_ptr<DebugPrintf>> DebugPrintf::Create(hal::Device& device) {
    const std::string wanted = EnvironmentText("FORNAX_DEBUG_PRINTF").value_or("0");
    if (wanted == "0") {
        return std::unique_ptr<DebugPrintf>();
    }
    uint64_t bytes = kDefaultBytes;
    if (wanted != "1") {
        constexpr NumberLimits kLimits = {sizeof(kernel::PrintfHeader) + 1, kMaxBytes};
        const Result<uint64_t> number = ParseNumber("FORNAX_DEBUG_PRINTF", wanted, kLimits);
        if (!number) {
            return Error{number.error().code,
                         number.error().message + " It may also be 0 (off) or 1 (on)."};
        }
        bytes = *number;
    }
    FORNAX_ASSIGN_OR_RETURN(auto memory, device.AllocateMemory(bytes));
    return std::make_unique<DebugPrintf>(std::move(memory));
}

uint32_t DebugPrintf::capacity_words() const {
    return static_cast<uint32_t>((memory_->size_bytes() - sizeof(kernel::PrintfHeader)) / 4);
}

void DebugPrintf::Print(const Device& origin) {
    const std::scoped_lock lock(mutex_);
    auto* header = reinterpret_cast<kernel::PrintfHeader*>(memory_->host_pointer());
    std::atomic_ref<uint64_t> words(header->words);
    uint64_t seen = words.load(std::memory_order_acquire);
    const auto taken = static_cast<uint32_t>(seen);
    if (taken == static_cast<uint32_t>(seen >> 32) && taken != 0) {
        PrintRecords(origin, std::min(taken, capacity_words()));
        // What a kernel took meanwhile lies behind, and is printed by a later call.
        if (words.compare_exchange_strong(seen, 0)) {
            printed_ = 0;
        }
    }
    const uint32_t lost = std::atomic_ref<uint32_t>(header->lost).exchange(0);
    if (lost > 0) {
        Tell(origin, VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT,
             fmt::format("{} messages of debugPrintf were lost, because the buffer of {} "
                         "bytes was full (FORNAX_DEBUG_PRINTF).",
                         lost, memory_->size_bytes()));
    }
}

void DebugPrintf::PrintRecords(const Device& origin, uint32_t end) {
    auto* words =
        reinterpret_cast<uint32_t*>(memory_->host_pointer() + sizeof(kernel::PrintfHeader));
    while (printed_ + 2 < end) {
        const std::span<uint32_t> rest(words + printed_, words + end);
        const uint32_t count = rest[0];
        const uint64_t text_words = (uint64_t{rest[1]} + 3) / 4;
        // Zeros are where a record had no room, behind the last one.
        if (count < 2 || count > rest.size() || text_words > count - 2) {
            break;
        }
        const std::string_view text(reinterpret_cast<const char*>(&rest[2]), rest[1]);
        const size_t format_bytes = std::min(text.find('\0'), text.size());
        const size_t value_at = 2 + static_cast<size_t>(text_words);
        Tell(origin, VK_DEBUG_UTILS_MESSAGE_SEVERITY_INFO_BIT_EXT,
             FormatPrintf(text.substr(0, format_bytes),
                          text.substr(std::min(format_bytes + 1, text.size())),
                          rest.subspan(value_at, count - value_at)));
        std::ranges::fill(rest.first(count), 0);
        printed_ += count;
    }
    printed_ = end;
}

}  // namespace fornax::driver
