// The translation of one entry point: what all of its parts share, and the base that each part has.
//
//   translation.h       the kernel that is made and the point in it, locals, arithmetic
//   place_code.h        where pointers lead: offsets, slots, parts
//   invocation_code.h   built-in inputs, sets of lanes
//   heaps.h             descriptor heaps
//   place_access.h      loads and stores of places, pointers as tuples
//   values.h            values and their scopes
//   variables.h         variables
//   large_values.h      values that are kept in memory
//   execution_modes.h   the workgroup's size, what float arithmetic may do
//
// and, each for instructions of a kind,
//
//   pointers.h, memory.h, atomics.h  access chains; loads, stores, copies; atomics
//   composites.h, arithmetic.h       tuples; everything that works component by component
//   glsl_std_450.h, debug_printf.h   extended instructions
//   extensions.h                     small extensions of SPIR-V
//   subgroups.h, derivatives.h       operations between invocations
//   cooperative_matrix.h             matrices that a subgroup holds together
//   images.h, sampled_images.h       images, samplers, texel buffers; instructions that sample
//   control_flow.h                   blocks, structured constructs, phis, calls
//   translator.h                     the entry point, the table of opcodes
#pragma once

#include <array>
#include <initializer_list>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "compiler/kernel/ir/builder.h"
#include "compiler/kernel/spirv/constants.h"
#include "compiler/kernel/spirv/float_modes.h"
#include "compiler/kernel/spirv/pointer.h"

namespace fornax::kernel::spirv {

// A call of a function.
struct Frame {
    const Function* function = nullptr;
    std::unordered_map<uint32_t, Value> values;
    // Earlier translations of values whose block was translated more than once.
    std::unordered_map<uint32_t, std::vector<Value>> older;
    // Values that were given a spill slot to be used outside their scope: locals by id, in the
    // order of VisitIds.
    std::unordered_map<uint32_t, std::vector<uint32_t>> spill_slots;
    std::unordered_map<uint32_t, std::vector<uint32_t>> phi_locals;
    std::unordered_set<uint32_t> translated;  // labels of blocks
    std::vector<uint32_t> path;               // labels that lead to the block being translated
    std::unordered_set<uint32_t> on_path;
    ir::InstId return_scope;  // invalid in the entry point
    std::vector<uint32_t> return_locals;
    std::optional<Pointer> return_place;       // of a large value
    std::map<uint32_t, Pointer> large_places;  // by the result's id
};

enum class DerivativeGroup : uint8_t { kNone, kQuads, kLinear };

struct Translation {
    Translation(const Module& the_module,
                const TypeTable& the_types,
                const ConstantTable& the_constants,
                const CompileRequest& the_request)
        : module(the_module),
          types(the_types),
          constants(the_constants),
          request(the_request),
          builder(kernel, {}),
          modes(builder) {}
    Translation(const Translation&) = delete;
    Translation& operator=(const Translation&) = delete;

    // --- what is translated, to what ---
    const Module& module;
    const TypeTable& types;
    const ConstantTable& constants;
    const CompileRequest& request;
    ir::Kernel kernel;
    ir::Builder builder;  // at the current point
    FloatModes modes;
    std::array<uint32_t, 3> workgroup_size = {1, 1, 1};  // as the shader sees it
    DerivativeGroup derivative_group = DerivativeGroup::kNone;
    std::map<ir::Type, uint32_t> fast_math_defaults;  // FPFastMathDefault
    bool sees_quads = false;
    bool sees_subgroups = false;  // beyond quads: how many lanes there are, and who they are
    std::unordered_map<uint32_t, Value> globals;
    std::vector<LocalVariable> variables;
    std::vector<ir::BlockId> outer;  // by IR block: the block around it
    uint64_t spent_scalars = 0;

    // --- the current point ---
    bool in_modes = false;   // the instruction that is translated is one that the modes are for
    Frame* frame = nullptr;  // of the function; null outside of all
    std::vector<uint32_t> call_stack;  // ids of functions
};

// A part of the translator: shorthand for what all of them do.
class TranslationPart {
  public:
    TranslationPart(const TranslationPart&) = delete;
    TranslationPart& operator=(const TranslationPart&) = delete;

  protected:
    explicit TranslationPart(Translation& code) : code_(code) {}
    ~TranslationPart() = default;

    // Shorthand for emission.
    ir::ValueId Emit(ir::Op op,
                     ir::Type type,
                     std::initializer_list<ir::ValueId> operands,
                     uint8_t flags = 0,
                     uint64_t imm = 0) {
        return EmitSpan(op, type, {operands.begin(), operands.size()}, flags, imm);
    }
    ir::ValueId EmitSpan(ir::Op op,
                         ir::Type type,
                         std::span<const ir::ValueId> operands,
                         uint8_t flags = 0,
                         uint64_t imm = 0);
    ir::ValueId Int(uint32_t value) { return builder_.ConstI32(value); }
    ir::ValueId Float(ir::Type type, double value);
    ir::ValueId ToI32(ir::ValueId value, bool is_signed);
    ir::ValueId FromBFloat16(ir::ValueId bits);  // i16 to f32
    ir::ValueId ToBFloat16(ir::ValueId value);   // f32 to i16
    ir::ValueId BoolNot(ir::ValueId value);
    ir::ValueId DotOf(std::span<const ir::ValueId> a,
                      std::span<const ir::ValueId> b,
                      uint8_t flags);
    ir::ValueId SelectComponent(std::span<const ir::ValueId> components, ir::ValueId index);
    Result<const Type*> TypeOf(const Inst& user, uint32_t type_id);
    Status CheckComposite(const Inst& inst, const Type& type);
    Status Spend(const Inst& inst, uint64_t scalars);
    ir::BlockId NewChild(ir::InstId parent);
    bool InScope(ir::BlockId block) const;
    uint32_t NewLocal(ir::Type type, uint32_t count = 1);
    void StoreLocal(uint32_t local, ir::ValueId value);
    ir::ValueId LoadLocal(uint32_t local);
    Tuple Materialize(const Constant& constant);
    uint8_t FloatFlags(uint32_t id) const;
    bool KeepsZeroSigns(uint32_t id, ir::Type scalar) const;

    Translation& code_;
    const Module& module_ = code_.module;
    const TypeTable& types_ = code_.types;
    const ConstantTable& constants_ = code_.constants;
    const CompileRequest& request_ = code_.request;
    ir::Kernel& kernel_ = code_.kernel;
    ir::Builder& builder_ = code_.builder;
    FloatModes& modes_ = code_.modes;
};

}  // namespace fornax::kernel::spirv
