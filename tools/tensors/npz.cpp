// Archives in memory, through minizip.
#include "tools/tensors/npz.h"

#include <minizip/unzip.h>
#include <minizip/zip.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <memory>
#include <set>
#include <type_traits>

#include <fmt/format.h>

#include "tools/tensors/npy.h"

namespace fornax::tensors {
namespace {

// What a small file can unpack to.
constexpr uint64_t kMaxUnpackedBytes = uint64_t{16} << 30;
constexpr uint64_t kMaxArrays = 1 << 14;
// So much is unpacked or packed at a time.
constexpr size_t kChunkBytes = size_t{16} << 20;
// The record at the end of every archive, here of none.
constexpr std::array<uint8_t, 22> kEmptyArchive = {'P', 'K', 5, 6};
// APPNOTE 6.3.10 section 4.4.4: bits of an entry's flags.
constexpr uLong kIsEncrypted = 1;
constexpr uLong kNameIsUtf8 = 1 << 11;
constexpr size_t kMaxNameBytes = UINT16_MAX;

struct CloseReader {
    void operator()(void* archive) const { unzClose(archive); }
};
using Reader = std::unique_ptr<std::remove_pointer_t<unzFile>, CloseReader>;

Error Invalid(std::string clause) {
    return {ErrorCode::kInvalidArgument, std::move(clause)};
}

// A file in memory, which minizip reads and writes through functions.
struct MemoryFile {
    std::span<const uint8_t> input;
    std::string output;
    uint64_t at = 0;

    static MemoryFile& Of(void* opaque) { return *static_cast<MemoryFile*>(opaque); }
    uint64_t size() const { return std::max<uint64_t>(input.size(), output.size()); }

    static uLong Read(void* opaque, void* /*stream*/, void* to, uLong bytes) {
        MemoryFile& file = Of(opaque);
        const uint64_t left = file.at < file.input.size() ? file.input.size() - file.at : 0;
        const uLong count = std::min<uint64_t>(bytes, left);
        if (count > 0) {
            std::memcpy(to, file.input.data() + file.at, count);
        }
        file.at += count;
        return count;
    }
    static uLong Write(void* opaque, void* /*stream*/, const void* from, uLong bytes) {
        MemoryFile& file = Of(opaque);
        if (file.output.size() < file.at + bytes) {
            file.output.resize(file.at + bytes);
        }
        if (bytes > 0) {
            std::memcpy(file.output.data() + file.at, from, bytes);
        }
        file.at += bytes;
        return bytes;
    }
    static long Seek(void* opaque, void* /*stream*/, ZPOS64_T offset, int origin) {
        MemoryFile& file = Of(opaque);
        const uint64_t from = origin == SEEK_SET ? 0 : origin == SEEK_CUR ? file.at : file.size();
        if (offset > file.size() - std::min(from, file.size())) {
            return -1;
        }
        file.at = from + offset;
        return 0;
    }

