#include "compiler/kernel/explain/explain.h"

namespace fornax::kernel {

const char* AccessFormName(AccessForm form) {
    switch (form) {
        case AccessForm::kUnknown:
            break;
        case AccessForm::kScalar:
            return "scalar";
        case AccessForm::kOneLane:
            return "one lane";
        case AccessForm::kContiguous:
            return "contiguous";
        case AccessForm::kRuns:
            return "runs + shuffle";
        case AccessForm::kRow:
            return "row";
        case AccessForm::kStrided:
            return "strided";
        case AccessForm::kSpeculated:
            return "speculated";
        case AccessForm::kReduced:
            return "reduced";
        case AccessForm::kGather:
            return "gather";
        case AccessForm::kLaneRows:
            return "lane rows";
        case AccessForm::kLaneLoop:
            return "lane loop";
    }
    return "?";
}

const char* AccessCheckName(AccessCheck check) {
    switch (check) {
        case AccessCheck::kNone:
            return "none";
        case AccessCheck::kProven:
            return "proven";
        case AccessCheck::kSpan:
            return "span";
        case AccessCheck::kLanes:
            return "lanes";
        case AccessCheck::kScalar:
            return "scalar";
        case AccessCheck::kClamped:
            return "clamped";
    }
    return "?";
}

}  // namespace fornax::kernel
