// Control flow through the reader: each shader runs as glslang makes it and as spirv-opt reshapes
// it.
#include <gtest/gtest.h>

#include <functional>

#include "compiler/kernel/ir/text.h"
#include "compiler/kernel/spirv/reader.h"
#include "compiler/kernel/spirv/shader_harness.h"

namespace fornax::kernel {
namespace {

using Expected = std::function<uint32_t(uint32_t)>;

void Check(const Words& module, const Expected& expected) {
    for (const Variant& variant : Variants(module)) {
        SCOPED_TRACE(variant.name);
        Result<ir::Kernel> kernel = ReadSpirv(MakeRequest(variant.module));
        ASSERT_TRUE(kernel.ok()) << kernel.error().message;
        ShaderData data;
        data.output.assign(16, 0xdeadbeef);
        data.storage = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3};
        Status status = RunShader(*kernel, data);
        ASSERT_TRUE(status.ok()) << status.error().message << "\n" << ir::PrintKernel(*kernel);
        for (uint32_t i = 0; i < 16; ++i) {
            ASSERT_EQ(data.output[i], expected(i)) << "invocation " << i << "\n"
                                                   << ir::PrintKernel(*kernel);
        }
    }
}

void Check(std::string_view body, const Expected& expected, std::string_view declarations = "") {
    Check(CompileGlsl(Shader(body, declarations)), expected);
}

TEST(ReaderControlFlow, LoopWithBreakAndContinue) {
    Check(R"(
        uint sum = 0;
        for (uint k = 0; k < 20; ++k) {
            if ((k + i) % 3 == 0) continue;
            if (k > i + 4) break;
            sum += k * 10 + i;
        }
        o[i] = sum;)",
          [](uint32_t i) {
              uint32_t sum = 0;
              for (uint32_t k = 0; k < 20; ++k) {
                  if ((k + i) % 3 == 0) {
                      continue;
                  }
                  if (k > i + 4) {
                      break;
                  }
                  sum += k * 10 + i;
              }
              return sum;
          });
}

TEST(ReaderControlFlow, DoWhileWithConditionalBackEdge) {
    Check(R"(
        uint a = i + 1, n = 0;
        do {
            if (a == 7) { n += 100; break; }
            a = (a & 1) != 0 ? 3 * a + 1 : a / 2;
            ++n;
        } while (a > 1 && n < 30);
        o[i] = n * 1000 + a;)",
          [](uint32_t i) {
              uint32_t a = i + 1, n = 0;
              do {
                  if (a == 7) {
                      n += 100;
                      break;
                  }
                  a = (a & 1) != 0 ? 3 * a + 1 : a / 2;
                  ++n;
              } while (a > 1 && n < 30);
              return n * 1000 + a;
          });
}

TEST(ReaderControlFlow, SwapInALoopIsAParallelCopy) {
    Check(R"(
        uint a = i, b = 100 + i;
        for (uint k = 0; k < i % 5; ++k) { uint t = a; a = b; b = t; }
        o[i] = a * 1000 + b;)",
          [](uint32_t i) {
              uint32_t a = i, b = 100 + i;
              if (i % 5 % 2) {
                  std::swap(a, b);
              }
              return a * 1000 + b;
          });
}

TEST(ReaderControlFlow, NestedLoopsLeftFromInside) {
    Check(R"(
        uint found = 999;
        for (uint y = 0; y < 6; ++y) {
            bool stop = false;
            for (uint x = 0; ; ++x) {
                if (x == 6) break;
                if (x == y) continue;
                if (x * y == i) { found = x * 10 + y; stop = true; break; }
            }
            if (stop) break;
        }
        o[i] = found;)",
          [](uint32_t i) {
              for (uint32_t y = 0; y < 6; ++y) {
                  for (uint32_t x = 0; x < 6; ++x) {
                      if (x != y && x * y == i) {
                          return x * 10 + y;
                      }
                  }
              }
              return 999u;
          });
}

