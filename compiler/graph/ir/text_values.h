// Reads the values in a graph's text: fields of operations, types, attributes and constants.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "compiler/graph/ir/operation.h"
#include "compiler/graph/ir/text_reader.h"
#include "compiler/graph/ir/types.h"

namespace fornax::graph {

class ValueReader {
  public:
    // The reader must outlive this.
    explicit ValueReader(TextReader& in) : in_(in) {}

    // An operation with its fields' defaults.
    static std::optional<Operation> OperationByName(std::string_view name);
    // "{field = value, ...}".
    Status Fields(Operation& operation);
    // A constant's type and elements. Its memory follows the text's length, but for filled ones,
    // which have a limit (kMaxFilledBytes).
    Result<Tensor> Constant();

    Status Value(std::string& value);
    Status Value(bool& value);
    Status Value(int64_t& value);
    Status Value(double& value);
    Status Value(Expr& value);
    Status Value(ElementType& value);
    Status Value(ScalarFunction& value);
    Status Value(Combine& value);
    Status Value(Overflow& value);
    Status Value(Rounding& value);
    Status Value(Shape& value);
    Status Value(TensorType& value);
    Status Value(Attribute& value);
    Status Value(Attributes& value);
    template <typename T>
    Status Value(std::vector<T>& values) {
        FORNAX_RETURN_IF_ERROR(in_.Expect("["));
        values.clear();
        if (in_.Accept("]")) {
            return OkStatus();
        }
        do {
            T value{};
            FORNAX_RETURN_IF_ERROR(Value(value));
            values.push_back(std::move(value));
        } while (in_.Accept(","));
        return in_.Expect("]");
    }

  private:
    template <typename T>
    Status NamedValue(T& value, std::optional<T> (*by_name)(std::string_view), const char* what);
    template <typename T>
    Status ListValue(Attribute& value);
    Status Element(ElementType type, uint8_t* data);
    Status Strings(std::vector<std::string>& strings);
    Status Hexadecimal(std::vector<uint8_t>& data);
    Status Filled(ElementType type, uint64_t count, std::vector<uint8_t>& data);
    Status Listed(ElementType type, std::vector<uint8_t>& data);

    TextReader& in_;
    size_t filled_bytes_ = 0;
};

}  // namespace fornax::graph
