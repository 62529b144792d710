#include "compiler/kernel/spirv/reconvergence.h"

#include <algorithm>
#include <span>
#include <utility>

#include <fmt/format.h>

namespace fornax::kernel {

using Condition = ReconvergenceProgram::Condition;
using Statement = ReconvergenceProgram::Statement;
using Block = std::vector<Statement>;

// What a lane finds true, given the loop's iteration that it is in.
struct ReconvergenceProgram::Condition {
    enum class Kind : uint8_t { kBit, kBelow, kCounter, kElect, kUniform };
    Kind kind = Kind::kBit;
    uint32_t value = 0;
    uint32_t loop = 0;  // kCounter: which loop around, from the outermost
};

struct ReconvergenceProgram::Statement {
    enum class Kind : uint8_t {
        kRecord,
        kIf,
        kFor,
        kDoWhile,
        kSwitch,
        kBreak,
        kContinue,
        kReturn,
        kCall
    };
    Kind kind = Kind::kRecord;
    uint32_t id = 0;  // of a record or function
    Condition condition;
    uint32_t trips = 0;
    uint32_t lane_bits = 0;  // kFor: the trips are also limited by these bits of the lane
    std::vector<Block> blocks;
};

namespace {

using Kind = Statement::Kind;

constexpr uint32_t kCases = 3;  // of a switch, the last is the default

class Source {
  public:
    explicit Source(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u + 1) {}
    uint32_t Below(uint32_t limit) {
        state_ = state_ * 6364136223846793005u + 1442695040888963407u;
        return static_cast<uint32_t>((state_ >> 33) % limit);
    }

  private:
    uint64_t state_;
};

class Maker {
  public:
    Maker(Source& random, uint32_t functions) : random_(random), functions_(functions) {}

    Block MakeBlock(uint32_t depth) {
        Block block;
        const uint32_t count = 1 + random_.Below(4);
        for (uint32_t i = 0; i < count; ++i) {
            block.push_back(Make(depth));
            block.push_back(Record());
        }
        // Leaving ends a block.
        if (depth < kDepth && random_.Below(4) == 0) {
            block.push_back(Leave());
        }
        return block;
    }

  private:
    static constexpr uint32_t kDepth = 4;

    Statement Record() {
        Statement record;
        record.id = ++records_;
        return record;
    }
    Condition MakeCondition() {
        Condition condition;
        const uint32_t kind = random_.Below(10);
        if (kind < 4) {
            condition.kind = Condition::Kind::kBit;
            condition.value = random_.Below(12);
        } else if (kind < 6) {
            condition.kind = Condition::Kind::kBelow;
            condition.value = random_.Below(33);
        } else if (kind < 8 && loops_ != 0) {
            condition.kind = Condition::Kind::kCounter;
            condition.loop = random_.Below(loops_);
            condition.value = random_.Below(4);
        } else if (kind < 9) {
            condition.kind = Condition::Kind::kElect;
        } else {
            condition.kind = Condition::Kind::kUniform;
            condition.value = random_.Below(2);
        }
        return condition;
    }
    Statement Leave() {
        Statement leave;
        const uint32_t kind = random_.Below(6);
        if (kind < 3 && breakable_ != 0) {
            leave.kind = Kind::kBreak;
        } else if (kind < 5 && loops_ != 0) {
            leave.kind = Kind::kContinue;
        } else {
            leave.kind = kind == 5 ? Kind::kReturn : Kind::kRecord;
        }
        leave.id = leave.kind == Kind::kRecord ? ++records_ : 0;
        return leave;
    }
    Statement Make(uint32_t depth) {
        Statement made;
        const uint32_t kind = depth == 0 ? 0 : random_.Below(10);
        if (kind < 2) {
            if (functions_ != 0 && random_.Below(2) == 0) {
                made.kind = Kind::kCall;
                made.id = random_.Below(functions_);
                return made;
            }
            return Record();
        }
        if (kind < 6) {
            made.kind = Kind::kIf;
            made.condition = MakeCondition();
            made.blocks.push_back(MakeBlock(depth - 1));
            if (random_.Below(2) == 0) {
                made.blocks.push_back(MakeBlock(depth - 1));
            }
            return made;
        }
        if (kind < 9) {
            made.kind = random_.Below(3) == 0 ? Kind::kDoWhile : Kind::kFor;
            made.trips = 1 + random_.Below(3);
            made.lane_bits = random_.Below(2) * 3;
            ++loops_;
            ++breakable_;
            // `do` tests at its end, in the continue construct.
            if (made.kind == Kind::kDoWhile) {
                made.condition = MakeCondition();
            }
            made.blocks.push_back(MakeBlock(depth - 1));
            --breakable_;
            --loops_;
            return made;
        }
        made.kind = Kind::kSwitch;
        made.condition.value = random_.Below(8);
        ++breakable_;
        for (uint32_t i = 0; i < kCases; ++i) {
            made.blocks.push_back(MakeBlock(depth - 1));
        }
        --breakable_;
        return made;
    }

