// `fornax cache`: lists and clears what Fornax has stored between runs.
#include <ctime>
#include <string>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "base/disk_cache.h"
#include "tools/fornax/command.h"
#include "tools/fornax/text_table.h"

namespace fornax::tool {
namespace {

constexpr const char* kNote =
    "The cache is in $FORNAX_CACHE_DIR, else $XDG_CACHE_HOME/fornax, else ~/.cache/fornax, else a\n"
    "private directory in the temporary directory. Only Fornax's own files there are touched.\n"
    "Beyond $FORNAX_CACHE_MIB MiB (4096 unless set; 0: no limit) what was not used for longest "
    "goes.";

void List() {
    const DiskCache cache(ValueOrExit(CacheDirectory()));
    const std::vector<CacheEntry> entries = cache.List();
    using Align = TextTable::Align;
    TextTable table({"kind", "key", "bytes", "last used"},
                    {Align::kLeft, Align::kLeft, Align::kRight, Align::kLeft});
    uint64_t total = 0;
    for (const CacheEntry& entry : entries) {
        total += entry.size_bytes;
        table.AddRow({entry.kind, entry.key.ToHex(), fmt::format("{}", entry.size_bytes),
                      fmt::format("{:%Y-%m-%d %H:%M:%S}", fmt::localtime(entry.modified))});
    }
    if (!entries.empty()) {
        fmt::print("{}", table.Render());
    }
    fmt::print("{} entries, {} in {}\n", entries.size(), FormatBytes(total), cache.directory());
}

void Clear() {
    DiskCache cache(ValueOrExit(CacheDirectory()));
    const CacheClearResult cleared = cache.Clear();
    fmt::print("{} entries, {} removed from {}\n", cleared.removed_count,
               FormatBytes(cleared.removed_bytes), cache.directory());
    if (cleared.failed_count != 0) {
        ExitWithError({ErrorCode::kIo,
                       fmt::format("{} entries could not be removed.", cleared.failed_count)});
    }
}

}  // namespace

void AddCacheCommand(CLI::App& app) {
    CLI::App* cache =
        app.add_subcommand("cache", "List or clear plans and kernels kept between runs");
    cache->footer(kNote);
    cache->require_subcommand(1);
    cache->add_subcommand("list", "Print every entry")->callback(List);
    cache->add_subcommand("clear", "Remove every entry")->callback(Clear);
}

}  // namespace fornax::tool
