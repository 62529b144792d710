// Names of error codes, for messages and test output.
#include "base/result.h"

namespace fornax {

const char* ErrorCodeName(ErrorCode code) {
    switch (code) {
        case ErrorCode::kInvalidArgument:
            return "InvalidArgument";
        case ErrorCode::kUnsupported:
            return "Unsupported";
        case ErrorCode::kNotFound:
            return "NotFound";
        case ErrorCode::kOutOfHostMemory:
            return "OutOfHostMemory";
        case ErrorCode::kOutOfDeviceMemory:
            return "OutOfDeviceMemory";
        case ErrorCode::kDeviceLost:
            return "DeviceLost";
        case ErrorCode::kTimeout:
            return "Timeout";
        case ErrorCode::kIo:
            return "Io";
        case ErrorCode::kDataLoss:
            return "DataLoss";
        case ErrorCode::kInternal:
            return "Internal";
    }
    return "Unknown";
}

}  // namespace fornax
