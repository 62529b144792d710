// Sums of products of bytes and of bf16 (emit_bytes.h).
#include "compiler/graph/loop/emit_bytes.h"

#include <algorithm>
#include <span>

#include "compiler/graph/loop/block_product.h"
#include "compiler/graph/loop/byte_product.h"

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

class ByteProductMapping : MappingPart {
  public:
    // `blocks`, if not null, is the sum that the product is in.
    ByteProductMapping(KernelParts& parts,
                       const Product& product,
                       const ByteProduct& bytes,
                       const BlockProduct* blocks = nullptr)
        : MappingPart(parts), product_(product), bytes_(bytes), blocks_(blocks) {
        a_words_ = b_.StorageBuffer(bytes.a.buffer.value(), b_.U32(), false);
        for (const ByteProduct::Bits& bits : bytes.b) {
            b_words_.push_back(b_.StorageBuffer(bits.word.buffer.value(), b_.U32(), false));
        }
        if (!bytes_.floats) {
            b_.Capability(spv::Capability::DotProduct);
            b_.Capability(spv::Capability::DotProductInput4x8BitPacked);
            b_.Extension("SPV_KHR_integer_dot_product");
        } else if (target_.bfloat16_dot) {
            b_.Capability(spv::Capability::BFloat16TypeKHR);
            b_.Capability(spv::Capability::DotProductBFloat16AccVALVE);
            b_.Extension("SPV_KHR_bfloat16");
            b_.Extension("SPV_VALVE_mixed_float_dot_product");
        }
    }

    void Run() {
        const Expr m = PointsOf(product_.m), n = PointsOf(product_.n);
        const int64_t most = std::max<int64_t>(m.Bounds(domain_.ranges).high, 1);
        const std::span<const int64_t> choices =
            target_.subgroup_size < 32 ? std::span(kRowsOfSmallTile) : std::span(kRowsOfTile);
        const int64_t rows = blocks_ == nullptr ? RowsOfTile(most, choices) : kRowsOfBlocks;
        rows_ = static_cast<uint32_t>(std::min(rows, most));
        grid_.SetLocalSize(blocks_ == nullptr ? target_.subgroup_size : kLanesOfBlocks);
        const Expr m_tiles = CeilDiv(m, rows_).Simplify(domain_);
        const Expr n_tiles = CeilDiv(n, grid_.local_size()).Simplify(domain_);
        const TileGrid grid = grid_.OpenTiles(PointsOf(product_.batch), m_tiles, n_tiles);
        grid_.LoadLane();
        b_.If(grid.inside, [&] {
            const ValueScope scope(point_);
            index_.BindFromIndex(product_.batch, grid.batch);
            m_first_ = b_.Mul(grid.m, U(rows_));
            m_end_ = index_.EmitSimplified(m);
            m_divisible_ = nests_.Simplified(Mod(m, rows_)) == Expr(0);
            const Id first = b_.Mul(grid.n, U(grid_.local_size()));
            grid_.AtLanePoint(first, n, [&](Id column) { EmitColumn(column); });
        });
    }

  private:
    void EmitColumn(Id column) {
        const ValueScope scope(point_);
        index_.BindFromIndex(product_.n, column);
        const bool floats = bytes_.floats || blocks_ != nullptr;
        const Ids zero(rows_, floats ? F(0) : U(0));
        const Ids sums = blocks_ == nullptr ? Along(0, zero) : AlongBlocks(zero);
        const ScalarId sum = blocks_ == nullptr ? product_.sum : blocks_->sum;
        const std::vector<const Store*> stores = StoresOf(kernel_);
        for (uint32_t row = 0; row < rows_; ++row) {
            const auto store = [&] {
                AtRow(row, [&] {
                    point_.Add(sum, sums[row]);
                    stores_.Emit(stores);
                });
            };
            if (m_divisible_) {
                store();
            } else {
                b_.If(b_.ULess(b_.Add(m_first_, U(row)), m_end_), store);
            }
        }
    }