    zlib_filefunc64_def Functions() {
        return {
            .zopen64_file = [](void* opaque, const void*, int) { return opaque; },
            .zread_file = &Read,
            .zwrite_file = &Write,
            .ztell64_file = [](void* opaque, void*) -> ZPOS64_T { return Of(opaque).at; },
            .zseek64_file = &Seek,
            .zclose_file = [](void*, void*) { return 0; },
            .zerror_file = [](void*, void*) { return 0; },
            .opaque = this,
        };
    }
};

// Unpacks the entry at which the archive stands.
Result<std::vector<uint8_t>> Unpack(unzFile archive, const std::string& name, uint64_t size) {
    if (unzOpenCurrentFile(archive) != UNZ_OK) {
        return Invalid(fmt::format("its array {} cannot be read", name));
    }
    // Grows with what there is: the size that the archive states need not be true.
    std::vector<uint8_t> bytes;
    int count = 1;
    while (bytes.size() <= size && count > 0) {
        const size_t old_size = bytes.size();
        bytes.resize(std::min<uint64_t>(size + 1, old_size + kChunkBytes));
        count = unzReadCurrentFile(archive, bytes.data() + old_size,
                                   static_cast<unsigned>(bytes.size() - old_size));
        bytes.resize(old_size + static_cast<size_t>(std::max(count, 0)));
    }
    // The checksum is compared when an entry is closed that was read to its end.
    if (unzCloseCurrentFile(archive) != UNZ_OK || count < 0) {
        return Invalid(fmt::format("its array {} is damaged", name));
    }
    if (bytes.size() != size) {
        return Invalid(
            fmt::format("its array {} does not have the {} bytes that it states", name, size));
    }
    return bytes;
}

Result<NamedTensor> ReadEntry(unzFile archive, uint64_t index, uint64_t& unpacked_bytes) {
    unz_file_info64 entry;
    std::string name(kMaxNameBytes + 1, '\0');
    if (unzGetCurrentFileInfo64(archive, &entry, name.data(), name.size(), nullptr, 0, nullptr,
                                0) != UNZ_OK) {
        return Invalid(fmt::format("its entry {} cannot be read", index));
    }
    name.resize(std::strlen(name.c_str()));
    unpacked_bytes += std::min<uint64_t>(entry.uncompressed_size, kMaxUnpackedBytes + 1);
    if (unpacked_bytes > kMaxUnpackedBytes) {
        return Invalid(fmt::format("its arrays take more than {} bytes", kMaxUnpackedBytes));
    }
    if ((entry.flag & kIsEncrypted) != 0) {
        return Invalid(fmt::format("its array {} is encrypted", name));
    }
    FORNAX_ASSIGN_OR_RETURN(const std::vector<uint8_t> bytes,
                            Unpack(archive, name, entry.uncompressed_size));
    if (name.ends_with(".npy")) {
        name.resize(name.size() - 4);
    }
    Result<graph::Tensor> tensor = ParseNpy(bytes);
    if (!tensor.ok()) {
        return Error{tensor.error().code,
                     fmt::format("its array {}: {}", name, tensor.error().message)};
    }
    return NamedTensor{std::move(name), std::move(*tensor)};
}

bool PackEntry(zipFile archive, const std::string& name, const std::string& file) {
    zip_fileinfo info = {};
    info.tmz_date.tm_mday = 1;
    info.tmz_date.tm_year = 1980;  // the first that an archive can have: equal arrays, equal bytes
    const int is_large = file.size() >= UINT32_MAX ? 1 : 0;
    if (zipOpenNewFileInZip4_64(archive, name.c_str(), &info, nullptr, 0, nullptr, 0, nullptr, 0, 0,
                                0, -MAX_WBITS, DEF_MEM_LEVEL, Z_DEFAULT_STRATEGY, nullptr, 0, 0,
                                kNameIsUtf8, is_large) != ZIP_OK) {
        return false;
    }
    for (size_t at = 0; at < file.size(); at += kChunkBytes) {
        if (zipWriteInFileInZip(archive, file.data() + at,
                                static_cast<unsigned>(std::min(kChunkBytes, file.size() - at))) !=
            ZIP_OK) {
            return false;
        }
    }
    return zipCloseFileInZip(archive) == ZIP_OK;
}

}  // namespace

Result<std::vector<NamedTensor>> ParseNpz(std::span<const uint8_t> file) {
    if (std::ranges::equal(file, kEmptyArchive)) {  // which minizip does not open
        return std::vector<NamedTensor>();
    }
    MemoryFile memory = {.input = file};
    zlib_filefunc64_def functions = memory.Functions();
    const Reader archive(unzOpen2_64(nullptr, &functions));
    unz_global_info64 info = {};
    if (archive == nullptr || unzGetGlobalInfo64(archive.get(), &info) != UNZ_OK ||
        info.number_entry == 0) {
        return Invalid("it is not an .npz file");
    }
    if (info.number_entry > kMaxArrays) {
        return Invalid(
            fmt::format("its {} arrays exceed the limit of {}", info.number_entry, kMaxArrays));
    }
    std::vector<NamedTensor> tensors;
    uint64_t unpacked_bytes = 0;
    for (uint64_t i = 0; i < info.number_entry; ++i) {
        if ((i == 0 ? unzGoToFirstFile(archive.get()) : unzGoToNextFile(archive.get())) != UNZ_OK) {
            return Invalid(fmt::format("its entry {} cannot be read", i));
        }
        FORNAX_ASSIGN_OR_RETURN(NamedTensor tensor, ReadEntry(archive.get(), i, unpacked_bytes));
        tensors.push_back(std::move(tensor));
    }
    return tensors;
}

Result<std::string> FormatNpz(const std::vector<NamedTensor>& tensors) {
    MemoryFile memory;
    zlib_filefunc64_def functions = memory.Functions();
    const zipFile archive = zipOpen2_64(nullptr, APPEND_STATUS_CREATE, nullptr, &functions);
    if (archive == nullptr) {
        return Error{ErrorCode::kInternal, "the archive cannot be made"};
    }
    std::string refused;
    std::set<std::string> names;
    for (const NamedTensor& entry : tensors) {
        const std::string name = entry.name + ".npy";
        if (name.size() > kMaxNameBytes || name.find('\0') != std::string::npos) {
            refused = fmt::format(
                "the name of an array has {} bytes, or one of 0; an archive's "
                "names have {} at most, and none",
                name.size(), kMaxNameBytes);
        } else if (!names.insert(name).second) {
            refused = fmt::format("two arrays have the name {}", entry.name);
        } else if (!PackEntry(archive, name, FormatNpy(entry.tensor))) {
            refused = fmt::format("the array {} cannot be added to the archive", entry.name);
        }
        if (!refused.empty()) {
            break;
        }
    }
    const int closed = zipClose(archive, nullptr);
    if (!refused.empty()) {
        return Invalid(std::move(refused));
    }
    if (closed != ZIP_OK) {
        return Error{ErrorCode::kInternal, "the archive cannot be made"};
    }
    return std::move(memory.output);
}

}  // namespace fornax::tensors