TEST(ReaderControlFlow, SwitchWithFallthroughAndSharedCases) {
    Check(R"(
        uint r = 1;
        switch (i % 7) {
            case 0: r += 10;
            case 1: { for (uint k = 0; k < i; ++k) { r += k; if (r > 40) break; } r *= 3; }
            case 2: r += i; break;
            case 3: case 4: r = 50 + i; break;
            case 5: if (i > 8) break; r += 7;
            default: r += 1000;
        }
        o[i] = r;)",
          [](uint32_t i) {
              uint32_t r = 1;
              switch (i % 7) {
                  case 0:
                      r += 10;
                      [[fallthrough]];
                  case 1:
                      for (uint32_t k = 0; k < i; ++k) {
                          r += k;
                          if (r > 40) {
                              break;
                          }
                      }
                      r *= 3;
                      [[fallthrough]];
                  case 2:
                      r += i;
                      break;
                  case 3:
                  case 4:
                      r = 50 + i;
                      break;
                  case 5:
                      if (i > 8) {
                          break;
                      }
                      r += 7;
                      [[fallthrough]];
                  default:
                      r += 1000;
              }
              return r;
          });
}

// What a case that is reached in two ways defines must reach its later uses in both translations.
TEST(ReaderControlFlow, ValuesOfACaseThatOthersFallInto) {
    Check(
        R"(
        uint r = 0;
        switch (i & 3) {
            case 0: r = 5;
            case 1: {
                uint last = 0;
                uint k = 0;
                while (true) {
                    uint v = s[k] * 3 + i;
                    last = v + r;
                    if (v % 5 == 2 || k > 6) break;
                    ++k;
                }
                r += last * 2;
            }
            case 2: { uint w; if (i > 6) { w = s[i % 4] + 3; } else { w = r + 1; } r = r * 7 + w; }
            default: r += 100;
        }
        o[i] = r;)",
        [](uint32_t i) {
            const uint32_t s[] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3};
            uint32_t r = 0, last = 0, k = 0, w = 0;
            switch (i & 3) {
                case 0:
                    r = 5;
                    [[fallthrough]];
                case 1:
                    while (true) {
                        uint32_t v = s[k] * 3 + i;
                        last = v + r;
                        if (v % 5 == 2 || k > 6) {
                            break;
                        }
                        ++k;
                    }
                    r += last * 2;
                    [[fallthrough]];
                case 2:
                    w = i > 6 ? s[i % 4] + 3 : r + 1;
                    r = r * 7 + w;
                    [[fallthrough]];
                default:
                    r += 100;
            }
            return r;
        },
        "layout(set = 0, binding = 1) buffer In { uint s[]; };");
}

TEST(ReaderControlFlow, SwitchInALoopContinuesIt) {
    Check(R"(
        uint r = 0;
        for (uint k = 0; k < 9; ++k) {
            switch ((k + i) % 4) {
                case 0: continue;
                case 1: r += 1; break;
                case 2: if (k == 5) { r += 500; continue; } r += 20; break;
            }
            r += k;
        }
        o[i] = r;)",
          [](uint32_t i) {
              uint32_t r = 0;
              for (uint32_t k = 0; k < 9; ++k) {
                  switch ((k + i) % 4) {
                      case 0:
                          continue;
                      case 1:
                          r += 1;
                          break;
                      case 2:
                          if (k == 5) {
                              r += 500;
                              continue;
                          }
                          r += 20;
                          break;
                  }
                  r += k;
              }
              return r;
          });
}

TEST(ReaderControlFlow, EarlyReturnsOfInlinedFunctions) {
    Check(
        R"(
        vec2 pair = Pick(i, 3);
        o[i] = Search(i) * 100 + uint(pair.x) * 10 + uint(pair.y) + Search(i + 1);)",
        [](uint32_t i) {
            auto search = [](uint32_t n) {
                for (uint32_t k = 0; k < 10; ++k) {
                    if (k * k >= n) {
                        return k;
                    }
                    if (n == 5) {
                        return 77u;
                    }
                }
                return 9u;
            };
            uint32_t x = i > 3 ? i - 3 : 3 - i;
            return search(i) * 100 + x * 10 + (i > 3 ? 1 : 2) + search(i + 1);
        },
        R"(
        uint Search(uint n) {
            for (uint k = 0; k < 10; ++k) { if (k * k >= n) return k; if (n == 5) return 77; }
            return 9;
        }
        vec2 Pick(uint a, uint b) {
            if (a > b) return vec2(float(a - b), 1.0);
            return vec2(float(b - a), 2.0);
        })");
}

TEST(ReaderControlFlow, ReturnsOfTheEntryPoint) {
    Check(R"(
        o[i] = 1;
        if (i > 9) { o[i] = 2; return; }
        for (uint k = 0; k < 5; ++k) { if (k + i == 6) { o[i] = 10 + k; return; } }
        o[i] = 3;)",
          [](uint32_t i) { return i > 9                ? 2
                                  : (i >= 2 && i <= 6) ? 16 - i
                                                       : 3; });
}

