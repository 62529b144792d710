// Files of cost records: what a driver or a plan writes, and `fornax profile` and `fornax sweep`
// replay.
//
// JSON lines, UTF-8, so that any program reads them:
//
//   {"fornax_npu_records":1,"model":2,"records":2}      format, version of the model, how many
//   follow
//   {"dispatch":"conv1","workgroups":64,...}            a record a line, in the order of
//   submission;
//   {"copy":"weights","kind":"from-host","bytes":4096}  keys that have their default value are left
//   out
//   {"checksum":"0123..."}                              XXH3-128 of the lines before
//
// A file that is edited by hand leaves the checksum out. Files are not trusted: the size of a file,
// of a line and of every number is bounded, and keys that the version does not know are refused.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "npu/replay/records.h"

namespace fornax::npu {

// Raised when older readers would not understand a file.
inline constexpr uint64_t kRecordFileVersion = 1;
inline constexpr size_t kMaxRecordFileBytes = size_t{512} << 20;
inline constexpr size_t kMaxRecordLineBytes = size_t{1} << 20;
inline constexpr size_t kMaxRecordsOfFile = 4'000'000;

// Replaces or creates the file; a failure leaves what was there (base/file.h). Fails
// (kInvalidArgument) where a reader would refuse the records. Bytes of names that are not UTF-8
// become U+FFFD.
Status WriteRecordFile(const std::filesystem::path& path, std::span<const Record> records);

// Fails as ReadTextFile(), and with kDataLoss and a sentence with the file, the line, the key, its
// value and the limit. What it returns has passed CheckRecords().
Result<std::vector<Record>> ReadRecordFile(const std::filesystem::path& path);

// The file's text, and its reader; `source` names it in messages.
Result<std::string> RecordText(std::span<const Record> records);
Result<std::vector<Record>> ParseRecords(std::string_view text, const std::string& source);

}  // namespace fornax::npu
