#include "compiler/kernel/fuzz/mutate.h"

#include <algorithm>
#include <unordered_map>

#define SPV_ENABLE_UTILITY_CODE
#include <spirv/unified1/spirv.hpp11>

namespace fornax::kernel::fuzz {

namespace {

using Words = std::vector<uint32_t>;

constexpr size_t kHeader = 5;

// Where the instructions begin.
std::vector<size_t> Starts(const Words& module) {
    std::vector<size_t> starts;
    for (size_t at = kHeader; at < module.size();) {
        starts.push_back(at);
        const size_t length = module[at] >> 16;
        if (length == 0) {
            break;
        }
        at += length;
    }
    return starts;
}

// Where the instruction that begins there has its result id; 0 for none.
size_t ResultPosition(const Words& module, size_t begin) {
    bool has_result = false;
    bool has_type = false;
    spv::HasResultAndType(static_cast<spv::Op>(module[begin] & 0xffff), &has_result, &has_type);
    const size_t position = begin + (has_type ? 2 : 1);
    return has_result && position < module.size() && position < begin + (module[begin] >> 16)
               ? position
               : 0;
}

// The type of each value.
std::unordered_map<uint32_t, uint32_t> TypesOf(const Words& module,
                                               const std::vector<size_t>& starts) {
    std::unordered_map<uint32_t, uint32_t> types;
    for (size_t at : starts) {
        bool has_result = false;
        bool has_type = false;
        spv::HasResultAndType(static_cast<spv::Op>(module[at] & 0xffff), &has_result, &has_type);
        if (has_result && has_type && at + 2 < module.size()) {
            types[module[at + 2]] = module[at + 1];
        }
    }
    return types;
}

// Another value of the same type, or another type, instead of one of an instruction's operands:
// what comes out is well-formed more often than not.
bool ExchangeOperand(Words& module, const std::vector<size_t>& starts, Random& random) {
    const std::unordered_map<uint32_t, uint32_t> types = TypesOf(module, starts);
    for (int tries = 0; tries < 30; ++tries) {
        const size_t begin = starts[random.Below(static_cast<uint32_t>(starts.size()))];
        const uint32_t length = module[begin] >> 16;
        if (length < 3 || begin + length > module.size()) {
            continue;
        }
        uint32_t& operand = module[begin + 2 + random.Below(length - 2)];
        auto known = types.find(operand);
        if (known == types.end()) {
            continue;
        }
        std::vector<uint32_t> others;
        for (auto [id, type] : types) {
            if (type == known->second && id != operand) {
                others.push_back(id);
            }
        }
        if (others.empty()) {
            continue;
        }
        std::ranges::sort(others);
        operand = others[random.Below(static_cast<uint32_t>(others.size()))];
        return true;
    }
    return false;
}

void MutateOnce(Words& module, Random& random) {
    const std::vector<size_t> starts = Starts(module);
    if (starts.empty()) {
        return;
    }
    if (random.Chance(60) && ExchangeOperand(module, starts, random)) {
        return;
    }
    auto below = [&](size_t limit) { return random.Below(static_cast<uint32_t>(limit)); };
    const size_t begin = starts[below(starts.size())];
    const size_t length = std::min<size_t>(module[begin] >> 16, module.size() - begin);
    // A word of an instruction, seldom the first or its result.
    const size_t result = ResultPosition(module, begin);
    size_t at = length > 1 && !random.Chance(5) ? begin + 1 + below(length - 1) : begin;
    if (at == result && !random.Chance(10)) {
        at = begin + length - 1;
    }
    const uint32_t bound = std::max(module[3], 2u);
    auto first = [&](size_t position) { return module.begin() + static_cast<ptrdiff_t>(position); };
    switch (below(12)) {
        case 0:
            module[at] = static_cast<uint32_t>(random.Next());
            break;
        case 1:
            module[at] ^= 1u << below(32);
            break;
        case 2:
        case 3:
        case 4:
            module[at] = 1 + below(bound - 1);  // another id
            break;
        case 5:
            module[at] = module[kHeader + below(module.size() - kHeader)];
            break;
        case 6:
            module[at] = module[at] + 1 - below(3);
            break;
        case 7:
            module[at] = below(9);  // a small literal
            break;
        case 8:  // another instruction of the same form, perhaps
            module[begin] =
                (module[begin] & 0xffff0000) | (module[starts[below(starts.size())]] & 0xffff);
            break;
        case 9:
            module.erase(first(begin), first(begin + length));
            break;
        case 10: {
            Words copy(first(begin), first(begin + length));
            if (result != 0 && random.Chance(95)) {
                copy[result - begin] = module[3]++;
            }
            const size_t to = starts[below(starts.size())];
            module.insert(first(to), copy.begin(), copy.end());
            break;
        }
        default: {  // two ids change places everywhere in the rest
            const uint32_t a = 1 + below(bound - 1);
            const uint32_t b = 1 + below(bound - 1);
            for (size_t i = begin + 1; i < module.size(); ++i) {
                if (module[i] == a) {
                    module[i] = b;
                } else if (module[i] == b) {
                    module[i] = a;
                }
            }
            break;
        }
    }
}

}  // namespace

Words Mutate(const Words& module, Random& random) {
    Words mutant = module;
    for (uint32_t count = random.Chance(60) ? 1 : 2 + random.Below(4); count > 0; --count) {
        MutateOnce(mutant, random);
    }
    return mutant;
}

}  // namespace fornax::kernel::fuzz
