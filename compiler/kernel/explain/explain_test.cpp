// What the compiler says of its decisions, for shaders whose decisions are known.
#include "compiler/kernel/explain/explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/kernel/backend/backend.h"
#include "compiler/kernel/codegen/target.h"
#include "compiler/kernel/spirv/shader_harness.h"

namespace fornax::kernel {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

KernelExplanation Explain(const std::string& glsl,
                          bool robust = false,
                          bool wide_indexing = false) {
    const Words module = CompileGlsl(glsl, "-g");
    CompileRequest request = MakeRequest(module);
    request.options.robust_buffer_access = robust;
    request.options.wide_indexing = wide_indexing;
    Result<TargetInfo> target = DetectTarget("");
    EXPECT_TRUE(target.ok());
    Result<KernelExplanation> explanation = MakeKernelBackend()->Explain(request, *target);
    EXPECT_TRUE(explanation.ok()) << explanation.error().message;
    return explanation.ok() ? *explanation : KernelExplanation();
}

std::string Wide(const std::string& body, const std::string& declarations = "") {
    return "#version 460\nlayout(local_size_x = 64) in;\n"
           "layout(set = 0, binding = 0) buffer Out { uint o[]; };\n"
           "layout(set = 0, binding = 1) buffer In { uint s[]; };\n" +
           declarations + "\nvoid main() {\n    uint i = gl_GlobalInvocationID.x;\n" + body +
           "\n}\n";
}

// The only access to a binding or kind of memory.
const AccessRecord& AccessTo(const KernelExplanation& explanation,
                             const std::string& memory,
                             const std::string& operation) {
    const AccessRecord* found = nullptr;
    for (const AccessRecord& access : explanation.accesses) {
        if (access.memory == memory && access.operation == operation) {
            EXPECT_EQ(found, nullptr) << "a second " << operation << " to " << memory;
            found = &access;
        }
    }
    static const AccessRecord none;
    EXPECT_NE(found, nullptr) << "no " << operation << " to " << memory;
    return found ? *found : none;
}

TEST(Explain, ContiguousAndBroadcastAndGather) {
    const KernelExplanation e = Explain(Wide("    o[i] = s[i] + s[3] + s[s[i] & 255u];"));
    EXPECT_EQ(e.name, "main");
    EXPECT_EQ(e.workgroup_size[0], 64u);
    EXPECT_GT(e.lanes, 0u);
    EXPECT_EQ(e.lanes * e.vectors, 64u);
    EXPECT_GT(e.code_bytes, 0u);
    EXPECT_GT(e.llvm_instructions, 0u);
    const AccessRecord& store = AccessTo(e, "set 0 binding 0", "store_buffer");
    EXPECT_EQ(store.form, AccessForm::kContiguous);
    EXPECT_EQ(store.check, AccessCheck::kNone);
    EXPECT_EQ(store.place.instruction, "OpStore");
    EXPECT_THAT(store.place.source, HasSubstr(":8"));
    EXPECT_THAT(store.pattern, HasSubstr("lane * 4"));
    EXPECT_EQ(store.type, "i32");
    EXPECT_FALSE(store.masked);
    int scalar = 0;
    int contiguous = 0;
    int gather = 0;
    for (const AccessRecord& access : e.accesses) {
        scalar += access.form == AccessForm::kScalar && access.memory == "set 0 binding 1";
        contiguous += access.form == AccessForm::kContiguous && access.operation == "load_buffer";
        gather += access.form == AccessForm::kGather;
        if (access.form == AccessForm::kGather) {
            EXPECT_EQ(access.pattern, "varying");
        }
        if (access.form == AccessForm::kScalar) {
            EXPECT_THAT(access.pattern, StartsWith("uniform"));
        }
    }
    EXPECT_EQ(scalar, 1);
    EXPECT_GE(contiguous, 1);
    EXPECT_EQ(gather, 1);
}

TEST(Explain, RunsAtIrregularPlacesAreMovedWhole) {
    const KernelExplanation e =
        Explain(Wide("    uint at = 4u * s[i];\n"
                     "    o[i] = s[at] + s[at + 1u] + s[at + 2u] + s[at + 3u];"));
    int rows = 0;
    for (const AccessRecord& access : e.accesses) {
        EXPECT_NE(access.form, AccessForm::kGather) << access.type;
        rows += access.form == AccessForm::kLaneRows && access.type == "i32 x4";
    }
    EXPECT_EQ(rows, 1);
}

TEST(Explain, RobustAccessesAreTested) {
    const KernelExplanation e = Explain(Wide("    o[i] = i;"), /*robust=*/true);
    EXPECT_EQ(AccessTo(e, "set 0 binding 0", "store_buffer").check, AccessCheck::kSpan);
}

// Blocks of nine words, found by a sum whose low bits nobody knows.
TEST(Explain, SpeculationsSayWhatTheyAssume) {
    const KernelExplanation e =
        Explain(Wide("    uint at = i + first;\n    o[i] = s[(at >> 3) * 9u + (at & 7u)];",
                     "layout(push_constant) uniform Push { uint first; };"));
    const AccessRecord& load = AccessTo(e, "set 0 binding 1", "load_buffer");
    EXPECT_EQ(load.form, AccessForm::kSpeculated);
    EXPECT_THAT(load.plan, HasSubstr("x 4 bytes at 0"));
    EXPECT_THAT(load.assumptions, StartsWith("0..28/4 36..64/4"));
    EXPECT_THAT(load.assumptions, HasSubstr("% 8 + 7 < 8"));
    EXPECT_EQ(AccessTo(e, "set 0 binding 0", "store_buffer").assumptions, "");
}

// The forms of accesses do not depend on the width of offsets.
TEST(Explain, WideIndicesHaveTheSameForms) {
    const std::string glsl = Wide(R"(
    uint x = gl_LocalInvocationIndex & 7u, y = gl_LocalInvocationIndex >> 3;
    uint own = s[i], run = s[4u * i] + s[4u * i + 1u] + s[4u * i + 2u] + s[4u * i + 3u];
    uint row = s[y * width + x], one = s[width], any = s[own];
    o[i] = own + run + row + one + any;)",
                                  "layout(push_constant) uniform Push { uint width; };");
    for (const bool robust : {false, true}) {
        const KernelExplanation narrow = Explain(glsl, robust);
        const KernelExplanation wide = Explain(glsl, robust, /*wide_indexing=*/true);
        ASSERT_EQ(narrow.accesses.size(), wide.accesses.size());
        for (size_t i = 0; i < narrow.accesses.size(); ++i) {
            EXPECT_EQ(narrow.accesses[i].form, wide.accesses[i].form) << i;
            EXPECT_EQ(narrow.accesses[i].check, wide.accesses[i].check) << i;
        }
        EXPECT_EQ(AccessTo(wide, "set 0 binding 0", "store_buffer").form, AccessForm::kContiguous);
    }
}

