// Kernel templates: the hand-written kernels of shaders/, each with its footprint.
//
// A template says once which buffers its kernel sees, how many elements these have as expressions
// of its parameters, how many workgroups it takes, and what it computes, as a function on the host.
// A plan holds a template's name and the arguments for its parameters; everything else comes from
// here. So plans stay free of code, and what the rules of plans prove of buffers holds for
// templates as it does for loop kernels. In return a hand-written kernel has to stay within the
// declared elements for all arguments within their bounds, whatever its buffers hold and even if
// they share memory: it checks every index that depends on data.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "compiler/graph/ir/expr.h"
#include "compiler/graph/ir/types.h"
#include "compiler/graph/loop/emit_spirv.h"
#include "compiler/graph/loop/kernel.h"

namespace fornax::graph {

struct TemplateParameter {
    std::string_view name;
    // The values that the kernel is made for. A plan's sizes are checked against the greatest u32
    // that indices may have when they are known; anything narrower must follow from their ranges.
    int64_t low = 0;
    int64_t high = INT32_MAX;
    // A constant that the kernel is specialised for; the others are push constants.
    bool is_choice = false;
};

struct TemplateBuffer {
    std::string_view name;
    ElementType element = ElementType::kU32;
    std::vector<std::string_view> shape;  // expressions of the parameters
    bool written = false;
};

struct Template {
    // The kernel's name in shaders/. If there is one with "_plain" behind this name too, that is
    // the one for devices without arithmetic of subgroups.
    std::string_view name;
    // Push constants and specialisation constants 0, 1, ... are the parameters of either kind in
    // this order.
    std::vector<TemplateParameter> parameters;
    std::vector<TemplateBuffer> buffers;  // storage buffers 0, 1, ... of set 0
    std::string_view workgroups;          // along x
    std::string_view operations;          // an estimate for profiles
    // What the kernel does, on the host: `arguments` are by parameter, buffers have the elements
    // of their shapes, which are aligned, at least.
    void (*interpret)(std::span<const int64_t> arguments,
                      std::span<std::vector<uint8_t>> buffers) = nullptr;
};

// The most complex numbers that fourier_rows transforms: two rows of them fill the workgroup memory
// that every device has in practice, 32 KiB.
inline constexpr int64_t kMostFourierPoints = 2048;

// All templates, sorted by name.
std::span<const Template> Templates();
// Null if there is none of this name.
const Template* FindTemplate(std::string_view name);

// A template with its arguments. An immutable value.
class TemplateKernel {
  public:
    // `sizes` are the symbols of the arguments with the values that they may have. Fails with a
    // clause if there is no such template or the arguments are not for it.
    static Result<TemplateKernel> Make(std::string_view name,
                                       std::vector<Expr> arguments,
                                       const Ranges& sizes);

    const std::string& name() const { return name_; }
    const Template& of() const { return *template_; }
    std::span<const Expr> arguments() const { return arguments_; }
    std::span<const loop::Buffer> buffers() const { return buffers_; }
    // Those that the arguments use.
    const Ranges& sizes() const { return sizes_; }
    Expr operations() const { return Substituted(template_->operations); }

    // What the runtime needs beside the module: the arguments that are push constants, and the
    // specialisation constants.
    std::vector<Expr> PushConstants() const;
    std::vector<uint32_t> Choices() const;
    // The code as it was compiled when Fornax was built. kUnsupported if the target lacks what it
    // uses.
    Result<loop::Module> Module(const loop::Target& target) const;

    // As loop::Interpret(); kUnsupported if an argument is not within its parameter's bounds.
    Status Interpret(const Bindings& sizes, std::span<std::vector<uint8_t>> buffers) const;

  private:
    TemplateKernel() = default;
    Expr Substituted(std::string_view expression) const;

    std::string name_;
    const Template* template_ = nullptr;
    std::vector<Expr> arguments_;
    std::vector<loop::Buffer> buffers_;
    Ranges sizes_;
};

//     template sort_rows
//       words = 1
//       rows = 4*n
//       ...
//       size n in 1..100
//
// and the same kernel from it. Errors are sentences with the line's number.
std::string ToText(const TemplateKernel& kernel);
Result<TemplateKernel> ParseTemplateKernel(std::string_view text);

}  // namespace fornax::graph
