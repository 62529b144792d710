// Compiling through the disk cache: a model that was compiled before is not imported again.
//
// The key of a plan is a hash of the model file's bytes, of the request, of the compiler, and of
// what else the compiler said that it looked at: the files of external data, and the values of
// inputs that decide shapes. Which those are is an entry of its own, under the hash of the rest.
#pragma once

#include "base/disk_cache.h"
#include "base/result.h"
#include "runtime/compile_model.h"

namespace fornax::runtime {

// Which external files and input values plans of a model depend on.
inline constexpr CacheKind kDependenciesCacheKind = {
    .name = "graphmodel",
    .extension = "bin",
    .version = 1,
    .executable = false,
};

// The plan from the cache, or compiled and put there. What fails is not kept, nor what was made of
// a file that changed meanwhile. Plan files are read as they are. With boundaries, which plans do
// not hold, it is compiled.
Result<CompiledModel> CompileThroughCache(DiskCache& cache,
                                          const ModelCompiler& compiler,
                                          CompileRequest request);

// Whether the file begins as plan files do.
Result<bool> IsPlanFile(const ModelFile& file);

}  // namespace fornax::runtime
