// Archives in memory, through libzip.
#include "tools/tensors/npz.h"

#include <zip.h>

#include <algorithm>
#include <array>
#include <memory>

#include <fmt/format.h>

#include "tools/tensors/npy.h"

namespace fornax::tensors {
namespace {

// What a small file can unpack to.
constexpr uint64_t kMaxUnpackedBytes = uint64_t{16} << 30;
constexpr int64_t kMaxArrays = 1 << 14;
// The record at the end of every archive, here of none.
constexpr std::array<uint8_t, 22> kEmptyArchive = {'P', 'K', 5, 6};

struct CloseArchive {
    void operator()(zip_t* archive) const { zip_discard(archive); }
};
struct FreeSource {
    void operator()(zip_source_t* source) const { zip_source_free(source); }
};
struct CloseFile {
    void operator()(zip_file_t* file) const { zip_fclose(file); }
};

Error Invalid(std::string clause) {
    return {ErrorCode::kInvalidArgument, std::move(clause)};
}

Result<NamedTensor> ReadEntry(zip_t* archive, uint64_t index, uint64_t& unpacked_bytes) {
    zip_stat_t entry;
    zip_stat_init(&entry);
    if (zip_stat_index(archive, index, 0, &entry) != 0 || (entry.valid & ZIP_STAT_NAME) == 0 ||
        (entry.valid & ZIP_STAT_SIZE) == 0) {
        return Invalid(fmt::format("its entry {} cannot be read", index));
    }
    std::string name = entry.name;
    unpacked_bytes += entry.size;
    if (unpacked_bytes > kMaxUnpackedBytes || entry.size > kMaxUnpackedBytes) {
        return Invalid(fmt::format("its arrays take more than {} bytes", kMaxUnpackedBytes));
    }
    const std::unique_ptr<zip_file_t, CloseFile> file(zip_fopen_index(archive, index, 0));
    if (file == nullptr) {
        return Invalid(fmt::format("its array {} cannot be read: {}", name, zip_strerror(archive)));
    }
    // Grows with what there is: the size that the archive states need not be true.
    std::vector<uint8_t> bytes;
    while (bytes.size() <= entry.size) {
        const size_t old_size = bytes.size();
        bytes.resize(std::min<uint64_t>(entry.size + 1, old_size + (size_t{16} << 20)));
        const int64_t count =
            zip_fread(file.get(), bytes.data() + old_size, bytes.size() - old_size);
        if (count < 0) {
            return Invalid(fmt::format("its array {} is damaged", name));
        }
        bytes.resize(old_size + static_cast<size_t>(count));
        if (count == 0) {
            break;
        }
    }
    if (bytes.size() != entry.size) {
        return Invalid(fmt::format("its array {} does not have the {} bytes that it states", name,
                                   entry.size));
    }
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

}  // namespace

Result<std::vector<NamedTensor>> ParseNpz(std::span<const uint8_t> file) {
    zip_error_t error;
    zip_error_init(&error);
    zip_source_t* source = zip_source_buffer_create(file.data(), file.size(), 0, &error);
    const std::unique_ptr<zip_t, CloseArchive> archive(
        source == nullptr ? nullptr : zip_open_from_source(source, ZIP_RDONLY, &error));
    if (archive == nullptr) {
        if (source != nullptr) {
            zip_source_free(source);
        }
        return Invalid("it is not an .npz file");
    }
    const int64_t count = zip_get_num_entries(archive.get(), 0);
    // libzip takes an empty file for an archive.
    if (count <= 0 && !std::ranges::equal(file, kEmptyArchive)) {
        return Invalid("it is not an .npz file");
    }
    if (count > kMaxArrays) {
        return Invalid(fmt::format("its {} arrays exceed the limit of {}", count, kMaxArrays));
    }
    std::vector<NamedTensor> tensors;
    uint64_t unpacked_bytes = 0;
    for (int64_t i = 0; i < count; ++i) {
        FORNAX_ASSIGN_OR_RETURN(NamedTensor tensor,
                                ReadEntry(archive.get(), static_cast<uint64_t>(i), unpacked_bytes));
        tensors.push_back(std::move(tensor));
    }
    return tensors;
}

Result<std::string> FormatNpz(const std::vector<NamedTensor>& tensors) {
    if (tensors.empty()) {  // libzip writes nothing then
        return std::string(kEmptyArchive.begin(), kEmptyArchive.end());
    }
    const Error failure{ErrorCode::kInternal, "the archive cannot be made"};
    zip_error_t error;
    zip_error_init(&error);
    const std::unique_ptr<zip_source_t, FreeSource> bytes(
        zip_source_buffer_create(nullptr, 0, 0, &error));
    if (bytes == nullptr) {
        return failure;
    }
    zip_source_keep(bytes.get());  // one share for the archive, one for reading it afterwards
    std::unique_ptr<zip_t, CloseArchive> archive(
        zip_open_from_source(bytes.get(), ZIP_TRUNCATE, &error));
    if (archive == nullptr) {
        zip_source_free(bytes.get());
        return failure;
    }
    std::vector<std::string> files;  // until the archive is closed
    files.reserve(tensors.size());
    for (const NamedTensor& entry : tensors) {
        const std::string& file = files.emplace_back(FormatNpy(entry.tensor));
        zip_source_t* data = zip_source_buffer(archive.get(), file.data(), file.size(), 0);
        const std::string name = entry.name + ".npy";
        const int64_t index =
            data == nullptr ? -1
                            : zip_file_add(archive.get(), name.c_str(), data, ZIP_FL_ENC_UTF_8);
        if (index < 0) {
            zip_source_free(data);
            return Invalid(fmt::format("the array {} cannot be added to the archive: {}",
                                       entry.name, zip_strerror(archive.get())));
        }
        zip_set_file_compression(archive.get(), static_cast<uint64_t>(index), ZIP_CM_STORE, 0);
    }
    if (zip_close(archive.get()) != 0) {
        return failure;
    }
    (void)archive.release();  // closed
    zip_stat_t state;
    zip_stat_init(&state);
    if (zip_source_open(bytes.get()) != 0 || zip_source_stat(bytes.get(), &state) != 0) {
        return failure;
    }
    std::string file(state.size, '\0');
    const int64_t count = zip_source_read(bytes.get(), file.data(), file.size());
    zip_source_close(bytes.get());
    if (count != static_cast<int64_t>(file.size())) {
        return failure;
    }
    return file;
}

}  // namespace fornax::tensors
