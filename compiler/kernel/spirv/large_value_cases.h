// Functions that take and return structures of arrays, as SPIR-V text and with what they must give:
// for tests of the reader (in the interpreter) and of the whole driver (through the Vulkan loader).
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace fornax::kernel {

// With the number in the place of each @.
inline std::string NumberedText(const std::string& format, uint32_t number) {
    std::string text = format;
    for (size_t at = text.find('@'); at != std::string::npos; at = text.find('@')) {
        text.replace(at, 1, std::to_string(number));
    }
    return text;
}

// A chain of functions that take and return three arrays by value, in the manner of Slang. Each
// changes an element, and one puts a changed array in the place of another.
inline std::string LargeValueChain(uint32_t elements, uint32_t functions) {
    std::string text = NumberedText(R"(
               OpCapability Shader
               OpMemoryModel Logical GLSL450
               OpEntryPoint GLCompute %main "main" %gid
               OpExecutionMode %main LocalSize 8 1 1
               OpDecorate %gid BuiltIn GlobalInvocationId
               OpDecorate %words ArrayStride 4
               OpMemberDecorate %Out 0 Offset 0
               OpDecorate %Out BufferBlock
               OpDecorate %out DescriptorSet 0
               OpDecorate %out Binding 0
       %void = OpTypeVoid
         %fn = OpTypeFunction %void
       %uint = OpTypeInt 32 0
       %vec3 = OpTypeVector %uint 3
        %in3 = OpTypePointer Input %vec3
        %gid = OpVariable %in3 Input
       %bool = OpTypeBool
          %n = OpConstant %uint @
       %zero = OpConstant %uint 0
        %one = OpConstant %uint 1
        %two = OpConstant %uint 2
        %arr = OpTypeArray %uint %n
          %S = OpTypeStruct %arr %arr %arr
         %pS = OpTypePointer Function %S
         %pu = OpTypePointer Function %uint
      %words = OpTypeRuntimeArray %uint
        %Out = OpTypeStruct %words
       %pOut = OpTypePointer Uniform %Out
         %po = OpTypePointer Uniform %uint
        %out = OpVariable %pOut Uniform
         %fS = OpTypeFunction %S %S %uint
)",
                                    elements);
    for (uint32_t i = 0; i < functions; ++i) {
        text += NumberedText(R"(
         %f@ = OpFunction %S None %fS
         %s@ = OpFunctionParameter %S
         %i@ = OpFunctionParameter %uint
         %l@ = OpLabel
         %v@ = OpVariable %pS Function
               OpStore %v@ %s@
        %pa@ = OpAccessChain %pu %v@ %zero %i@
         %a@ = OpLoad %uint %pa@
         %j@ = OpIAdd %uint %i@ %one
         %k@ = OpUMod %uint %j@ %n
        %pc@ = OpAccessChain %pu %v@ %two %k@
         %c@ = OpLoad %uint %pc@
         %x@ = OpIAdd %uint %a@ %c@
        %pb@ = OpAccessChain %pu %v@ %one %i@
               OpStore %pb@ %x@
         %w@ = OpLoad %S %v@
               OpStore %pa@ %j@
        %w1@ = OpCompositeExtract %arr %w@ 1
        %w0@ = OpCompositeExtract %arr %w@ 0
)",
                             i);
        text += NumberedText(i % 2 ? "%u@ = OpCompositeConstruct %S %w1@ %w0@ %w0@\n"
                                   : "%u@ = OpCompositeInsert %S %w1@ %w@ 2\n",
                             i);
        if (i == 0) {
            text += "%r0 = OpCopyObject %S %u0\n";
        } else {
            text += NumberedText("%r@ = OpFunctionCall %S %f", i) + NumberedText("@", i - 1) +
                    NumberedText(" %u@ %i@\n", i);
        }
        text += NumberedText("OpReturnValue %r@\nOpFunctionEnd\n", i);
    }
    return text + R"(
       %main = OpFunction %void None %fn
      %entry = OpLabel
          %v = OpVariable %pS Function
          %g = OpLoad %vec3 %gid
          %x = OpCompositeExtract %uint %g 0
         %at = OpUMod %uint %x %n
               OpBranch %head
       %head = OpLabel
          %i = OpPhi %uint %zero %entry %next %cont
       %more = OpULessThan %bool %i %n
               OpLoopMerge %merge %cont None
               OpBranchConditional %more %body %merge
       %body = OpLabel
         %p0 = OpAccessChain %pu %v %zero %i
         %q0 = OpIMul %uint %i %x
               OpStore %p0 %q0
         %p1 = OpAccessChain %pu %v %one %i
               OpStore %p1 %i
         %p2 = OpAccessChain %pu %v %two %i
         %q2 = OpIAdd %uint %i %x
               OpStore %p2 %q2
               OpBranch %cont
       %cont = OpLabel
       %next = OpIAdd %uint %i %one
               OpBranch %head
      %merge = OpLabel
          %s = OpLoad %S %v
          %r = OpFunctionCall %S %f)" +
           std::to_string(functions - 1) + R"( %s %at
          %t = OpCompositeExtract %arr %r 1
          %e = OpCompositeExtract %uint %t 3
               OpStore %v %r
         %pr = OpAccessChain %pu %v %zero %at
         %lr = OpLoad %uint %pr
         %pq = OpAccessChain %pu %v %two %at
         %lq = OpLoad %uint %pq
        %lq3 = OpIMul %uint %lq %n
        %sum = OpIAdd %uint %lr %lq3
       %sum2 = OpIAdd %uint %sum %e
          %o = OpAccessChain %po %out %zero %x
               OpStore %o %sum2
               OpReturn
               OpFunctionEnd
)";
}

// What the chain writes for invocation x, whose place in binding 0 is x. Workgroups have 8.
inline uint32_t LargeValueResult(uint32_t elements, uint32_t functions, uint32_t x) {
    using Array = std::vector<uint32_t>;
    Array a, b, c;
    for (uint32_t i = 0; i < elements; ++i) {
        a.push_back(i * x);
        b.push_back(i);
        c.push_back(i + x);
    }
    const uint32_t at = x % elements;
    for (uint32_t i = functions; i-- > 0;) {
        b[at] = a[at] + c[(at + 1) % elements];
        if (i % 2) {
            std::swap(a, b);
            c = b;
        } else {
            c = b;
        }
    }
    return a[at] + c[at] * elements + b[3];
}

}  // namespace fornax::kernel
