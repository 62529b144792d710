// Random SPIR-V compute modules for differential tests: the same seed gives the same module again,
// and every correct implementation gives the same bytes for it.
//
// Interface of a module, all in set 0:
//   binding 0   storage buffer, only read: kInputBytes of any bits
//   binding 1   storage buffer: kOwnBytes for each invocation, by its linear index over all
//               workgroups; from kPlaneOffset on one element of at most kPlaneBytes for each; the
//               last kCounters words are counted by all with atomics
//   binding 2   uniform buffer of kUniformBytes, and kPushBytes of push constants: not if portable.
//               The last kAddressBytes of these are the device addresses of the input and the
//               output, if the module takes them.
//   binding 3   kArrayBuffers storage buffers of kArrayBufferBytes, only read
//   binding 4   storage image with kOwnTexels rows and a column for each invocation
//   binding 5   square storage image, only read
// Workgroups have at most kMaxInvocations invocations, the grid at most kMaxWorkgroups of them.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "compiler/kernel/interface/compile_request.h"
#include "hal/image_abi.h"

namespace fornax::kernel::fuzz {

inline constexpr uint32_t kInputBytes = 16384;
inline constexpr uint32_t kOutputBytes = 32768;
inline constexpr uint32_t kUniformBytes = 1024;
inline constexpr uint32_t kPushBytes = 128;
inline constexpr uint32_t kOwnBytes = 64;
inline constexpr uint32_t kCounters = 8;
inline constexpr uint32_t kAddressBytes = 16;
inline constexpr uint32_t kArrayBuffers = 4;
inline constexpr uint32_t kArrayBufferBytes = 256;
inline constexpr uint32_t kBufferArrayBinding = 3;
inline constexpr uint32_t kOwnImageBinding = 4;
inline constexpr uint32_t kInputImageBinding = 5;
inline constexpr uint32_t kOwnTexels = 2;
inline constexpr uint32_t kInputImageSide = 8;
inline constexpr uint32_t kMaxInvocations = 64;
inline constexpr uint32_t kMaxWorkgroups = 6;
inline constexpr uint32_t kPlaneOffset = kOwnBytes * kMaxInvocations * kMaxWorkgroups;
inline constexpr uint32_t kPlaneBytes = 16;
static_assert(kPlaneOffset + kPlaneBytes * kMaxInvocations * kMaxWorkgroups + 4 * kCounters <=
              kOutputBytes);

struct RandomModuleOptions {
    // Only what implementations with other rounding (contraction, denormals) agree on too, and only
    // bindings 0 and 1: floats take values on which arithmetic is exact.
    bool portable = false;
    // Reads may go outside of the buffers, writes far outside.
    bool robust = false;
    bool subgroups = false;  // operations between lanes, not if portable
    bool wide = false;       // bindings from 3 on, device addresses and more, not if portable
    uint32_t subgroup_size = 32;
    // Statements that are left out, by their numbers in RandomModule::statements.
    std::set<uint64_t> dropped;
};

struct RandomModule {
    std::vector<uint32_t> words;
    std::vector<SpecializationValue> specialization;
    uint32_t invocations = 1;    // of a workgroup
    bool addressed = false;      // takes device addresses
    bool wide_indexing = false;  // of the pipeline, not a mode of the module
    hal::TexelFormat own_texel;
    hal::TexelFormat input_texel;
    std::vector<uint64_t> statements;  // each before those inside of it
};

RandomModule MakeRandomModule(uint64_t seed, const RandomModuleOptions& options);

// The request to compile it.
CompileRequest MakeRequest(const RandomModule& module, const RandomModuleOptions& options);

}  // namespace fornax::kernel::fuzz
