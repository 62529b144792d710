// SPIR-V types, with what translation asks of them: how many scalars they flatten to, and how they
// lie in memory.
#pragma once

#include <unordered_map>
#include <vector>

#include "compiler/kernel/ir/kernel.h"
#include "compiler/kernel/spirv/module.h"

namespace fornax::kernel::spirv {

// How a type lies in memory: explicit layout (decorations) where there is one, else natural
// packing.
struct MemoryLayout {
    uint64_t size = 0;
    uint64_t align = 1;
};

struct Type {
    enum class Kind : uint8_t {
        kVoid,
        kScalar,
        kVector,
        kMatrix,
        kArray,
        kRuntimeArray,
        kStruct,
        kPointer,
        kFunction,
        kCooperativeMatrix,  // what an invocation has of one
        kOther,
    };
    Kind kind = Kind::kOther;
    ir::Type scalar = ir::Type::kVoid;  // kScalar
    bool is_signed = false;             // integers
    bool is_bfloat16 = false;           // kScalar: the bits of one, in an i16
    uint32_t id = 0;
    uint32_t use = 0;               // kCooperativeMatrix: spv::CooperativeMatrixUse
    uint32_t element = 0;           // vector, matrix (column), arrays, pointer: type id
    uint32_t count = 0;             // elements, columns
    std::vector<uint32_t> members;  // kStruct
    spv::StorageClass storage = spv::StorageClass::Max;  // kPointer
    uint64_t scalars = 0;  // flattened; 0 for what is no value, and for `empty`
    bool empty = false;    // a structure without members, or of such, or an array of such: a value
    uint32_t leaves = 0;   // private arrays that a variable of the type needs
    uint32_t depth = 0;    // of nesting
    MemoryLayout layout;
    uint64_t stride = 0;            // arrays: bytes from element to element
    std::vector<uint64_t> offsets;  // kStruct: of the members
    // kPointer: what a pointer of the storage class is as a value; empty if it never is one. A
    // device address is an i64. A pointer to a buffer is the i64 address and i64 size of what the
    // descriptor says, and the offset in it (TypeTable::buffer_offset); one to workgroup memory is
    // an i32 offset with the top bit set, so that null differs from all.
    std::vector<ir::Type> pointer_scalars;
};

class TypeTable {
  public:
    // `wide_indexing`: offsets in buffers have 64 bits.
    TypeTable(const Module& module, bool wide_indexing, uint32_t subgroup_size)
        : module_(module),
          buffer_offset_(wide_indexing ? ir::Type::kI64 : ir::Type::kI32),
          subgroup_size_(subgroup_size) {}

    // The type of offsets in buffers.
    ir::Type buffer_offset() const { return buffer_offset_; }

    // Enters a type declaration. `number_of` resolves an id that it names: an array's length, a
    // vector's number of components.
    template <typename NumberOf>
    Status Add(const Inst& inst, NumberOf&& number_of) {
        if (inst.op == spv::Op::OpTypeCooperativeMatrixKHR) {
            MatrixNumbers numbers;
            FORNAX_ASSIGN_OR_RETURN(numbers.scope, number_of(inst, inst[1]));
            FORNAX_ASSIGN_OR_RETURN(numbers.rows, number_of(inst, inst[2]));
            FORNAX_ASSIGN_OR_RETURN(numbers.columns, number_of(inst, inst[3]));
            FORNAX_ASSIGN_OR_RETURN(numbers.use, number_of(inst, inst[4]));
            return AddCooperativeMatrix(inst, numbers);
        }
        uint64_t length = 0;
        if (inst.op == spv::Op::OpTypeArray || inst.op == spv::Op::OpTypeVectorIdEXT) {
            FORNAX_ASSIGN_OR_RETURN(length, number_of(inst, inst[1]));
        }
        return AddWithLength(inst, length);
    }

    const Type* Find(uint32_t id) const {
        auto it = types_.find(id);
        return it == types_.end() ? nullptr : &it->second;
    }
    // The id is known to name a type.
    const Type& Get(uint32_t id) const { return types_.at(id); }

    // The scalar type of a scalar or vector or matrix.
    ir::Type ScalarOf(const Type& type) const;
    bool SignedOf(const Type& type) const;
    bool IsBFloat16(const Type& type) const;  // or a vector of them
    // The type of each flattened scalar, appended in order.
    void Flatten(const Type& type, std::vector<ir::Type>& out) const;

    // A pointer type that is declared later; it holds a device address.
    Status AddForward(const Inst& inst);

  private:
    void MakePointer(Type& type) const;
    Status AddWithLength(const Inst& inst, uint64_t length);
    struct MatrixNumbers {
        uint64_t scope = 0, rows = 0, columns = 0, use = 0;
    };
    Status AddCooperativeMatrix(const Inst& inst, const MatrixNumbers& numbers);
    void LayOut(Type& type) const;

    const Module& module_;
    const ir::Type buffer_offset_;
    const uint32_t subgroup_size_;
    std::unordered_map<uint32_t, Type> types_;
};

}  // namespace fornax::kernel::spirv
