// Plans as bytes: what a compiled model is on disk, and what the plan cache holds.
//
// A file is a header (magic, version, sizes, checksum), a FlatBuffer of plan.fbs, and the weights,
// each once however many blocks have it, at multiples of kTensorAlignment from the beginning of a
// page on. It holds no code: kernels are text, from which SPIR-V is made again on loading. The same
// plan gives the same bytes.
//
// The promise: Fornax reads the files of every format version from kOldestPlanFormatVersion to its
// own, and they compute what they did. For that, fields, enumerators and forms of text are only
// ever added, and a file of each version is kept as a test. Files of newer versions are refused
// with a message that says so. A file never depends on the compiler that made it: what changes how
// graphs are compiled changes the keys of the cache (graph_hash.h), not the format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/result.h"
#include "compiler/graph/plan/plan.h"

namespace fornax::graph {

// Version 1 was that of the first graph compiler, with another meaning.
inline constexpr uint32_t kPlanFormatVersion = 2;
inline constexpr uint32_t kOldestPlanFormatVersion = 2;

// Whether the weights' checksums are verified, which reads them all. Not needed where whoever gave
// the bytes has verified them.
enum class WeightCheck : uint8_t { kVerify, kTrust };

// The file of a plan that passes ValidatePlan(). Fails for a structure beyond FlatBuffers' limit of
// 2 GiB; weights have none. Weights of `elsewhere_bytes` or more are left out: the file names them
// by HashBytes() of their bytes.
Result<std::vector<std::byte>> SerializePlan(const Plan& plan,
                                             uint64_t elsewhere_bytes = UINT64_MAX);

// The bytes of weights that files leave out; null where there are none under the digest. Whoever
// gives them has verified them.
using WeightSource = std::function<Bytes(const Hash128& digest)>;

// Reads untrusted bytes. Weights stay where they are: the plan's blocks keep `file` alive, which
// must not change, and are aligned if its beginning is. Fails with kDataLoss and a sentence
// when the file is not whole and undamaged, kUnsupported when it is of another version, or as
// ValidatePlan() does, which every plan passes that is returned; kNotFound where `elsewhere` does
// not have a weight.
Result<Plan> ParsePlan(const Bytes& file,
                       WeightCheck check = WeightCheck::kVerify,
                       const WeightSource& elsewhere = {});
// The same for a copy of the bytes.
Result<Plan> ParsePlan(std::span<const std::byte> file);

// The plan in a file, mapped into memory: weights share the system's pages, and are read when they
// are first used if their checksums are not wanted. Overwriting the file in place while a copy of
// the plan lives changes weights, and shortening it kills the process; replacing it is fine.
Result<Plan> ReadPlanFile(const std::string& path, WeightCheck check = WeightCheck::kVerify);

// Whether the bytes begin as a plan's file does, of any version.
bool LooksLikePlan(std::span<const std::byte> bytes);

}  // namespace fornax::graph