    Source& random_;
    uint32_t functions_;
    uint32_t records_ = 0;
    uint32_t loops_ = 0;
    uint32_t breakable_ = 0;
};

// --- as GLSL

std::string Text(const Condition& condition) {
    const std::string value = std::to_string(condition.value);
    switch (condition.kind) {
        case Condition::Kind::kBit:
            return "(lane >> " + std::to_string(condition.value / 2) +
                   " & 1) == " + std::to_string(condition.value % 2);
        case Condition::Kind::kBelow:
            return "lane < " + value;
        case Condition::Kind::kCounter:
            return "i" + std::to_string(condition.loop) + " == ((lane + " + value + ") & 3)";
        case Condition::Kind::kElect:
            return "subgroupElect()";
        case Condition::Kind::kUniform:
            return "in_[1] == " + value;
    }
    return "";
}

std::string Text(const Block& block, uint32_t loops) {
    std::string text;
    for (const Statement& statement : block) {
        const std::string i = "i" + std::to_string(loops);
        const std::string trips = std::to_string(statement.trips) + " - min(" +
                                  std::to_string(statement.trips) + ", lane & " +
                                  std::to_string(statement.lane_bits) + ")";
        switch (statement.kind) {
            case Kind::kRecord:
                text += "record(" + std::to_string(statement.id) + ");\n";
                break;
            case Kind::kIf:
                text += "if (" + Text(statement.condition) + ") {\n" +
                        Text(statement.blocks[0], loops) + "}";
                if (statement.blocks.size() > 1) {
                    text += " else {\n" + Text(statement.blocks[1], loops) + "}";
                }
                text += "\n";
                break;
            case Kind::kFor:
                text += fmt::format("for (uint {0} = 0; {0} < {1}; ++{0}) {{\n{2}}}\n", i, trips,
                                    Text(statement.blocks[0], loops + 1));
                break;
            case Kind::kDoWhile:
                // The counter counts first of all, so that `continue` does not skip it.
                text += fmt::format(
                    "{{ uint {0} = ~0u;\ndo {{\n++{0};\n{2}}} while ({0} + 1 < {1} && ({3})); }}\n",
                    i, trips, Text(statement.blocks[0], loops + 1), Text(statement.condition));
                break;
            case Kind::kSwitch:
                text += "switch (int((lane ^ " + std::to_string(statement.condition.value) +
                        ") & 3)) {\ncase 0: case 2: {\n" + Text(statement.blocks[0], loops) +
                        "} break;\ncase 1: {\n" + Text(statement.blocks[1], loops) +
                        "} break;\ndefault: {\n" + Text(statement.blocks[2], loops) +
                        "} break;\n}\n";
                break;
            case Kind::kBreak:
                text += "break;\n";
                break;
            case Kind::kContinue:
                text += "continue;\n";
                break;
            case Kind::kReturn:
                text += "return;\n";
                break;
            case Kind::kCall:
                text += "f" + std::to_string(statement.id) + "();\n";
                break;
        }
    }
    return text;
}

// --- the rules

using Lanes = uint64_t;  // of one subgroup

class Simulator {
  public:
    Simulator(std::span<const Block> functions, uint32_t size, std::vector<uint32_t>& records)
        : functions_(functions), size_(size), records_(records), counts_(size) {}

