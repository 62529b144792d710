// Files of records: what is written is read again, and nothing else is.
#include "npu/replay/record_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/test_directory.h"
#include "npu/description/read.h"
#include "npu/replay/test_records.h"

namespace fornax::npu {
namespace {

using testing::HasSubstr;

const char kHeader[] = "{\"fornax_npu_records\":1,\"records\":1}\n";

std::string TextOf(std::span<const Record> records) {
    Result<std::string> text = RecordText(records);
    EXPECT_TRUE(text.ok()) << text.error().message;
    return text.ok() ? *text : std::string();
}

std::string ErrorOf(std::string_view text) {
    const Result<std::vector<Record>> records = ParseRecords(text, "a.jsonl");
    EXPECT_FALSE(records.ok());
    return records.ok() ? "" : records.error().message;
}

// The text of a file of one record.
std::string ErrorOfRecord(std::string_view record) {
    return ErrorOf(kHeader + std::string(record) + "\n");
}

TEST(RecordFile, HoldsEverythingThatAReplayUses) {
    const Description description = *LoadDescription("laptop-45");
    for (uint64_t seed = 0; seed < 300; ++seed) {
        const std::vector<Record> records = RandomRecords(seed, {.queues = 3});
        const std::string text = TextOf(records);
        const Result<std::vector<Record>> read = ParseRecords(text, "a.jsonl");
        ASSERT_TRUE(read.ok()) << read.error().message;
        ASSERT_EQ(TextOf(*read), text);
        const Result<ReplayResult> before = Replay(description, records);
        const Result<ReplayResult> after = Replay(description, *read);
        ASSERT_TRUE(before.ok() && after.ok());
        ASSERT_EQ(before->total, after->total) << text;
        ASSERT_EQ(before->energy.total_nj(), after->energy.total_nj()) << text;
    }
}

TEST(RecordFile, IsAsTheHeaderSays) {
    DispatchRecord dispatch = {.name = "conv \"1\"\n\xff"};
    dispatch.products = {{.shape = {1, 2, 3}, .type = MatrixType::kF16}};
    dispatch.scratchpad = {.least_bytes = 1, .preferred_bytes = 2, .may_spill = false};
    const std::vector<Record> records = {{.work = dispatch},
                                         {.work = CopyRecord{"weights", CopyKind::kFromHost, 4096},
                                          .queue = QueueId(1),
                                          .after = {RecordId(0)},
                                          .begins_submission = true}};
    const std::string text = TextOf(records);
    EXPECT_EQ(
        text.substr(0, text.find("{\"checksum")),
        "{\"fornax_npu_records\":1,\"model\":5,\"records\":2}\n"
        "{\"dispatch\":\"conv \\\"1\\\"\\n\xef\xbf\xbd\",\"products\":[{\"k\":3,\"m\":1,\"n\":"
        "2,\"type\":\"f16\"}],\"request_least_bytes\":1,\"request_may_spill\":false,"
        "\"request_preferred_bytes\":2}\n"
        "{\"after\":[0],\"begins_submission\":true,\"bytes\":4096,\"copy\":\"weights\","
        "\"kind\":\"from-host\",\"queue\":1}\n");
}

TEST(RecordFile, IsReadWithoutAChecksum) {
    const Result<std::vector<Record>> read =
        ParseRecords(std::string(kHeader) + "{\"dispatch\":\"a\",\"workgroups\":7}", "a.jsonl");
    ASSERT_TRUE(read.ok()) << read.error().message;
    EXPECT_EQ(std::get<DispatchRecord>(read->front().work).workgroups, 7U);
}

TEST(RecordFile, ThatIsCutOrDamagedIsRefusedAtEveryByte) {
    const std::string text = TextOf(RandomRecords(5, {.queues = 2}));
    // Without its checksum's line it is as if it was edited; without its last line feed it is
    // whole.
    const size_t checksum = text.rfind("{\"checksum");
    for (size_t size = 0; size + 1 < text.size(); ++size) {
        if (size != checksum && size + 1 != checksum) {
            EXPECT_THAT(ErrorOf(text.substr(0, size)), testing::EndsWith(".")) << size;
        }
    }
    for (size_t i = 0; i < checksum; ++i) {
        std::string damaged = text;
        damaged[i] = static_cast<char>(damaged[i] ^ 1);
        EXPECT_THAT(ErrorOf(damaged), testing::StartsWith("a.jsonl")) << i;
    }
}

TEST(RecordFile, SaysWhatIsWrongWhere) {
    EXPECT_EQ(ErrorOf(""),
              "a.jsonl is no file of cost records: it does not begin with the line of "
              "fornax_npu_records.");
    EXPECT_EQ(ErrorOf("{\"fornax_npu_records\":2,\"records\":0}\n"),
              "a.jsonl is of version 2 of the format; this program reads version 1.");
    EXPECT_EQ(ErrorOf("{\"fornax_npu_records\":1}\n"),
              "a.jsonl, line 1: it lacks the key records, how many follow.");
    EXPECT_EQ(ErrorOf("{\"fornax_npu_records\":1,\"records\":4000001}\n"),
              "a.jsonl, line 1: records is 4000001; it must be a whole number from 0 to 4000000.");
    EXPECT_EQ(ErrorOf(kHeader), "a.jsonl is cut: it has 0 of the 1 records of its first line.");
    EXPECT_EQ(ErrorOfRecord("{\"copy\":\"a\"}\n{\"copy\":\"b\"}"),
              "a.jsonl, line 3: there are more records than the 1 of the first line.");
    EXPECT_EQ(ErrorOfRecord("{\"copy\":1}"),
              "a.jsonl, line 2: it is no record: it has neither the key dispatch nor copy with a "
              "name.");
    EXPECT_EQ(ErrorOfRecord("{\"copy\":\"a\",\"bytes\":-1}"),
              "a.jsonl, line 2: bytes is -1; it must be a whole number from 0 to "
              "18446744073709551615.");
    EXPECT_EQ(ErrorOfRecord("{\"copy\":\"a\",\"bytes\":1000000000000000}"),
              "a.jsonl: Record 0 (a) copies 1000000000000000 bytes; at most 281474976710656 are "
              "allowed.");
    EXPECT_EQ(ErrorOfRecord("{\"copy\":\"a\",\"kind\":\"sideways\"}"),
              "a.jsonl, line 2: kind is \"sideways\"; it must be one of the words device, "
              "from-host, to-host, fill.");
    EXPECT_EQ(ErrorOfRecord("{\"dispatch\":\"a\",\"products\":[{\"m\":1},{\"rows\":1}]}"),
              "a.jsonl, line 2: products[1].rows is no key of version 1.");
    EXPECT_EQ(ErrorOfRecord("{\"dispatch\":\"a\",\"accesses\":{}}"),
              "a.jsonl, line 2: accesses is an object; it must be a list.");
    EXPECT_EQ(ErrorOfRecord("{\"dispatch\":\"a\",\"accesses\":[{\"writes\":1}]}"),
              "a.jsonl, line 2: accesses[0].writes is 1; it must be true or false.");
    EXPECT_EQ(ErrorOfRecord("{\"dispatch\":\"a\",\"after\":[0]}"),
              "a.jsonl: Record 0 (a) waits for record 0, which is not an earlier one.");
    EXPECT_EQ(ErrorOfRecord("{\"dispatch\":\"a\",\"queue\":4096}"),
              "a.jsonl, line 2: queue is 4096; it must be a whole number from 0 to 4095.");
    EXPECT_THAT(ErrorOfRecord("{\"copy\":\"a\",\"bytes\":" + std::string(100'000, '[') + "]}"),
                HasSubstr("lie in each other more than 4 deep"));
    EXPECT_THAT(ErrorOfRecord("{\"copy\":\"" + std::string(kMaxRecordLineBytes, 'a') + "\"}"),
                HasSubstr("a line has at most 1048576"));
    EXPECT_THAT(ErrorOf(TextOf({}) + "{}\n"), HasSubstr("follows the checksum"));
}

TEST(RecordFile, IsWrittenWhole) {
    const TestDirectory directory;
    const std::string path = directory / "records.jsonl";
    const std::vector<Record> records = RandomRecords(1, {});
    ASSERT_TRUE(WriteRecordFile(path, records).ok());
    EXPECT_EQ(TextOf(*ReadRecordFile(path)), TextOf(records));
    EXPECT_EQ(directory.size(), 1U);

    // What may not be written leaves what was there.
    const std::vector<Record> bad = {{.work = CopyRecord{"a", CopyKind::kDevice, UINT64_MAX}}};
    EXPECT_EQ(WriteRecordFile(path, bad).error().code, ErrorCode::kInvalidArgument);
    const std::vector<Record> long_name = {
        {.work = CopyRecord{std::string(kMaxRecordLineBytes, 'a'), CopyKind::kDevice, 1}}};
    EXPECT_THAT(WriteRecordFile(path, long_name).error().message, HasSubstr("at most 1048576"));
    EXPECT_EQ(TextOf(*ReadRecordFile(path)), TextOf(records));
    EXPECT_EQ(directory.size(), 1U);

    EXPECT_FALSE(WriteRecordFile("/dev/full", records).ok());
    EXPECT_EQ(ReadRecordFile(directory / "none").error().code, ErrorCode::kNotFound);
}

TEST(RecordFile, ThatIsTooLargeIsNotRead) {
    const TestDirectory directory;
    const std::string path = directory / "records.jsonl";
    ASSERT_TRUE(WriteOutputFile(path, std::string("{")).ok());
    std::filesystem::resize_file(path, kMaxRecordFileBytes + 1000);  // a hole
    EXPECT_EQ(ReadRecordFile(path).error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace fornax::npu
