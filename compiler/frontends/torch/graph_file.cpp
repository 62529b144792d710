// The header, the checksum and the verifier in front of everything that reads an FX graph.
#include "compiler/frontends/torch/graph_file.h"

#include <array>
#include <cstring>

#include <fmt/format.h>

#include "compiler/frontends/torch/fx_graph_generated.h"

namespace fornax::torch_frontend {
namespace {

constexpr std::array<uint32_t, 256> MakeCrcTable() {
    std::array<uint32_t, 256> table = {};
    for (uint32_t i = 0; i < table.size(); ++i) {
        uint32_t value = i;
        for (int bit = 0; bit < 8; ++bit) {
            value = (value >> 1) ^ ((value & 1) != 0 ? 0xedb88320U : 0);
        }
        table[i] = value;
    }
    return table;
}

Error Damaged(const std::string& name, std::string_view why) {
    return {ErrorCode::kDataLoss,
            fmt::format("{}: the file of an FX graph is damaged: {}.", name, why)};
}

}  // namespace

uint32_t Crc32(std::span<const uint8_t> bytes) {
    static constexpr std::array<uint32_t, 256> kTable = MakeCrcTable();
    uint32_t crc = UINT32_MAX;
    for (const uint8_t byte : bytes) {
        crc = (crc >> 8) ^ kTable[(crc ^ byte) & 255];
    }
    return ~crc;
}

bool LooksLikeGraphFile(std::span<const std::byte> bytes) {
    return bytes.size() >= kMagic.size() &&
           std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) == 0;
}

PieceIndex::PieceIndex(std::span<const graph::Bytes> pieces)
    : pieces_(pieces.begin(), pieces.end()) {
    for (const graph::Bytes& piece : pieces_) {
        ends_.push_back(size() + piece->size());
    }
}

std::optional<graph::Bytes> PieceIndex::Part(uint64_t offset, uint64_t size) const {
    const auto end = std::ranges::upper_bound(ends_, offset);
    if (end == ends_.end()) {
        // Nothing, at the end.
        return size == 0 && !pieces_.empty() && offset == this->size()
                   ? std::optional(pieces_.back().Part(pieces_.back()->size(), 0))
                   : std::nullopt;
    }
    const graph::Bytes& piece = pieces_[static_cast<size_t>(end - ends_.begin())];
    const uint64_t begin = *end - piece->size();
    if (size > *end - offset) {
        return std::nullopt;
    }
    return piece.Part(offset - begin, size);
}

Result<GraphFile> ReadGraphFile(const graph::Bytes& bytes,
                                const std::string& name,
                                std::string directory,
                                std::span<const graph::Bytes> pieces) {
    if (!bytes || bytes->size() < kHeaderBytes) {
        return Damaged(name, "it is shorter than its header");
    }
    Header header;
    std::memcpy(&header, bytes->data(), sizeof header);
    if (std::memcmp(header.magic, kMagic.data(), kMagic.size()) != 0) {
        return Damaged(name, "it does not begin with " + std::string(kMagic));
    }
    if (header.version != kFormatVersion) {
        return Error{ErrorCode::kUnsupported,
                     fmt::format("{}: its format has version {}; this Fornax reads version {}.",
                                 name, header.version, kFormatVersion)};
    }
    const uint64_t size = bytes->size();
    const uint64_t size_of_pieces = PieceIndex(pieces).size();
    if (header.structure_bytes > size - kHeaderBytes ||
        header.weights_offset < kHeaderBytes + header.structure_bytes ||
        header.weights_offset % kWeightAlignment != 0 || header.weights_offset > size ||
        header.weights_bytes != size - header.weights_offset + size_of_pieces) {
        return Damaged(name,
                       fmt::format("its parts do not fit its {} bytes", size + size_of_pieces));
    }
    // The structure is copied where its address is not aligned, as bytes in memory may not be.
    graph::Bytes structure = bytes.Part(kHeaderBytes, header.structure_bytes);
    if (reinterpret_cast<uintptr_t>(structure->data()) % 8 != 0) {
        structure = std::make_shared<std::vector<uint8_t>>(structure->begin(), structure->end());
    }
    if (Crc32(*structure) != header.structure_crc) {
        return Damaged(name, "its checksum is wrong");
    }
    flatbuffers::Verifier::Options options;
    options.max_depth = 16;
    options.max_tables = 4'000'000;
    flatbuffers::Verifier verifier(structure->data(), structure->size(), options);
    if (!stored::VerifyProgramBuffer(verifier)) {
        return Damaged(name, "its structure is not valid");
    }
    // The verifier says nothing of where structures in vectors lie.
    const auto* sizes = stored::GetProgram(structure->data())->sizes();
    if (sizes != nullptr &&
        reinterpret_cast<uintptr_t>(sizes->Data()) % alignof(stored::Size) != 0) {
        return Damaged(name, "its sizes are not aligned");
    }
    GraphFile file;
    file.program = stored::GetProgram(structure->data());
    file.weights.push_back(bytes.Part(header.weights_offset, size - header.weights_offset));
    file.weights.insert(file.weights.end(), pieces.begin(), pieces.end());
    file.bytes = std::move(structure);
    file.directory = std::move(directory);
    return file;
}

}  // namespace fornax::torch_frontend
