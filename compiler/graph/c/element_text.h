// How elements and numbers of each type are written in C.
//
// A scalar of a kernel is a variable of CTypeOf(): integers have their width, so that assigning to
// one wraps it; those of 2 and 4 bits are in 8 and wrapped by WrapText(). Floats narrower than f32
// are computed in float. In memory an element is what element_type.h says, of StorageTypeOf().
// Functions with the prefix "fx_" are those of support.h.
#pragma once

#include <string>
#include <string_view>

#include "compiler/graph/ir/element_type.h"
#include "compiler/graph/ir/scalar_function.h"

namespace fornax::graph::c {

std::string_view CTypeOf(ElementType type);
std::string_view StorageTypeOf(ElementType type);

// A number of the type as an expression that may be part of any other.
std::string ConstantText(const Scalar& value, ElementType type);
std::string IntegerText(int64_t value);

// The number of an element in memory, and the element of a number.
std::string DecodeText(ElementType type, const std::string& element);
std::string EncodeText(ElementType type, const std::string& value);

// The value as CTypeOf(type), without the bits that the type does not have.
std::string WrapText(ElementType type, const std::string& value);

// The function's value for arguments of `type`; the text is assigned to a variable of the result's
// type, which wraps it.
std::string MapText(ScalarFunction function,
                    ElementType type,
                    const std::string& a,
                    const std::string& b,
                    const std::string& c);
std::string CombineText(Combine combine,
                        ElementType type,
                        const std::string& a,
                        const std::string& b);

std::string CastText(const std::string& value,
                     ElementType from,
                     ElementType to,
                     Overflow overflow,
                     Rounding rounding);
// The bits of a number of a type of as many bytes.
std::string BitcastText(const std::string& value, ElementType from, ElementType to);

}  // namespace fornax::graph::c
