// How the lanes' values probably differ where patterns do not follow them, and what has to hold for
// that.
//
// The rules of lane_rules.h say both for each operation; what they need becomes assumptions about
// what its operands share. The emitter tests the assumptions of an access once, before it
// (codegen/assumption_check.h).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "compiler/kernel/analysis/lane_form.h"
#include "compiler/kernel/analysis/lane_patterns.h"
#include "compiler/kernel/ir/kernel.h"

namespace fornax::kernel {

// What has to hold of the bases and strides of values.
struct Assumption {
    enum class Kind : uint8_t {
        kAtMost,        // base + the last row's multiple of the stride <= number
        kRoom,          // base % size + number < size
        kRoomBelow,     // base % the other's base + number < the other's base
        kMultiple,      // stride % size == 0
        kIsOne,         // base == 1
        kNoCommonBits,  // (base | the other's base) & number == 0
    };

    Kind kind = Kind::kIsOne;
    ir::ValueId value;
    ir::ValueId other = {};
    uint64_t size = 0;
    uint64_t number = 0;
};

struct Speculation {
    // How the base follows from the bases of the operands, if the assumptions hold.
    enum class Base : uint8_t {
        kHeld,         // it is held in a scalar register
        kFirstLanes,   // the operation on what the operands' first lanes have
        kOperation,    // the operation on the bases, unsigned; on the strides likewise
        kOperand,      // that of `operand`
        kFromOwnLanes  // no rule is known: the lanes' own values have to be compared
    };

    LaneForm lanes;
    Base base = Base::kFromOwnLanes;
    ir::ValueId operand;
    std::vector<Assumption> assumptions;
};

// Uniform values are probably multiples of what they are shifted and divided by, and so are the
// strides of rows; a division by a value that is known at run time only gives all lanes one
// quotient; what is multiplied by such a value is multiplied by 1; what becomes a float comes back
// as it was.
class LaneSpeculation {
  public:
    LaneSpeculation(const ir::Kernel& kernel, const LaneAnalysis& patterns)
        : kernel_(kernel),
          patterns_(patterns),
          same_{.offsets = std::vector<int64_t>(patterns.lanes(), 0)} {}

    // Null if nothing is probable, because the value depends on what lanes have loaded. Valid as
    // long as this object.
    const Speculation* Of(ir::ValueId value);
    bool IsSame(ir::ValueId value);

    // "0..31; if %5 % 8 + 7 < 8": the lanes' offsets and all that is assumed for them.
    std::string Text(ir::ValueId value);

  private:
    using Found = std::optional<Speculation>;

    Found Find(ir::ValueId value);
    Found OfRows(const LanePattern& pattern);
    Found OfVarying(ir::ValueId value);
    Found OfAny(const std::vector<ir::ValueId>& values);
    std::vector<ir::ValueId> SourcesOf(ir::ValueId id) const;
    void CollectText(ir::ValueId value,
                     std::set<uint32_t>& seen,
                     std::vector<std::string>& conditions);

    const ir::Kernel& kernel_;
    const LaneAnalysis& patterns_;
    const LaneForm same_;
    std::map<uint32_t, Found> known_;  // by value
    uint32_t looked_into_ = 0;
};

}  // namespace fornax::kernel
