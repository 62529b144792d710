// fornax_fuzz_modules: random SPIR-V modules through the kernel compiler, judged by the
// interpreter.
//
// usage: fornax_fuzz_modules [--first SEED] [--count N] [--keep DIRECTORY]
//        fornax_fuzz_modules --reduce SEED [--keep DIRECTORY]
//        fornax_fuzz_modules --write DIRECTORY [--portable] [--first SEED] [--count N] [--drop
//        A,B,...]
//
// --write with --count 1 prints the module's statements, and --drop leaves some of them out: for
// reduction where something else judges (tests/differential).
// Work is done in child processes, so that a crash or hang is a finding like any other. Exit status
// 0 if nothing was found. --reduce writes the module and every stage of its compilation, as
// FORNAX_DUMP does.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

#include "compiler/kernel/fuzz/children.h"
#include "compiler/kernel/fuzz/judge.h"

namespace {

using namespace fornax::kernel;
using namespace fornax::kernel::fuzz;

constexpr unsigned kSecondsACase = 30;
constexpr uint64_t kCasesAChild = 500;

struct Options {
    uint64_t first = 1;
    uint64_t count = 1000;
    bool reduce = false;
    bool write = false;
    bool portable = false;
    std::string directory;
    std::set<uint64_t> dropped;
};

// What a child tells its parent, even when it dies.
struct Progress {
    uint64_t seed = 0;
    uint64_t done = 0;
    uint64_t found = 0;
};

void WriteFile(const std::string& path, const void* data, size_t size) {
    std::ofstream(path, std::ios::binary)
        .write(static_cast<const char*>(data), static_cast<std::streamsize>(size));
}

void WriteModule(const std::string& directory, uint64_t seed, const RandomModule& module) {
    WriteFile(directory + "/" + std::to_string(seed) + ".spv", module.words.data(),
              module.words.size() * 4);
}

int Search(const Options& options) {
    auto* progress = Shared<Progress>();
    const uint64_t end = options.first + options.count;
    const auto start = std::chrono::steady_clock::now();
    for (uint64_t next = options.first; next < end;) {
        const uint64_t stop = std::min(end, next + kCasesAChild);
        const bool good = InChild([&] {
            Judge judge;
            for (uint64_t seed = next; seed < stop; ++seed) {
                progress->seed = seed;
                LimitTime(kSecondsACase);
                std::string what = judge.Try(CaseOf(seed, judge.targets()));
                ++progress->done;
                if (!what.empty()) {
                    ++progress->found;
                    std::printf("seed %llu: %s\n", static_cast<unsigned long long>(seed),
                                what.c_str());
                }
            }
            return true;
        });
        next = stop;
        if (!good) {
            next = progress->seed + 1;
            ++progress->done;
            ++progress->found;
            std::printf("seed %llu: crashes or hangs\n",
                        static_cast<unsigned long long>(progress->seed));
        }
        const double seconds =
            std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        std::printf("%llu programs, %llu findings, %.0f s, %.1f ms each\n",
                    static_cast<unsigned long long>(progress->done),
                    static_cast<unsigned long long>(progress->found), seconds,
                    seconds * 1000 / static_cast<double>(progress->done));
        std::fflush(stdout);
    }
    return progress->found ? 1 : 0;
}

int ReduceSeed(const Options& options) {
    Judge judge;
    auto fails = [&](const Case& which) {
        return !InChild([&] {
            LimitTime(kSecondsACase);
            return judge.Try(which).empty();
        });
    };
    Case which = CaseOf(options.first, judge.targets());
    if (!fails(which)) {
        std::printf("seed %llu does not fail\n", static_cast<unsigned long long>(options.first));
        return 0;
    }
    which = Reduce(which, fails);
    RandomModule module = MakeRandomModule(which.seed, which.options);
    const std::string directory = options.directory.empty() ? "." : options.directory;
    WriteModule(directory, which.seed, module);
    const size_t left =
        static_cast<size_t>(std::ranges::count_if(module.statements, [&](uint64_t statement) {
            return !which.options.dropped.contains(statement);
        }));
    std::printf("%zu statements left; robust %d, target %zu, lanes %u, %s code\n", left,
                which.options.robust, which.target, which.lanes,
                which.tier == CodeTier::kBaseline ? "baseline" : "optimized");
    InChild([&] {
        const StageSink sink = [&](std::string_view extension, std::string_view text) {
            WriteFile(directory + "/" + std::to_string(which.seed) + "." + std::string(extension),
                      text.data(), text.size());
        };
        std::printf("%s\n", judge.Try(which, sink).c_str());
        return true;
    });
    return 1;
}

int WriteModules(const Options& options) {
    for (uint64_t seed = options.first; seed < options.first + options.count; ++seed) {
        Case which = CaseOf(seed, 1);
        which.options.portable |= options.portable;
        which.options.robust &= !options.portable;
        which.options.dropped = options.dropped;
        const RandomModule module = MakeRandomModule(seed, which.options);
        WriteModule(options.directory, seed, module);
        for (size_t i = 0; i < module.statements.size() && options.count == 1; ++i) {
            std::printf("%llu\n", static_cast<unsigned long long>(module.statements[i]));
        }
    }
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    Options options;
    for (int i = 1; i < argc; ++i) {
        const std::string name = argv[i];
        if (name == "--portable") {
            options.portable = true;
            continue;
        }
        if (i + 1 == argc) {
            std::fprintf(stderr, "%s needs a value, or is no option\n", name.c_str());
            return 2;
        }
        const char* value = argv[++i];
        if (name == "--first") {
            options.first = std::strtoull(value, nullptr, 10);
        } else if (name == "--count") {
            options.count = std::strtoull(value, nullptr, 10);
        } else if (name == "--drop") {
            for (const char* text = value; *text != 0;) {
                char* end = nullptr;
                options.dropped.insert(std::strtoull(text, &end, 10));
                text = *end == ',' ? end + 1 : end;
                if (text == end && *end != 0) {
                    return 2;
                }
            }
        } else if (name == "--keep") {
            options.directory = value;
        } else if (name == "--reduce") {
            options.reduce = true;
            options.first = std::strtoull(value, nullptr, 10);
        } else if (name == "--write") {
            options.write = true;
            options.directory = value;
        } else {
            std::fprintf(stderr, "there is no option %s\n", name.c_str());
            return 2;
        }
    }
    if (options.write) {
        return WriteModules(options);
    }
    return options.reduce ? ReduceSeed(options) : Search(options);
}