    void Run(const Block& main, uint32_t first) {
        first_ = first;
        Function frame;
        function_ = &frame;
        Do(main, ~Lanes{0} >> (64 - size_));
    }
    bool overflowed() const { return overflowed_; }

  private:
    // Lanes that left and wait at the end of what they left.
    struct Function {
        Lanes returned = 0;
    };
    struct Breakable {
        bool is_loop = false;
        Lanes broken = 0;
        Lanes continued = 0;
    };

    template <typename Holds>
    Lanes Where(Lanes lanes, Holds holds) const {
        Lanes result = 0;
        for (uint32_t lane = 0; lane < size_; ++lane) {
            if ((lanes >> lane & 1) && holds(lane)) {
                result |= Lanes{1} << lane;
            }
        }
        return result;
    }
    Lanes Holding(const Condition& condition, Lanes lanes) const {
        switch (condition.kind) {
            case Condition::Kind::kBit:
                return Where(lanes, [&](uint32_t lane) {
                    return (lane >> condition.value / 2 & 1) == condition.value % 2;
                });
            case Condition::Kind::kBelow:
                return Where(lanes, [&](uint32_t lane) { return lane < condition.value; });
            case Condition::Kind::kCounter:
                return Where(lanes, [&](uint32_t lane) {
                    return counters_[condition.loop] == ((lane + condition.value) & 3);
                });
            case Condition::Kind::kElect:
                return lanes & (~lanes + 1);
            case Condition::Kind::kUniform:
                return condition.value == 1 ? lanes : 0;
        }
        return 0;
    }

    void Record(uint32_t id, Lanes lanes) {
        const uint32_t value = static_cast<uint32_t>(lanes) +
                               static_cast<uint32_t>(lanes >> 32) * 3 + id * 0x01000193u;
        for (uint32_t lane = 0; lane < size_; ++lane) {
            if (!(lanes >> lane & 1)) {
                continue;
            }
            if (counts_[lane] == ReconvergenceProgram::kMaxRecords) {
                overflowed_ = true;
                continue;
            }
            records_[(first_ + lane) * ReconvergenceProgram::kMaxRecords + counts_[lane]++] = value;
        }
    }

    // Gives the lanes that come to the block's end.
    Lanes Do(const Block& block, Lanes lanes) {
        for (const Statement& statement : block) {
            if (lanes == 0) {
                return 0;
            }
            lanes = Do(statement, lanes);
        }
        return lanes;
    }
    Lanes Do(const Statement& statement, Lanes lanes) {
        switch (statement.kind) {
            case Kind::kRecord:
                Record(statement.id, lanes);
                return lanes;
            case Kind::kIf: {
                const Lanes holds = Holding(statement.condition, lanes);
                Lanes end = Do(statement.blocks[0], holds);
                const Lanes others = lanes & ~holds;
                return end |
                       (statement.blocks.size() > 1 ? Do(statement.blocks[1], others) : others);
            }
            case Kind::kFor:
            case Kind::kDoWhile:
                return Loop(statement, lanes);
            case Kind::kSwitch: {
                around_.push_back({});
                Lanes end = 0;
                for (uint32_t target = 0; target < kCases; ++target) {
                    end |= Do(statement.blocks[target], Where(lanes, [&](uint32_t lane) {
                                  const uint32_t selector = (lane ^ statement.condition.value) & 3;
                                  return target == (selector == 3 ? 2 : selector % 2);
                              }));
                }
                end |= around_.back().broken;
                around_.pop_back();
                return end;
            }
            case Kind::kBreak:
                around_.back().broken |= lanes;
                return 0;
            case Kind::kContinue:
                for (size_t i = around_.size(); i-- > 0;) {
                    if (around_[i].is_loop) {
                        around_[i].continued |= lanes;
                        break;
                    }
                }
                return 0;
            case Kind::kReturn:
                function_->returned |= lanes;
                return 0;
            case Kind::kCall: {
                Function frame;
                Function* caller = function_;
                std::vector<Breakable> around;
                std::vector<uint32_t> counters;
                std::swap(around, around_);
                std::swap(counters, counters_);
                function_ = &frame;
                const Lanes end = Do(functions_[statement.id], lanes) | frame.returned;
                function_ = caller;
                std::swap(around, around_);
                std::swap(counters, counters_);
                return end;
            }
        }
        return lanes;
    }
    Lanes Loop(const Statement& statement, Lanes lanes) {
        auto stays = [&](Lanes live, uint32_t counter) {
            return Where(live, [&](uint32_t lane) {
                const uint32_t less = lane & statement.lane_bits;
                return counter < statement.trips - std::min(statement.trips, less);
            });
        };
        around_.push_back({.is_loop = true});
        counters_.push_back(0);
        Lanes end = 0;
        for (Lanes live = lanes; live != 0;) {
            if (statement.kind == Kind::kFor) {
                const Lanes in = stays(live, counters_.back());
                end |= live & ~in;
                live = in;
            }
            if (live == 0) {
                break;
            }
            around_.back().continued = 0;
            live = Do(statement.blocks[0], live) | around_.back().continued;
            end |= std::exchange(around_.back().broken, 0);
            if (statement.kind == Kind::kDoWhile) {
                // && evaluates its right side where the left holds.
                const Lanes left = stays(live, counters_.back() + 1);
                const Lanes in = Holding(statement.condition, left);
                end |= live & ~in;
                live = in;
            }
            ++counters_.back();
        }
        counters_.pop_back();
        around_.pop_back();
        return end;
    }

