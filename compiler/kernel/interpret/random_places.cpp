#include "compiler/kernel/interpret/random_places.h"

#include <algorithm>
#include <bit>

#include "compiler/kernel/interpret/test_dispatch.h"

namespace fornax::kernel {

using namespace ir;

Type RandomPlaces::MemoryType() {
    Type type = AnyType();
    return type == Type::kBool ? Type::kI32 : type;
}

ValueId RandomPlaces::OffsetWithin(uint32_t bytes, Type type, uint32_t run) {
    uint32_t size = ByteSize(type);
    uint32_t slots = std::bit_floor((bytes - (run - 1) * size) / size);
    if (random_.Chance(50)) {
        return b_.ConstI32(random_.Below(slots) * size);
    }
    return Emit(Op::kIMul, Type::kI32, {Masked(Type::kI32, slots - 1), b_.ConstI32(size)});
}

RandomPlaces::Place RandomPlaces::Strided(Type type, uint32_t run, bool inside) {
    static constexpr uint32_t kStrides[] = {0,  1,  2,  3,  4,  5,  6,  8,  9,
                                            10, 12, 16, 18, 20, 24, 32, 34, 40};
    const uint32_t size = ByteSize(type);
    const uint32_t step = (kStrides[random_.Below(std::size(kStrides))] + size - 1) / size * size;
    const uint32_t reach = step * (invocations_ - 1) + run * size;
    const uint32_t end = TestDispatch::kBinding2Bytes;
    // A run that is partly outside is one of a single element.
    const uint32_t last = reach <= end ? end - reach : 0;
    uint32_t start = random_.Below(last / size + 1) * size;
    if (run == 1 && !inside && random_.Chance(20)) {
        start = (end - random_.Below(std::min(reach, end))) / size * size;
    }
    if (reach > end && (run > 1 || inside)) {
        return {buffers_[2], OffsetWithin(end, type, run), size};
    }
    const uint32_t bits = step | start | 16;
    ValueId offset = Emit(Op::kIMul, Type::kI32, {local_index_, b_.ConstI32(step)});
    offset = Emit(Op::kIAdd, Type::kI32, {offset, b_.ConstI32(start)});
    return {buffers_[2], offset, bits & (0 - bits)};
}

RandomPlaces::Place RandomPlaces::RowStrided(Type type) {
    auto op = [&](Op code, std::initializer_list<ValueId> operands) {
        return Emit(code, Type::kI32, operands);
    };
    ValueId at = b_.ConstI32(random_.Below(16) * 4);
    ValueId length = b_.Emit(Op::kLoadPush, Type::kI32, {at}, 4);
    length = op(Op::kAnd, {length, b_.ConstI32(7)});
    ValueId row = op(Op::kLShr, {local_index_, b_.ConstI32(random_.Below(4))});
    row = op(Op::kIMul, {op(Op::kAnd, {row, b_.ConstI32(3)}), length});
    ValueId index = op(Op::kIAdd, {row, op(Op::kAnd, {local_index_, b_.ConstI32(3)})});
    const uint32_t size = ByteSize(type);
    return {buffers_[2], ElementOffset(index, size), size};
}

RandomPlaces::Place RandomPlaces::Own(Type type, uint32_t run) {
    const uint32_t planes = TestDispatch::kOwnBytes / own_bytes_;
    const uint32_t invocations = TestDispatch::kWorkgroups * invocations_;
    ValueId inside = OffsetWithin(own_bytes_, type, run);
    ValueId plane = b_.ConstI32(random_.Below(planes) * invocations * own_bytes_);
    ValueId offset = Emit(Op::kIAdd, Type::kI32, {own_, plane});
    return {buffers_[0], Emit(Op::kIAdd, Type::kI32, {offset, inside}), ByteSize(type)};
}

RandomPlaces::Place RandomPlaces::BufferPlace(Type type, uint32_t run, bool write) {
    if (!options_.portable && random_.Chance(50)) {
        uint32_t size = ByteSize(type);
        ValueId offset = random_.Chance(15)
                             ? Emit(Op::kIMul, Type::kI32, {Pick(Type::kI32), b_.ConstI32(size)})
                             : OffsetWithin(TestDispatch::kBinding1Bytes, type, run);
        return {buffers_[random_.Below(write ? 2 : 3)], offset, size};
    }
    if (!write && random_.Chance(20)) {
        return RowStrided(type);
    }
    if (!write && random_.Chance(30)) {
        return {buffers_[2], OffsetWithin(TestDispatch::kBinding2Bytes, type, run), ByteSize(type)};
    }
    if (!write && random_.Chance(50)) {
        return Strided(type, run);
    }
    return Own(type, run);
}

}  // namespace fornax::kernel
