// Writes an operation's fields one after the other, each with its length or an end mark.
#include "compiler/graph/ir/operation_key.h"

#include <bit>
#include <type_traits>

#include <fmt/format.h>

namespace fornax::graph {
namespace {

class KeyWriter {
  public:
    template <typename T>
    void operator()(const char* name, const T& field) {
        key_ += name;
        key_ += '=';
        Write(field);
        key_ += ';';
    }
    std::string Take() { return std::move(key_); }

  private:
    template <typename T>
        requires std::is_enum_v<T>
    void Write(T value) {
        key_ += fmt::format("{}", static_cast<int64_t>(value));
    }
    void Write(bool value) { key_ += value ? '1' : '0'; }
    void Write(int64_t value) { key_ += fmt::format("{}", value); }
    // By its bits: NaN is equal to itself, and -0 is not 0.
    void Write(double value) { key_ += fmt::format("{:x}", std::bit_cast<uint64_t>(value)); }
    void Write(const std::string& text) { key_ += fmt::format("{}:{}", text.size(), text); }
    void Write(const Expr& expr) { Write(expr.ToString()); }
    void Write(const Shape& shape) { Write(shape.ToString()); }
    void Write(const TensorType& type) { Write(type.ToString()); }
    template <typename T>
    void Write(const std::vector<T>& values) {
        key_ += fmt::format("{}[", values.size());
        for (const T& value : values) {
            Write(value);
            key_ += ',';
        }
    }
    void Write(const Attributes& attributes) {
        key_ += fmt::format("{}{{", attributes.size());
        for (const auto& [name, attribute] : attributes) {
            Write(name);
            key_ += fmt::format("{}", attribute.index());
            std::visit([&](const auto& held) { Write(held); }, attribute);
        }
    }

    std::string key_;
};

}  // namespace

std::string OperationKey(const Operation& operation) {
    KeyWriter writer;
    std::visit(
        [&](const auto& held) {
            writer("op", std::string(held.kName));
            held.Visit(writer, held);
        },
        operation);
    return writer.Take();
}

}  // namespace fornax::graph