    std::span<const Block> functions_;
    uint32_t size_;
    std::vector<uint32_t>& records_;
    std::vector<uint32_t> counts_;
    std::vector<uint32_t> counters_;
    std::vector<Breakable> around_;
    Function* function_ = nullptr;
    uint32_t first_ = 0;
    bool overflowed_ = false;
};

}  // namespace

ReconvergenceProgram::ReconvergenceProgram(uint64_t seed) {
    Source random(seed);
    const uint32_t functions = random.Below(3);
    for (uint32_t i = 0; i < functions; ++i) {
        functions_.push_back(Maker(random, 0).MakeBlock(2));
    }
    main_ = Maker(random, functions).MakeBlock(3 + random.Below(2));
}

ReconvergenceProgram::~ReconvergenceProgram() = default;

std::string ReconvergenceProgram::Shader(const std::string& attribute) const {
    std::string text = R"(#version 460
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_ballot : require
#extension GL_EXT_maximal_reconvergence : enable
#extension GL_EXT_subgroup_uniform_control_flow : enable
layout(local_size_x = )" +
                       std::to_string(kLanes) + R"() in;
layout(set = 0, binding = 0) buffer Out { uint o[]; };
layout(set = 0, binding = 1) readonly buffer In { uint in_[]; };
uint lane;
uint me;
uint count = 0;
void record(uint id) {
    uvec4 b = subgroupBallot(true);
    o[me * )" + std::to_string(kMaxRecords) +
                       R"( + count++] = b.x + b.y * 3 + id * 0x01000193u;
}
)";
    for (size_t i = 0; i < functions_.size(); ++i) {
        text += "void f" + std::to_string(i) + "() {\n" + Text(functions_[i], 0) + "}\n";
    }
    return text + "void main() [[" + attribute + R"(]] {
    lane = gl_SubgroupInvocationID;
    me = gl_SubgroupID * gl_SubgroupSize + lane;
)" + Text(main_, 0) +
           "}\n";
}

std::vector<uint32_t> ReconvergenceProgram::Expected(uint32_t subgroup_size) const {
    std::vector<uint32_t> records(size_t{kLanes} * kMaxRecords);
    for (uint32_t first = 0; first < kLanes; first += subgroup_size) {
        Simulator simulator(functions_, subgroup_size, records);
        simulator.Run(main_, first);
        if (simulator.overflowed()) {
            return {};
        }
    }
    return records;
}

}  // namespace fornax::kernel
