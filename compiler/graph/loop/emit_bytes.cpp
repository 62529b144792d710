// Sums of products of bytes and of bf16: tiles of rows by columns in registers.
//
// An invocation computes one column of a few rows. Along k it takes words, four bytes or two bf16
// at a time: of b its own, of a one for all invocations, and adds their dot product to the row's
// sum. So a multiplication costs a quarter or half of one of f32, and nothing is converted.
#include <algorithm>

#include "compiler/graph/loop/byte_product.h"
#include "compiler/graph/loop/emitter.h"

namespace fornax::graph::loop {

using spv::Op;

namespace {

constexpr int64_t kRowsOfTile = 8;

}  // namespace

class ByteProductEmitter {
  public:
    ByteProductEmitter(Emitter& emitter, const Product& product, const ByteProduct& bytes)
        : e_(emitter), b_(emitter.b_), product_(product), bytes_(bytes) {
        a_words_ = b_.StorageBuffer(bytes.a.buffer.value(), b_.U32(), false);
        b_words_ = b_.StorageBuffer(bytes.b.buffer.value(), b_.U32(), false);
        if (!bytes_.floats) {
            b_.Capability(spv::Capability::DotProduct);
            b_.Capability(spv::Capability::DotProductInput4x8BitPacked);
            b_.Extension("SPV_KHR_integer_dot_product");
        } else if (e_.target_.bfloat16_dot) {
            b_.Capability(spv::Capability::BFloat16TypeKHR);
            b_.Capability(spv::Capability::DotProductBFloat16AccVALVE);
            b_.Extension("SPV_KHR_bfloat16");
            b_.Extension("SPV_VALVE_mixed_float_dot_product");
        }
    }

    void Run() {
        const Expr m = PointsOf(product_.m), n = PointsOf(product_.n);
        const int64_t most = std::max<int64_t>(m.Bounds(e_.domain_.ranges).high, 1);
        rows_ = static_cast<uint32_t>(std::min(kRowsOfTile, most));
        e_.local_size_ = e_.target_.subgroup_size;
        e_.group_ = {e_.local_size_, 1, 1};
        const Expr m_tiles = CeilDiv(m, rows_).Simplify(e_.domain_);
        const Expr n_tiles = CeilDiv(n, e_.local_size_).Simplify(e_.domain_);
        const TileGrid grid = e_.OpenTileGrid(product_, m_tiles, n_tiles);
        e_.lane_ = b_.BuiltIn(spv::BuiltIn::LocalInvocationIndex);
        b_.If(grid.inside, [&] {
            e_.OpenScope();
            e_.BindFromIndex(product_.batch, grid.batch);
            m_first_ = b_.Mul(grid.m, e_.U(rows_));
            m_end_ = e_.EmitExpr(e_.Simplified(m));
            m_divisible_ = e_.Simplified(Mod(m, rows_)) == Expr(0);
            const Id first = b_.Mul(grid.n, e_.U(e_.local_size_));
            const Id column = b_.Add(first, e_.lane_);
            const Id end = e_.EmitExpr(e_.Simplified(n));
            const std::optional<int64_t> constant = n.constant();
            const Id whole = constant && *constant % e_.local_size_ == 0
                                 ? b_.True()
                                 : b_.Not(b_.ULess(end, b_.Add(first, e_.U(e_.local_size_))));
            // The condition of the last columns would be one of every load.
            b_.If(
                whole,
                [&] {
                    EmitColumn(column);
                    return Ids();
                },
                [&] {
                    b_.If(b_.ULess(column, end), [&] { EmitColumn(column); });
                    return Ids();
                });
            e_.CloseScope();
        });
    }

  private:
    void EmitColumn(Id column) {
        e_.OpenScope();
        e_.BindFromIndex(product_.n, column);
        const Ids zero(rows_, bytes_.floats ? e_.F(0) : e_.U(0));
        const Ids sums = Along(0, zero);
        std::vector<const Store*> stores;
        for (const Store& store : e_.kernel_.stores) {
            stores.push_back(&store);
        }
        for (uint32_t row = 0; row < rows_; ++row) {
            const auto store = [&] {
                AtRow(row, [&] {
                    e_.scopes_.back().emplace(product_.sum.value(), sums[row]);
                    e_.EmitStores(stores);
                });
            };
            if (m_divisible_) {
                store();
            } else {
                b_.If(b_.ULess(b_.Add(m_first_, e_.U(row)), m_end_), store);
            }
        }
        e_.CloseScope();
    }

    // The row's index; behind the last one it is the last one, whose sums are not stored again.
    void AtRow(uint32_t row, const std::function<void()>& code) {
        Id index = b_.Add(m_first_, e_.U(row));
        if (!m_divisible_) {
            index = b_.Select(b_.ULess(index, m_end_), index, b_.Sub(m_end_, e_.U(1)));
        }
        e_.OpenScope();
        e_.BindFromIndex(product_.m, index);
        code();
        for (const Loop& loop : product_.m) {
            e_.Unbind(loop.variable);
        }
        e_.CloseScope();
    }

