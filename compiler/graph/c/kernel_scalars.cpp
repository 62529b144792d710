// Scalars as variables of C, reductions as loops, and elements of buffers.
#include "compiler/graph/c/element_text.h"
#include "compiler/graph/c/kernel_writer_class.h"

namespace fornax::graph::c {

using loop::Kernel;
using loop::ScalarNode;
using loop::Store;
using loop::VariableSet;

void KernelWriter::Compute(ScalarId id) {
    for (size_t i = 0; i < state_.tabled.size(); ++i) {
        if (state_.tabled[i] == id) {
            return Define(id, [&] {
                const Table& table = state_.tables[i];
                return fmt::format("t{}[{}]", table.scalar.value(), TableIndex(table));
            });
        }
    }
    const ScalarNode& node = kernel_[id];
    if (const auto* reduce = std::get_if<loop::Reduce>(&node.value)) {
        return ComputeReduction(id, *reduce);
    }
    if (const auto* reduce = std::get_if<loop::ArgReduce>(&node.value)) {
        return ComputePosition(id, *reduce);
    }
    Define(id, [&] {
        return std::visit([&](const auto& value) { return Value(node.type, value); }, node.value);
    });
}

// A variable with the value, which may need lines before it.
void KernelWriter::Define(ScalarId id, const std::function<std::string()>& value) {
    const std::string_view type = CTypeOf(kernel_[id].type);
    if (!InLanes(id)) {
        const std::string text = value();
        Line("const {} v{} = {};", type, id.value(), text);
        return;
    }
    Line("{} v{}[{}];", type, id.value(), lane_count_);
    ForLanes(true, [&] {
        const std::string text = value();
        Line("{} = {};", Ref(id), text);
    });
}

// A variable that a reduction changes.
void KernelWriter::Declare(ScalarId id,
                           const std::string& name,
                           std::string_view type,
                           const std::string& value) {
    if (InLanes(id)) {
        Line("{} {}[{}];", type, name, lane_count_);
        ForLanes(true, [&] { Line("{}[lane] = {};", name, value); });
    } else {
        Line("{} {} = {};", type, name, value);
    }
}

std::string KernelWriter::Value(ElementType type, const loop::Constant& constant) {
    return ConstantText(constant.value, type);
}

std::string KernelWriter::Value(ElementType type, const loop::Load& load) {
    const Place place = PlaceOf(load.buffer, load.index);
    std::string element = DecodeText(type, fmt::format("{}[{}]", place.buffer, place.offset));
    if (place.condition.empty()) {
        return element;
    }
    const std::string otherwise = load.otherwise.valid() ? Ref(load.otherwise) : "0";
    return fmt::format("{} ? {} : {}", place.condition, element, otherwise);
}

std::string KernelWriter::Value(ElementType, const loop::Index& index) {
    return IndexOf(index.value, 0);
}

std::string KernelWriter::Value(ElementType, const loop::InRange& range) {
    const Expr value = index_.Simplified(range.value), extent = index_.Simplified(range.extent);
    if (index_.Proven(value, extent)) {
        return "true";
    }
    if (extent.constant().value_or(1) <= 0) {
        return "false";
    }
    const std::string text = Temporary(IndexOf(value, -1));
    return fmt::format("{} >= 0 && {} < {}", text, text, IndexOf(extent, INT64_MIN));
}

std::string KernelWriter::Value(ElementType, const loop::Map& map) {
    std::vector<std::string> arguments;
    for (const ScalarId argument : map.arguments) {
        arguments.push_back(Ref(argument));
    }
    arguments.resize(3);
    return MapText(map.function, kernel_[map.arguments.back()].type, arguments[0], arguments[1],
                   arguments[2]);
}

std::string KernelWriter::Value(ElementType type, const loop::Cast& cast) {
    return CastText(Ref(cast.argument), kernel_[cast.argument].type, type, cast.overflow,
                    cast.rounding);
}

std::string KernelWriter::Value(ElementType type, const loop::Bitcast& cast) {
    return BitcastText(Ref(cast.argument), kernel_[cast.argument].type, type);
}

// Compute() takes these first.
std::string KernelWriter::Value(ElementType, const loop::Reduce&) {
    return "";
}

std::string KernelWriter::Value(ElementType, const loop::ArgReduce&) {
    return "";
}

// All points of a reduction, and what its body needs at each.
void KernelWriter::ReductionPoints(std::span<const Loop> loops,
                                   size_t level,
                                   ScalarId body,
                                   const Body& at_point) {
    std::vector<ScalarId> roots = {body};
    for (const Loop& loop : loops) {
        for (const Symbol& symbol : loop.extent.Symbols()) {
            if (const std::optional<ScalarId> scalar = loop::ScalarOfSymbol(symbol)) {
                roots.push_back(*scalar);
            }
        }
    }
    if (level > 0) {
        ComputeReady(roots);
    }
    if (level == loops.size()) {
        return at_point();
    }
    ForEach(loops[level], [&] { ReductionPoints(loops, level + 1, body, at_point); });
}

void KernelWriter::ComputeReduction(ScalarId id, const loop::Reduce& reduce) {
    const ElementType type = kernel_[id].type;
    Declare(id, fmt::format("v{}", id.value()), CTypeOf(type),
            ConstantText(NeutralElement(reduce.combine, type), type));
    ReductionPoints(reduce.loops, 0, reduce.body, [&] {
        ForLanes(InLanes(id), [&] {
            Line("{} = {};", Ref(id), CombineText(reduce.combine, type, Ref(id), Ref(reduce.body)));
        });
    });
}

void KernelWriter::ComputePosition(ScalarId id, const loop::ArgReduce& reduce) {
    const ElementType type = kernel_[reduce.body].type;
    const std::string best = fmt::format("best{}", id.value());
    const std::string best_ref = best + (InLanes(id) ? "[lane]" : "");
    Declare(id, fmt::format("v{}", id.value()), "int64_t", "-1");
    Declare(id, best, CTypeOf(type), "0");
    const bool greatest = reduce.combine == Combine::kMax;
    ReductionPoints({&reduce.loop, 1}, 0, reduce.body, [&] {
        ForLanes(InLanes(id), [&] {
            const std::string value = Ref(reduce.body);
            const std::string precedes =
                IsFloat(type) ? fmt::format("fx_precedes({}, {}, {}, {})", value, best_ref,
                                            greatest, reduce.last)
                              : fmt::format("{} {}{} {}", value, greatest ? ">" : "<",
                                            reduce.last ? "=" : "", best_ref);
            Open(fmt::format("if ({} < 0 || {})", Ref(id), precedes));
            Line("{} = {};", best_ref, value);
            Line("{} = {};", Ref(id), index_.Name(reduce.loop.variable));
            Close();
        });
    });
    ForLanes(InLanes(id), [&] { Line("{} = {} < 0 ? 0 : {};", Ref(id), Ref(id), Ref(id)); });
}

// --- Memory --------------------------------------------------------------------------------------

std::string KernelWriter::Temporary(const std::string& value) {
    const std::string name = fmt::format("n{}", temporaries_++);
    Line("const int64_t {} = {};", name, value);
    return name;
}

KernelWriter::Place KernelWriter::PlaceOf(loop::BufferId buffer, const std::vector<Expr>& index) {
    const Shape& shape = kernel_[buffer].type.shape;
    Place place;
    place.buffer = Kernel::IsLocal(buffer) ? fmt::format("l{}", buffer.value() - loop::kFirstLocal)
                                           : fmt::format("b{}", buffer.value());
    // What is proven to be inside is one expression; the others are checked one by one.
    Expr proven, stride(1);
    for (size_t axis = shape.rank(); axis-- > 0;) {
        const Expr simple = index_.Simplified(index[axis]);
        if (index_.Proven(simple, shape[axis])) {
            proven += simple * stride;
        } else {
            const std::string value = Temporary(IndexOf(simple, -1));
            place.condition +=
                fmt::format("{}(uint64_t){} < {}", place.condition.empty() ? "" : " && ", value,
                            IntegerText(*shape[axis].constant()));
            place.offset += fmt::format("{} * {} + ", value, IntegerText(*stride.constant()));
        }
        stride *= shape[axis];
    }
    place.offset += IndexOf(proven, 0);
    return place;
}

void KernelWriter::Stores(std::span<const Store> stores) {
    for (const Store& store : stores) {
        VariableSet free = scope_.free[store.value.value()];
        free |= store.condition.valid() ? scope_.free[store.condition.value()] : 0;
        for (const Expr& expr : store.index) {
            free |= scope_.FreeIn(expr);
        }
        ForLanes((free & lanes_) != 0, [&] {
            const Place place = PlaceOf(store.buffer, store.index);
            std::string condition = store.condition.valid() ? Ref(store.condition) : "";
            if (!place.condition.empty()) {
                condition += (condition.empty() ? "" : " && ") + place.condition;
            }
            const std::string value =
                EncodeText(kernel_[store.buffer].type.element, Ref(store.value));
            if (!condition.empty()) {
                Open(fmt::format("if ({})", condition));
            }
            Line("{}[{}] = {};", place.buffer, place.offset, value);
            if (!condition.empty()) {
                Close();
            }
        });
    }
}

}  // namespace fornax::graph::c
