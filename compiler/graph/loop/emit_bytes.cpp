// Sums of products of bytes and of bf16: tiles of rows by columns in registers.
//
// An invocation computes one column of a few rows. Along k it takes words, four bytes or two bf16
// at a time: of b its own, of a one for all invocations, and adds their dot product to the row's
// sum. So a multiplication costs a quarter or half of one of f32, and nothing is converted.
//
// A sum over blocks takes the words of b of a block into registers, which all rows multiply by.
#include <algorithm>
#include <span>

#include "compiler/graph/loop/block_product.h"
#include "compiler/graph/loop/byte_product.h"
#include "compiler/graph/loop/emitter.h"

namespace fornax::graph::loop {

using spv::Op;

namespace {

// Rows of a tile, the best first. Others are chosen where the last tile would waste more.
constexpr int64_t kRowsOfTile[] = {8, 7, 10};
// For subgroups of less than 32, two registers of 256 bits: there are 16 of these.
constexpr int64_t kRowsOfSmallTile[] = {3, 4, 2};
constexpr double kPriceOfOtherRows = 1.04;
// What a tile costs beside its rows, in rows.
constexpr double kPriceOfTile = 0.5;
constexpr uint32_t kLanesOfBlocks = 16;

int64_t RowsOfTile(int64_t rows, std::span<const int64_t> choices) {
    int64_t best = choices[0];
    double best_cost = 0;
    for (const int64_t of_tile : choices) {
        const int64_t tiles = (rows + of_tile - 1) / of_tile;
        const double cost = static_cast<double>(tiles) *
                            (static_cast<double>(of_tile) + kPriceOfTile) *
                            (of_tile == choices[0] ? 1 : kPriceOfOtherRows);
        if (of_tile == choices[0] || cost < best_cost) {
            best = of_tile;
            best_cost = cost;
        }
    }
    return best;
}

}  // namespace

class ByteProductEmitter {
  public:
    // `blocks`, if not null, is the sum that the product is in.
    ByteProductEmitter(Emitter& emitter,
                       const Product& product,
                       const ByteProduct& bytes,
                       const BlockProduct* blocks = nullptr)
        : e_(emitter), b_(emitter.b_), product_(product), bytes_(bytes), blocks_(blocks) {
        a_words_ = b_.StorageBuffer(bytes.a.buffer.value(), b_.U32(), false);
        for (const ByteProduct::Bits& bits : bytes.b) {
            b_words_.push_back(b_.StorageBuffer(bits.word.buffer.value(), b_.U32(), false));
        }
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
        const std::span<const int64_t> choices =
            e_.target_.subgroup_size < 32 ? std::span(kRowsOfSmallTile) : std::span(kRowsOfTile);
        const int64_t rows = blocks_ == nullptr ? RowsOfTile(most, choices) : kRowsOfBlocks;
        rows_ = static_cast<uint32_t>(std::min(rows, most));
        e_.local_size_ = blocks_ == nullptr ? e_.target_.subgroup_size : kLanesOfBlocks;
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
        const bool floats = bytes_.floats || blocks_ != nullptr;
        const Ids zero(rows_, floats ? e_.F(0) : e_.U(0));
        const Ids sums = blocks_ == nullptr ? Along(0, zero) : AlongBlocks(0, zero);
        const ScalarId sum = blocks_ == nullptr ? product_.sum : blocks_->sum;
        std::vector<const Store*> stores;
        for (const Store& store : e_.kernel_.stores) {
            stores.push_back(&store);
        }
        for (uint32_t row = 0; row < rows_; ++row) {
            const auto store = [&] {
                AtRow(row, [&] {
                    e_.scopes_.back().emplace(sum.value(), sums[row]);
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
            const Id inside = AllInside(product_.k[depth]);
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

    // The loops of the blocks from `depth` on.
    Ids AlongBlocks(size_t depth, std::span<const Id> carried) {
        if (depth == blocks_->blocks.size()) {
            return Block(carried);
        }
        const Loop& loop = blocks_->blocks[depth];
        return b_.For(e_.U(0), e_.EmitExtent(loop.extent), e_.U(1), carried,
                      [&](Id index, std::span<const Id> values) {
                          e_.OpenScope();
                          e_.Bind(loop.variable, loop.extent, index);
                          Ids next = AlongBlocks(depth + 1, values);
                          e_.Unbind(loop.variable);
                          e_.CloseScope();
                          return next;
                      });
    }

    // What the term of a block needs, without all that depends on the sum in it.
    std::vector<bool> NeededBesideSum() const {
        std::vector<bool> needed = e_.NeededBefore({&blocks_->term, 1}, product_.sum);
        std::vector<bool> depends(needed.size(), false);
        depends[product_.sum.value()] = true;
        for (size_t i = product_.sum.value() + 1; i < needed.size(); ++i) {
            const ScalarNode& node = e_.kernel_.scalars[i];
            for (const ScalarId operand : OperandsOf(node)) {
                depends[i] = depends[i] || depends[operand.value()];
            }
            for (const Expr& expr : ExpressionsOf(node)) {
                for (const Symbol& symbol : expr.Symbols()) {
                    const std::optional<ScalarId> scalar = ScalarOfSymbol(symbol);
                    depends[i] = depends[i] || (scalar && depends[scalar->value()]);
                }
            }
            needed[i] = needed[i] && !depends[i];
        }
        return needed;
    }

    Ids Block(std::span<const Id> sums) {
        // What the rows have in common, such as scales of columns, is computed once.
        const VariableSet saved = e_.bound_variables_;
        for (const std::vector<Loop>* loops : {&product_.batch, &product_.n, &blocks_->blocks}) {
            for (const Loop& loop : *loops) {
                e_.bound_variables_ |= VariableSet{1} << *e_.scope_.Find(loop.variable);
            }
        }
        e_.Hoist(NeededBesideSum());
        e_.bound_variables_ = saved;
        const std::span<const Loop> loops(product_.k.data(), product_.k.size() - 1);
        Ids words;
        Loaded loaded(bytes_.b.size());
        e_.Unrolled(loops, {}, [&](std::span<const Id>) {
            words.push_back(WordOfB(loaded));
            return Ids();
        });
        Ids next;
        for (uint32_t row = 0; row < rows_; ++row) {
            AtRow(row, [&] {
                size_t word = 0;
                const Ids dot = e_.Unrolled(loops, Ids{e_.U(0)}, [&](std::span<const Id> sum) {
                    const Expr offset = AccessOfA().offset;
                    const Id a = b_.Load(b_.ElementPointer(a_words_, PlaceOf(offset)));
                    return Ids{b_.Add(sum[0], Dot(a, words[word++]))};
                });
                e_.scopes_.back().emplace(product_.sum.value(), dot[0]);
                next.push_back(e_.Binary(Op::OpFAdd, sums[row], e_.Value(blocks_->term)));
            });
        }
        return next;
    }

    Emitter::Access AccessOfA() { return e_.AccessOf(bytes_.a.buffer, bytes_.a.index); }

    // Whether the words of all rows are inside of a at all points of the loop; 0 if that is known
    // or no condition tells it.
    Id AllInside(const Loop& loop) {
        Id all = 0;
        bool linear = true;
        for (uint32_t row = 0; row < rows_; ++row) {
            AtRow(row, [&] {
                Emitter::Access access = AccessOfA();
                std::vector<std::pair<Expr, Expr>> checks;
                for (const auto& [index, extent] : access.checks) {
                    if (!index.Uses(loop.variable)) {
                        checks.emplace_back(index, extent);
                        continue;
                    }
                    // Both ends are inside, and so is what is between.
                    linear = linear && index.Coefficient(loop.variable).has_value();
                    for (const Expr& end : {Expr(0), loop.extent - 1}) {
                        checks.emplace_back(e_.Simplified(index.Substitute({{loop.variable, end}})),
                                            extent);
                    }
                }
                access.checks = std::move(checks);
                if (linear && !access.checks.empty()) {
                    const Id inside = e_.EmitChecks(access);
                    all = all == 0 ? inside : b_.And(all, inside);
                }
            });
        }
        return linear ? all : 0;
    }

    Id PlaceOf(const Expr& offset) {
        return e_.EmitExpr(e_.Simplified(FloorDiv(offset, bytes_.floats ? 2 : 4)));
    }

    Ids Words(std::span<const Id> sums, bool inside) {
        Loaded loaded(bytes_.b.size());
        const Id b = WordOfB(loaded);
        Ids next;
        for (uint32_t row = 0; row < rows_; ++row) {
            AtRow(row, [&] {
                const Emitter::Access access = AccessOfA();
                // Branches would cost more than loading the first word in place of one outside.
                const Id checks = inside ? b_.True() : e_.EmitChecks(access);
                const Id place = b_.Select(checks, PlaceOf(access.offset), e_.U(0));
                const Id word = b_.Load(b_.ElementPointer(a_words_, place));
                const Id a = b_.Select(checks, word, e_.U(bytes_.otherwise));
                next.push_back(bytes_.floats ? AddFloats(a, b, sums[row])
                                             : b_.Add(sums[row], Dot(a, b)));
            });
        }
        return next;
    }

    // Words that are loaded already, by the bits of b that are taken of them and their offset.
    // Several elements of fewer bits share a word.
    using Loaded = std::vector<std::vector<std::pair<Expr, Id>>>;

    // Four elements of b.
    Id WordOfB(Loaded& loaded) {
        Id word = 0;
        for (size_t i = 0; i < bytes_.b.size(); ++i) {
            const Load& load = bytes_.b[i].word;
            const Expr offset = e_.Simplified(e_.AccessOf(load.buffer, load.index).offset);
            auto found = std::find_if(loaded[i].begin(), loaded[i].end(),
                                      [&](const auto& one) { return one.first == offset; });
            if (found == loaded[i].end()) {
                const Id from = b_.Load(b_.ElementPointer(b_words_[i], PlaceOf(offset)));
                found = loaded[i].emplace(loaded[i].end(), offset, from);
            }
            const Id bits = BitsOf(bytes_.b[i], found->second);
            word = i == 0 ? bits : b_.Op(Op::OpBitwiseOr, b_.U32(), {word, bits});
        }
        return word;
    }

    // What of a word's bytes bits of the elements are, at their place.
    Id BitsOf(const ByteProduct::Bits& bits, Id word) {
        const auto shifted = [&](Op op, Id amount) { word = b_.Op(op, b_.U32(), {word, amount}); };
        // A shift that is known and the one to the place are one.
        const Expr shift = e_.Simplified(bits.shift);
        const auto place = static_cast<int64_t>(bits.place);
        const std::optional<int64_t> known = shift.constant();
        if (!known) {
            shifted(Op::OpShiftRightLogical, e_.EmitExpr(shift));
        } else if (*known > place) {
            shifted(Op::OpShiftRightLogical, e_.U(static_cast<uint32_t>(*known - place)));
        }
        const int64_t left = place - known.value_or(0);
        if (left > 0) {
            shifted(Op::OpShiftLeftLogical, e_.U(static_cast<uint32_t>(left)));
        }
        const uint32_t mask = bits.mask << bits.place;
        return mask == 0xFF ? word
                            : b_.Op(Op::OpBitwiseAnd, b_.U32(), {word, e_.U(mask * 0x01010101U)});
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
    const BlockProduct* const blocks_;
    Id a_words_ = 0;     // the operand's buffer as words
    Ids b_words_;        // the same, of each of the element's bits
    uint32_t rows_ = 1;  // of a tile
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

bool Emitter::EmitBlockProduct() {
    const std::optional<BlockProduct> blocks = FindBlockProduct(kernel_, scope_);
    if (!blocks || !target_.integer_dot || !target_.storage_8bit) {
        return false;
    }
    ByteProductEmitter(*this, blocks->product, blocks->bytes, &*blocks).Run();
    return true;
}

}  // namespace fornax::graph::loop