TEST(ReaderControlFlow, ConditionalContinueConstructs) {
    Check(
        R"(
        uint r = 0;
        for (uint k = 0; k < 12; k += (k % 2 == 0 ? 1 : 3)) {
            if (((i >> (k & 3)) & 1) == 0) { r += 1; continue; }
            r += Weight(k);
        }
        o[i] = r;)",
        [](uint32_t i) {
            uint32_t r = 0;
            for (uint32_t k = 0; k < 12; k += (k % 2 == 0 ? 1 : 3)) {
                if (((i >> (k & 3)) & 1) == 0) {
                    r += 1;
                    continue;
                }
                r += k > 5 ? k : 10 * k;
            }
            return r;
        },
        "uint Weight(uint k) { if (k > 5) return k; return 10 * k; }");
}

TEST(ReaderControlFlow, BarriersInUniformLoops) {
    Check(
        R"(
        uint l = gl_LocalInvocationIndex;
        t[l] = i;
        barrier();
        for (uint d = 4; d > 0; d >>= 1) {
            if (l < d) t[l] += t[l + d];
            barrier();
        }
        o[i] = t[0];)",
        [](uint32_t i) { return i < 8 ? 28u : 92u; }, "shared uint t[8];");
}

// A value that dominates a use after its loop without a phi, and a continue construct with a
// selection.
TEST(ReaderControlFlow, ValuesOutsideOfTheConstructThatDefinesThem) {
    Check(AssembleSpirv(R"(
        OpCapability Shader
        OpMemoryModel Logical GLSL450
        OpEntryPoint GLCompute %main "main" %gid
        OpExecutionMode %main LocalSize 8 1 1
        OpDecorate %gid BuiltIn GlobalInvocationId
        OpDecorate %arr ArrayStride 4
        OpDecorate %blk BufferBlock
        OpMemberDecorate %blk 0 Offset 0
        OpDecorate %out DescriptorSet 0
        OpDecorate %out Binding 0
        %void = OpTypeVoid
        %fn = OpTypeFunction %void
        %bool = OpTypeBool
        %uint = OpTypeInt 32 0
        %v3 = OpTypeVector %uint 3
        %pin = OpTypePointer Input %v3
        %arr = OpTypeRuntimeArray %uint
        %blk = OpTypeStruct %arr
        %pblk = OpTypePointer Uniform %blk
        %pu = OpTypePointer Uniform %uint
        %u0 = OpConstant %uint 0
        %u1 = OpConstant %uint 1
        %u2 = OpConstant %uint 2
        %u10 = OpConstant %uint 10
        %gid = OpVariable %pin Input
        %out = OpVariable %pblk Uniform
        %main = OpFunction %void None %fn
        %entry = OpLabel
        %id3 = OpLoad %v3 %gid
        %id = OpCompositeExtract %uint %id3 0
        OpBranch %head
        %head = OpLabel
        %k = OpPhi %uint %u0 %entry %knext %latch
        OpLoopMerge %exit %cont None
        OpBranch %body
        %body = OpLabel
        %square = OpIMul %uint %k %k
        %ptr = OpAccessChain %pu %out %u0 %id
        %far = OpUGreaterThan %bool %square %id
        OpBranchConditional %far %exit %cont
        %cont = OpLabel
        %odd = OpBitwiseAnd %uint %k %u1
        %isodd = OpIEqual %bool %odd %u1
        OpSelectionMerge %latch None
        OpBranchConditional %isodd %step %latch
        %step = OpLabel
        %dbl = OpIMul %uint %u1 %u2
        OpBranch %latch
        %latch = OpLabel
        %inc = OpPhi %uint %u1 %cont %dbl %step
        %knext = OpIAdd %uint %k %inc
        OpBranch %head
        %exit = OpLabel
        %scaled = OpIMul %uint %square %u10
        %sum = OpIAdd %uint %scaled %k
        OpStore %ptr %sum
        OpReturn
        OpFunctionEnd)"),
          [](uint32_t i) {
              uint32_t k = 0;
              while (k * k <= i) {
                  k += k % 2 ? 2 : 1;
              }
              return k * k * 10 + k;
          });
}

}  // namespace
}  // namespace fornax::kernel