TEST(Explain, LoopsAndMasks) {
    const KernelExplanation e = Explain(Wide(
        "    uint r = 0u; for (uint k = 0u; k < s[i]; ++k) { if (k == i) continue; r += s[k]; }"
        " o[i] = r;"));
    ASSERT_FALSE(e.constructs.empty());
    EXPECT_EQ(e.constructs[0].kind, "loop");
    EXPECT_TRUE(e.constructs[0].divergent);
    EXPECT_FALSE(e.constructs[0].workgroup);
    bool inside = false;
    for (const AccessRecord& access : e.accesses) {
        inside |= access.loop == 1 && access.depth == 1 && access.masked;
    }
    EXPECT_TRUE(inside);
}

TEST(Explain, BarriersMakeRegionsAndKeepValues) {
    const KernelExplanation e = Explain(
        Wide("    uint l = gl_LocalInvocationIndex; uint own = s[i]; tile[l] = own * 3u; barrier();"
             " o[i] = tile[63u - l] + own;",
             "shared uint tile[64];"));
    EXPECT_EQ(e.regions.size(), 2u);
    EXPECT_EQ(e.shared_bytes, 256u);
    EXPECT_EQ(AccessTo(e, "workgroup", "store_shared").region, 0u);
    const AccessRecord& load = AccessTo(e, "workgroup", "load_shared");
    EXPECT_EQ(load.region, 1u);
    EXPECT_EQ(load.form, AccessForm::kRuns);
    EXPECT_THAT(load.check, testing::AnyOf(AccessCheck::kProven, AccessCheck::kClamped));
    bool own_is_kept = false;
    for (const KeptRecord& kept : e.kept) {
        own_is_kept |= kept.operation == "load_buffer" && kept.storage == "memory of each vector";
    }
    EXPECT_TRUE(own_is_kept);
}

TEST(Explain, AtomicsAreReducedWhereTheyCan) {
    const KernelExplanation e =
        Explain(Wide("    atomicAdd(o[0], s[i]); o[i + 1u] = atomicAdd(s[s[i]], 1u);"));
    bool reduced = false;
    bool lanes = false;
    for (const AccessRecord& access : e.accesses) {
        reduced |= access.form == AccessForm::kReduced && access.memory == "set 0 binding 0";
        lanes |= access.form == AccessForm::kLaneLoop && access.memory == "set 0 binding 1";
        EXPECT_NE(access.form, AccessForm::kUnknown) << access.operation;
    }
    EXPECT_TRUE(reduced);
    EXPECT_TRUE(lanes);
}

TEST(Explain, StagesAreTimed) {
    const KernelExplanation e = Explain(Wide("    o[i] = i;"));
    std::vector<std::string> stages;
    for (const StageTime& time : e.times) {
        stages.push_back(time.stage);
        EXPECT_GE(time.milliseconds, 0);
    }
    EXPECT_THAT(stages, testing::ElementsAre("reader", "passes", "emission", "LLVM passes",
                                             "code generation"));
}

}  // namespace
}  // namespace fornax::kernel