    // The loops of k from `depth` on, but for the last one, which is a word.
    Ids Along(size_t depth, std::span<const Id> carried) {
        const size_t loops = product_.k.size() - 1;
        if (depth == loops) {
            return Words(carried, false);
        }
        if (depth + 1 == loops) {
            // Outside of the innermost loop it is known whether its words are in the padding.
            const Id inside = AllInside(product_.k[depth].variable);
            if (inside != 0) {
                return b_.If(
                    inside, [&] { return LoopAt(depth, carried, true); },
                    [&] { return LoopAt(depth, carried, false); });
            }
        }
        return LoopAt(depth, carried, false);
    }

    Ids LoopAt(size_t depth, std::span<const Id> carried, bool inside) {
        const Loop& loop = product_.k[depth];
        const bool innermost = depth + 2 == product_.k.size();
        return b_.For(e_.U(0), e_.EmitExtent(loop.extent), e_.U(1), carried,
                      [&](Id index, std::span<const Id> values) {
                          e_.OpenScope();
                          e_.Bind(loop.variable, loop.extent, index);
                          Ids next = innermost ? Words(values, inside) : Along(depth + 1, values);
                          e_.Unbind(loop.variable);
                          e_.CloseScope();
                          return next;
                      });
    }

    Emitter::Access AccessOfA() { return e_.AccessOf(bytes_.a.buffer, bytes_.a.index); }

    // Whether the words of all rows are inside of a; 0 if that depends on `variable` or is known.
    Id AllInside(const Symbol& variable) {
        Id all = 0;
        for (uint32_t row = 0; row < rows_; ++row) {
            bool depends = false;
            AtRow(row, [&] {
                const Emitter::Access access = AccessOfA();
                for (const auto& [index, extent] : access.checks) {
                    depends = depends || index.Uses(variable);
                }
                if (!depends && !access.checks.empty()) {
                    const Id inside = e_.EmitChecks(access);
                    all = all == 0 ? inside : b_.And(all, inside);
                }
            });
            if (depends) {
                return 0;
            }
        }
        return all;
    }

    Id Word(Id words, const Expr& offset) {
        const Expr place_in_words = FloorDiv(offset, bytes_.floats ? 2 : 4);
        const Id place = e_.EmitExpr(e_.Simplified(place_in_words));
        return b_.Load(b_.ElementPointer(words, place));
    }

    Ids Words(std::span<const Id> sums, bool inside) {
        const Id b = Word(b_words_, e_.AccessOf(bytes_.b.buffer, bytes_.b.index).offset);
        Ids next;
        for (uint32_t row = 0; row < rows_; ++row) {
            AtRow(row, [&] {
                const Emitter::Access access = AccessOfA();
                const auto load = [&] { return Ids{Word(a_words_, access.offset)}; };
                const Id checks = inside ? b_.True() : e_.EmitChecks(access);
                const Id a = b_.If(checks, load, [&] { return Ids{e_.U(bytes_.otherwise)}; })[0];
                next.push_back(bytes_.floats ? AddFloats(a, b, sums[row])
                                             : b_.Add(sums[row], Dot(a, b)));
            });
        }
        return next;
    }

    Id Dot(Id a, Id b) {
        constexpr uint32_t kPacked4x8 = 0;  // PackedVectorFormat4x8Bit
        Op op = Op::OpSUDot;                // the first is signed
        if (bytes_.a_signed == bytes_.b_signed) {
            op = bytes_.a_signed ? Op::OpSDot : Op::OpUDot;
        }
        const bool swap = op == Op::OpSUDot && bytes_.b_signed;
        return b_.Emit(op, b_.U32(), {swap ? b : a, swap ? a : b, kPacked4x8});
    }

    // The sum and the products of two words' bf16.
    Id AddFloats(Id a, Id b, Id sum) {
        if (e_.target_.bfloat16_dot) {
            const Id type = b_.Vector(b_.BFloat16(), 2);
            return b_.Emit(Op::OpFDot2MixAcc32VALVE, b_.F32(),
                           {e_.BitsAs(type, a), e_.BitsAs(type, b), sum});
        }
        const auto lower = [&](Id word) {
            return e_.BitsAs(b_.F32(), b_.Op(Op::OpShiftLeftLogical, b_.U32(), {word, e_.U(16)}));
        };
        const auto upper = [&](Id word) {
            return e_.BitsAs(b_.F32(),
                             b_.Op(Op::OpBitwiseAnd, b_.U32(), {word, e_.U(0xFFFF0000U)}));
        };
        return e_.Fma(upper(a), upper(b), e_.Fma(lower(a), lower(b), sum));
    }

    Emitter& e_;
    spirv::ModuleBuilder& b_;
    const Product& product_;
    const ByteProduct& bytes_;
    Id a_words_ = 0, b_words_ = 0;  // the operands' buffers as words
    uint32_t rows_ = 1;             // of a tile
    bool m_divisible_ = false;
    Id m_first_ = 0, m_end_ = 0;
};

bool Emitter::EmitByteProduct(const Product& product) {
    const std::optional<ByteProduct> bytes = FindByteProduct(kernel_, scope_, product);
    if (!bytes ||
        (bytes->floats ? !target_.storage_16bit : !target_.integer_dot || !target_.storage_8bit)) {
        return false;
    }
    ByteProductEmitter(*this, product, *bytes).Run();
    return true;
}

}  // namespace fornax::graph::loop
