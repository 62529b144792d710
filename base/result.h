// Result<T>: how every layer below the Vulkan API edge reports failure.
//
// A function that can fail because of its input, a file or the device returns Result<T> (or Status
// when there is no value). An Error holds a code, which the API edge maps to a VkResult in one
// place, and a message that is a full sentence. Bugs of our own are asserts, never Errors.
#pragma once

#include <cassert>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace fornax {

enum class ErrorCode : uint8_t {
    kInvalidArgument,    // the caller or the input file broke a rule
    kUnsupported,        // valid input that Fornax does not cover
    kNotFound,           // a file, entry or name that does not exist
    kOutOfHostMemory,    // memory or another host resource ran out
    kOutOfDeviceMemory,  // the device heap or a device resource ran out
    kDeviceLost,         // the device stopped; its message says why
    kTimeout,            // a wait ended before its condition held
    kIo,                 // the operating system refused a file operation
    kDataLoss,           // stored data is damaged or of another version
    kInternal,           // a library below us failed in a way that input should not cause
};

// Returns the enumerator's name without its `k`, for messages.
const char* ErrorCodeName(ErrorCode code);

struct Error {
    ErrorCode code;
    std::string message;
};

template <typename T>
class [[nodiscard]] Result {
  public:
    Result(T value) : value_(std::in_place_index<0>, std::move(value)) {}
    Result(Error error) : value_(std::in_place_index<1>, std::move(error)) {}

    bool ok() const { return value_.index() == 0; }
    explicit operator bool() const { return ok(); }

    T& value() & { return std::get<0>(value_); }
    const T& value() const& { return std::get<0>(value_); }
    T&& value() && { return std::get<0>(std::move(value_)); }
    T& operator*() & { return value(); }
    const T& operator*() const& { return value(); }
    T* operator->() { return &value(); }
    const T* operator->() const { return &value(); }

    const Error& error() const& { return std::get<1>(value_); }
    Error&& error() && { return std::get<1>(std::move(value_)); }

  private:
    std::variant<T, Error> value_;
};

class [[nodiscard]] Status {
  public:
    Status() = default;
    Status(Error error) : error_(std::move(error)) {}

    bool ok() const { return !error_.has_value(); }
    explicit operator bool() const { return ok(); }
    const Error& error() const& { return *error_; }
    Error&& error() && { return std::move(*error_); }

  private:
    std::optional<Error> error_;
};

inline Status OkStatus() {
    return {};
}

}  // namespace fornax

#define FORNAX_CONCAT_INNER(a, b) a##b
#define FORNAX_CONCAT(a, b) FORNAX_CONCAT_INNER(a, b)

// Returns the error of `expression` (a Status or Result) from the enclosing function, if it has
// one.
#define FORNAX_RETURN_IF_ERROR(expression)           \
    do {                                             \
        auto fornax_status = (expression);           \
        if (!fornax_status.ok())                     \
            return std::move(fornax_status).error(); \
    } while (false)

// FORNAX_ASSIGN_OR_RETURN(auto x, F()): declares x from a Result, or returns its error.
#define FORNAX_ASSIGN_OR_RETURN(declaration, expression) \
    FORNAX_ASSIGN_OR_RETURN_INNER(FORNAX_CONCAT(fornax_result_, __LINE__), declaration, expression)
#define FORNAX_ASSIGN_OR_RETURN_INNER(temporary, declaration, expression) \
    auto temporary = (expression);                                        \
    if (!temporary.ok())                                                  \
        return std::move(temporary).error();                              \
    declaration = std::move(temporary).value()