    // The row's index; behind the last one it is the last one, whose sums are not stored again.
    void AtRow(uint32_t row, const std::function<void()>& code) {
        Id index = b_.Add(m_first_, U(row));
        if (!m_divisible_) {
            index = b_.Select(b_.ULess(index, m_end_), index, b_.Sub(m_end_, U(1)));
        }
        const ValueScope scope(point_);
        index_.BindFromIndex(product_.m, index);
        code();
        index_.Unbind(product_.m);
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
        const bool innermost = depth + 2 == product_.k.size();
        return loops_.ForLoop(product_.k[depth], carried, [&](std::span<const Id> values) {
            return innermost ? Words(values, inside) : Along(depth + 1, values);
        });
    }

    Ids AlongBlocks(std::span<const Id> carried) {
        return loops_.ForNest(blocks_->blocks, carried,
                              [&](std::span<const Id> sums) { return Block(sums); });
    }

    // What the term of a block needs, without all that depends on the sum in it.
    std::vector<bool> NeededBesideSum() const {
        std::vector<bool> needed = scalars_.NeededBefore({&blocks_->term, 1}, product_.sum);
        std::vector<bool> depends(needed.size(), false);
        depends[product_.sum.value()] = true;
        for (size_t i = product_.sum.value() + 1; i < needed.size(); ++i) {
            const ScalarNode& node = kernel_.scalars[i];
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
        {
            const VariableSet common = scope_.VariablesOf(product_.batch) |
                                       scope_.VariablesOf(product_.n) |
                                       scope_.VariablesOf(blocks_->blocks);
            const BoundVariables bound(point_, common);
            scalars_.Hoist(NeededBesideSum());
        }
        const std::span<const Loop> loops(product_.k.data(), product_.k.size() - 1);
        Ids words;
        Loaded loaded(bytes_.b.size());
        loops_.Unrolled(loops, {}, [&](std::span<const Id>) {
            words.push_back(WordOfB(loaded));
            return Ids();
        });
        Ids next;
        for (uint32_t row = 0; row < rows_; ++row) {
            AtRow(row, [&] {
                size_t word = 0;
                const Ids dot = loops_.Unrolled(loops, Ids{U(0)}, [&](std::span<const Id> sum) {
                    const Expr offset = AccessOfA().offset;
                    const Id a = b_.Load(b_.ElementPointer(a_words_, PlaceOf(offset)));
                    return Ids{b_.Add(sum[0], Dot(a, words[word++]))};
                });
                point_.Add(product_.sum, dot[0]);
                next.push_back(Binary(Op::OpFAdd, sums[row], scalars_.Value(blocks_->term)));
            });
        }
        return next;
    }

    Access AccessOfA() { return index_.AccessOf(bytes_.a.buffer, bytes_.a.index); }

    // Whether the words of all rows are inside of a at all points of the loop; 0 if that is known
    // or no condition tells it.
    Id AllInside(const Loop& loop) {
        Id all = 0;
        bool linear = true;
        for (uint32_t row = 0; row < rows_; ++row) {
            AtRow(row, [&] {
                Access access = AccessOfA();
                std::vector<std::pair<Expr, Expr>> checks;
                for (const auto& [index, extent] : access.checks) {
                    if (!index.Uses(loop.variable)) {
                        checks.emplace_back(index, extent);
                        continue;
                    }
                    // Both ends are inside, and so is what is between.
                    linear = linear && index.Coefficient(loop.variable).has_value();
                    for (const Expr& end : {Expr(0), loop.extent - 1}) {
                        checks.emplace_back(
                            nests_.Simplified(index.Substitute({{loop.variable, end}})), extent);
                    }
                }
                access.checks = std::move(checks);
                if (linear && !access.checks.empty()) {
                    const Id inside = index_.EmitChecks(access);
                    all = all == 0 ? inside : b_.And(all, inside);
                }
            });
        }
        return linear ? all : 0;
    }

    Id PlaceOf(const Expr& offset) {
        return index_.EmitSimplified(FloorDiv(offset, bytes_.floats ? 2 : 4));
    }

    Ids Words(std::span<const Id> sums, bool inside) {
        Loaded loaded(bytes_.b.size());
        const Id b = WordOfB(loaded);
        Ids next;
        for (uint32_t row = 0; row < rows_; ++row) {
            AtRow(row, [&] {
                const Access access = AccessOfA();
                // Branches would cost more than loading the first word in place of one outside.
                const Id checks = inside ? b_.True() : index_.EmitChecks(access);
                const Id place = b_.Select(checks, PlaceOf(access.offset), U(0));
                const Id word = b_.Load(b_.ElementPointer(a_words_, place));
                const Id a = b_.Select(checks, word, U(bytes_.otherwise));
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
            const Expr offset = nests_.Simplified(index_.AccessOf(load.buffer, load.index).offset);
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
        const Expr shift = nests_.Simplified(bits.shift);
        const auto place = static_cast<int64_t>(bits.place);
        const std::optional<int64_t> known = shift.constant();
        if (!known) {
            shifted(Op::OpShiftRightLogical, index_.Emit(shift));
        } else if (*known > place) {
            shifted(Op::OpShiftRightLogical, U(static_cast<uint32_t>(*known - place)));
        }
        const int64_t left = place - known.value_or(0);
        if (left > 0) {
            shifted(Op::OpShiftLeftLogical, U(static_cast<uint32_t>(left)));
        }
        const uint32_t mask = bits.mask << bits.place;
        return mask == 0xFF ? word
                            : b_.Op(Op::OpBitwiseAnd, b_.U32(), {word, U(mask * 0x01010101U)});
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
        if (target_.bfloat16_dot) {
            const Id type = b_.Vector(b_.BFloat16(), 2);
            return b_.Emit(Op::OpFDot2MixAcc32VALVE, b_.F32(),
                           {BitsAs(type, a), BitsAs(type, b), sum});
        }
        const auto lower = [&](Id word) {
            return BitsAs(b_.F32(), b_.Op(Op::OpShiftLeftLogical, b_.U32(), {word, U(16)}));
        };
        const auto upper = [&](Id word) {
            return BitsAs(b_.F32(), b_.Op(Op::OpBitwiseAnd, b_.U32(), {word, U(0xFFFF0000U)}));
        };
        return Fma(upper(a), upper(b), Fma(lower(a), lower(b), sum));
    }

    const Product& product_;
    const ByteProduct& bytes_;
    const BlockProduct* const blocks_;
    Id a_words_ = 0;     // the operand's buffer as words
    Ids b_words_;        // the same, of each of the element's bits
    uint32_t rows_ = 1;  // of a tile
    bool m_divisible_ = false;
    Id m_first_ = 0, m_end_ = 0;
};

}  // namespace

bool EmitByteProduct(KernelParts& parts, const Product& product) {
    const KernelCode& code = parts.code;
    const Target& target = code.module.target;
    const std::optional<ByteProduct> bytes = FindByteProduct(code.kernel, code.scope, product);
    if (!bytes ||
        (bytes->floats ? !target.storage_16bit : !target.integer_dot || !target.storage_8bit)) {
        return false;
    }
    ByteProductMapping(parts, product, *bytes).Run();
    return true;
}

bool EmitBlockProduct(KernelParts& parts) {
    const KernelCode& code = parts.code;
    const Target& target = code.module.target;
    const std::optional<BlockProduct> blocks = FindBlockProduct(code.kernel, code.scope);
    if (!blocks || !target.integer_dot || !target.storage_8bit) {
        return false;
    }
    ByteProductMapping(parts, blocks->product, blocks->bytes, &*blocks).Run();
    return true;
}

}  // namespace fornax::graph::loop
