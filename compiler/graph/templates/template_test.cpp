// The declarations of templates beside their SPIR-V, and their text.
#include "compiler/graph/templates/template.h"

#include <map>
#include <set>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spirv/unified1/spirv.hpp11>

#include "shaders/embedded_kernels.h"

namespace fornax::graph {
namespace {

using testing::HasSubstr;

// What a module says about itself, as far as declarations repeat it.
struct Reflection {
    std::map<uint32_t, bool> written;  // by binding of set 0
    uint32_t push_constants = 0;       // u32 each
    uint32_t choices = 0;              // specialisation constants
    uint32_t sets = 0;
    bool has_subgroups = false;
};

Reflection Reflect(std::span<const uint32_t> words) {
    std::map<uint32_t, uint32_t> binding_of, type_of, pointee, members;
    std::map<uint32_t, uint32_t> read_only;  // members of structures that are
    Reflection reflection;
    uint32_t push_pointer = 0;
    for (size_t i = 5; i < words.size(); i += words[i] >> 16) {
        const auto op = static_cast<spv::Op>(words[i] & 0xffff);
        const uint32_t* operands = words.data() + i + 1;  // none at the end
        reflection.has_subgroups =
            reflection.has_subgroups ||
            (op == spv::Op::OpCapability && static_cast<spv::Capability>(operands[0]) ==
                                                spv::Capability::GroupNonUniformArithmetic);
        if (op == spv::Op::OpDecorate) {
            switch (static_cast<spv::Decoration>(operands[1])) {
                case spv::Decoration::Binding:
                    binding_of[operands[0]] = operands[2];
                    break;
                case spv::Decoration::DescriptorSet:
                    reflection.sets = std::max(reflection.sets, operands[2] + 1);
                    break;
                case spv::Decoration::SpecId:
                    reflection.choices = std::max(reflection.choices, operands[2] + 1);
                    break;
                default:
                    break;
            }
        } else if (op == spv::Op::OpMemberDecorate &&
                   static_cast<spv::Decoration>(operands[2]) == spv::Decoration::NonWritable) {
            ++read_only[operands[0]];
        } else if (op == spv::Op::OpTypeStruct) {
            members[operands[0]] = (words[i] >> 16) - 2;
        } else if (op == spv::Op::OpTypePointer) {
            pointee[operands[0]] = operands[2];
            if (static_cast<spv::StorageClass>(operands[1]) == spv::StorageClass::PushConstant &&
                push_pointer == 0) {
                push_pointer = operands[0];
            }
        } else if (op == spv::Op::OpVariable) {
            type_of[operands[1]] = operands[0];
        }
    }
    for (const auto& [variable, binding] : binding_of) {
        reflection.written[binding] = read_only[pointee[type_of[variable]]] == 0;
    }
    reflection.push_constants = push_pointer == 0 ? 0 : members[pointee[push_pointer]];
    return reflection;
}

// A value that a parameter may have, for trying.
int64_t SomeValue(const TemplateParameter& parameter) {
    return std::min<int64_t>(std::max<int64_t>(parameter.low, 7), parameter.high);
}

Result<TemplateKernel> Some(const Template& of) {
    std::vector<Expr> arguments;
    for (const TemplateParameter& parameter : of.parameters) {
        arguments.emplace_back(SomeValue(parameter));
    }
    return TemplateKernel::Make(of.name, std::move(arguments), {});
}

TEST(Template, DeclaresWhatItsCodeHas) {
    std::set<std::vector<uint32_t>> codes;
    for (const Template& of : Templates()) {
        const Result<TemplateKernel> kernel = Some(of);
        ASSERT_TRUE(kernel.ok()) << kernel.error().message;
        EXPECT_GT(kernel->operations().constant().value_or(0), 0);
        for (const bool subgroups : {true, false}) {
            SCOPED_TRACE(fmt::format("{} with subgroups {}", of.name, subgroups));
            const Result<loop::Module> module = kernel->Module({.subgroup_arithmetic = subgroups});
            ASSERT_TRUE(module.ok()) << module.error().message;
            ASSERT_GT(module->words.size(), 5U);
            codes.insert(module->words);
            const Reflection reflection = Reflect(module->words);
            EXPECT_EQ(reflection.sets, 1U);
            EXPECT_EQ(reflection.push_constants, kernel->PushConstants().size());
            EXPECT_EQ(reflection.choices, kernel->Choices().size());
            EXPECT_TRUE(subgroups || !reflection.has_subgroups);
            ASSERT_EQ(reflection.written.size(), of.buffers.size());
            for (uint32_t i = 0; i < of.buffers.size(); ++i) {
                EXPECT_EQ(reflection.written.at(i), of.buffers[i].written) << of.buffers[i].name;
            }
            EXPECT_GT(module->workgroups[0].constant().value_or(0), 0);
        }
    }
    EXPECT_EQ(codes.size(), shaders::EmbeddedKernels().size());
}

TEST(Template, ReadsItsText) {
    const Symbol n("n"), m("m.0");
    const Result<TemplateKernel> kernel =
        TemplateKernel::Make("sort_rows", {2, Expr(n) * Expr(m), FloorDiv(n, 3) + 1, Min(n, 5)},
                             {{n, {1, 100}}, {m, {0, UINT32_MAX}}, {Symbol("unused"), {0, 1}}});
    ASSERT_TRUE(kernel.ok()) << kernel.error().message;
    const std::string text = ToText(*kernel);
    EXPECT_EQ(text,
              "template sort_rows\n  words = 2\n  rows = m.0*n\n  length = floor(n, 3) + 1\n"
              "  count = min(5, n)\n  size m.0 in 0..4294967295\n  size n in 1..100\n");
    const Result<TemplateKernel> read = ParseTemplateKernel(text);
    ASSERT_TRUE(read.ok()) << read.error().message;
    EXPECT_EQ(ToText(*read), text);
    ASSERT_EQ(read->buffers().size(), 3U);
    EXPECT_EQ(read->buffers()[1].type.ToString(), kernel->buffers()[1].type.ToString());
    for (const Template& of : Templates()) {
        const std::string constant = ToText(*Some(of));
        const Result<TemplateKernel> again = ParseTemplateKernel(constant);
        ASSERT_TRUE(again.ok()) << again.error().message;
        EXPECT_EQ(ToText(*again), constant);
    }
}

TEST(Template, RefusesWrongText) {
    const std::string select = "template select_rows\n", sort = "template sort_rows\n";
    const std::pair<std::string, std::string> cases[] = {
        {"", "begins with the word template"},
        {"template nothing\nrows = 1\n", "Line 1 of the template: there is no template 'nothing'."},
        {select + "rows = 1\nlength = 2\n", "Line 4 of the template: 'count = ' is expected."},
        {select + "rows = 1\ncount = 2\nlength = 2\n", "'length = ' is expected"},
        {select + "rows = 1\nlength = 2*\ncount = 1\n", "Line 3 of the template: "},
        {select + "rows = 1\nlength = 2\ncount = 1025\n",
         "count is 1025, which is not always within 0 to 1024"},
        {select + "rows = 1\nlength = n\ncount = n\nsize n in 0..2000\n",
         "count is n, which is not always within 0 to 1024"},
        {select + "rows = -1\nlength = 2\ncount = 1\n", "rows is -1"},
        {select + "rows = 1\nlength = 4294967296\ncount = 1\n", "length is 4294967296"},
        {sort + "words = n\nrows = 1\nlength = 2\ncount = 1\nsize n in 1..2\n",
         "words is n, no constant"},
        {sort + "words = 3\nrows = 1\nlength = 2\ncount = 1\n", "words is 3"},
        {select + "rows = k\nlength = 2\ncount = 1\n", "k in k is not one of its sizes"},
        {select + "rows = n\nlength = 2\ncount = 1\nsize n in -1..5\n", "the size n is -1 to 5"},
        {select + "rows = n\nlength = 2\ncount = 1\nsize n in 0..5\nsize n in 0..5\n",
         "the size n is there twice"},
        {select + "rows = n\nlength = 2\ncount = 1\nsize n in 0..5x\n", "'5x' is no integer"},
        {select + "rows = 1\nlength = 2\ncount = 1\nmore\n", "a size or the end is expected"},
    };
    for (const auto& [text, message] : cases) {
        const Result<TemplateKernel> kernel = ParseTemplateKernel(text);
        ASSERT_FALSE(kernel.ok()) << text;
        EXPECT_THAT(kernel.error().message, HasSubstr(message)) << text;
    }
}

}  // namespace
}  // namespace fornax::graph
