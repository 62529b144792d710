// LLVM's objects for the target: machines, and how a module is made for one.
#pragma once

#include <memory>

#include <llvm/IR/Module.h>
#include <llvm/Support/CodeGen.h>
#include <llvm/Target/TargetMachine.h>

#include "base/result.h"
#include "compiler/kernel/codegen/target.h"

namespace fornax::kernel {

// Thread-safe; a machine is used by one thread at a time and may be used for any number of modules.
Result<std::unique_ptr<llvm::TargetMachine>> CreateTargetMachine(const TargetInfo& target,
                                                                 llvm::CodeGenOptLevel level);

// Module flag: TargetInfo::vector_bits, so that emission can use what only some targets have: 256
// implies AVX2, FMA and F16C, 512 also AVX-512 F, VL, DQ and BW.
inline constexpr char kVectorBitsFlag[] = "fornax.vector_bits";
// Module flag: 1 where the target computes in f16 (AVX512-FP16), else 0.
inline constexpr char kNativeHalfFlag[] = "fornax.native_half";
// Module flag: 1 where the target has instructions that round a product and a sum once, else 0.
inline constexpr char kFmaFlag[] = "fornax.fma";
// Module flag: 1 where registers of vector_bits have VPDPBUSD, else 0.
inline constexpr char kVnniFlag[] = "fornax.vnni";

// Module flag: 1 where registers of 512 bits have VDPBF16PS, else 0.
inline constexpr char kBFloatDotFlag[] = "fornax.bfloat_dot";

// Module flag: 1 where the target multiplies tiles of bfloat16 and of bytes (AMX), else 0.
inline constexpr char kTilesFlag[] = "fornax.tiles";

// Module flag: 1 where code is to be made soon rather than to run fast (kBaseline), else 0.
inline constexpr char kBaselineFlag[] = "fornax.baseline";

// A module's flag; 0 if it has none of that name.
uint64_t FlagOf(const llvm::Module& module, const char* name);

// Gives an empty module its triple and data layout, so that what is emitted into it is laid out
// right.
void PrepareModule(llvm::Module& module,
                   const llvm::TargetMachine& machine,
                   const TargetInfo& target);

// Gives every function of a complete module the attributes that make the backend use the target's
// full registers and keep what kernels cannot have (unwinding, library calls) out.
void SetFunctionAttributes(llvm::Module& module, const TargetInfo& target);

}  // namespace fornax::kernel
