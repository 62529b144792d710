// The file of an FX graph: a header, the structure of fx_graph.fbs, and the weights.
//
// Files are not trusted: a GraphFile has been proved to lie within its bytes, and what its
// structure refers to by number is checked by whoever follows the reference.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "compiler/graph/ir/types.h"

namespace fornax::torch_frontend {

namespace stored {
struct Program;
}  // namespace stored

inline constexpr std::string_view kMagic = "FNXTORCH";
inline constexpr uint32_t kFormatVersion = 1;
inline constexpr size_t kHeaderBytes = 64;
// Weights begin at multiples of this.
inline constexpr size_t kWeightAlignment = 64;

// The kinds of sizes and arguments in the file; new ones are added at the end.
enum class SizeKind : uint8_t { kConstant, kSymbol, kAdd, kMul, kFloorDiv, kMod, kMin, kMax };
inline constexpr SizeKind kLastSizeKind = SizeKind::kMax;
enum class ArgumentKind : uint8_t {
    kNone,
    kValue,  // index: of a value
    kSize,   // index: of a size
    kFloat,  // number
    kBool,   // index: 0 or 1
    kText,   // text
    kType,   // index: an element type
    kList,   // items
};
inline constexpr uint32_t kNoValue = UINT32_MAX;

// The bytes before the structure, little-endian.
struct Header {
    char magic[8];
    uint32_t version;
    uint32_t structure_crc;  // CRC-32 as zlib has it
    uint64_t structure_bytes;
    uint64_t weights_offset;  // a multiple of kWeightAlignment
    uint64_t weights_bytes;
    uint8_t zeros[24];
};
static_assert(sizeof(Header) == kHeaderBytes);

struct GraphFile {
    const stored::Program* program = nullptr;  // lives as long as `bytes`
    graph::Bytes bytes;                        // of the structure
    std::vector<graph::Bytes> weights;         // the part for weights, in pieces
    std::string directory;                     // of files beside it; "": there are none
};

// Where pieces begin and end, one behind the other.
class PieceIndex {
  public:
    explicit PieceIndex(std::span<const graph::Bytes> pieces);
    uint64_t size() const { return ends_.empty() ? 0 : ends_.back(); }
    // `size` bytes from `offset` on, or nothing where no piece has all of them.
    std::optional<graph::Bytes> Part(uint64_t offset, uint64_t size) const;

  private:
    std::vector<graph::Bytes> pieces_;
    std::vector<uint64_t> ends_;
};

uint32_t Crc32(std::span<const uint8_t> bytes);
bool LooksLikeGraphFile(std::span<const std::byte> bytes);
// `name` is for messages. The error is kDataLoss for a file that is damaged or cut short, and
// kUnsupported for one of another version. What lies behind `bytes` may be in further pieces; then
// `bytes` has the header and the structure.
Result<GraphFile> ReadGraphFile(const graph::Bytes& bytes,
                                const std::string& name,
                                std::string directory,
                                std::span<const graph::Bytes> pieces = {});

}  // namespace fornax::torch_frontend
