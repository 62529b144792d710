// fornax_fuzz_hostile: changed modules through the whole kernel compiler, which must neither crash
// nor hang.
//
// usage: fornax_fuzz_hostile [--first SEED] [--seconds N | --count N] [--keep DIRECTORY]
// [FILE.spv...]
//
// A seed's module is one of the files or a random one (random_module.h), changed in a few words.
// What crashes, takes more than kSlowSeconds of processor time or more than kMemoryBytes is printed
// and, with --keep, written to a file. Exit status 0 if nothing was found.
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "base/sanitized.h"
#include "compiler/kernel/codegen/target_machine.h"
#include "compiler/kernel/fuzz/children.h"
#include "compiler/kernel/fuzz/hostile.h"
#include "compiler/kernel/fuzz/mutate.h"
#include "compiler/kernel/fuzz/random_module.h"

namespace {

using namespace fornax::kernel;
using namespace fornax::kernel::fuzz;
using Words = std::vector<uint32_t>;

constexpr unsigned kSlowSeconds = 10;
[[maybe_unused]] constexpr rlim_t kMemoryBytes = rlim_t{3} << 30;
constexpr uint64_t kCasesAChild = 5000;

struct Progress {
    uint64_t seed = 0;
    uint64_t tried = 0;
    uint64_t accepted = 0;  // by the reader
    uint64_t compiled = 0;
    uint64_t found = 0;
    double slowest_seconds = 0;
    uint64_t slowest_seed = 0;
};

Words ReadWords(const char* path) {
    std::ifstream file(path, std::ios::binary);
    std::vector<char> bytes((std::istreambuf_iterator<char>(file)), {});
    Words words(bytes.size() / 4);
    if (!words.empty()) {
        std::memcpy(words.data(), bytes.data(), words.size() * 4);
    }
    return words;
}

Words ModuleOf(uint64_t seed, const std::vector<Words>& files) {
    Random random(seed ^ 0x70757a7a6c65);
    if (!files.empty() && random.Chance(50)) {
        return Mutate(files[random.Below(static_cast<uint32_t>(files.size()))], random);
    }
    RandomModuleOptions options;
    options.wide = random.Chance(50);
    options.subgroups = random.Chance(20);
    return Mutate(MakeRandomModule(random.Next(), options).words, random);
}

double ProcessorSeconds() {
    rusage usage = {};
    getrusage(RUSAGE_SELF, &usage);
    auto seconds = [](timeval time) {
        return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
    };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

bool RunCases(uint64_t first, uint64_t last, const std::vector<Words>& files, Progress& progress) {
#ifndef FORNAX_SANITIZED
    const rlimit memory = {kMemoryBytes, kMemoryBytes};
    setrlimit(RLIMIT_AS, &memory);
#endif
    auto target = DetectTarget("");
    auto machine = CreateTargetMachine(*target, llvm::CodeGenOptLevel::Default);
    for (uint64_t seed = first; seed < last; ++seed) {
        progress.seed = seed;
        const Words module = ModuleOf(seed, files);
        const double before = ProcessorSeconds();
        LimitTime(kSlowSeconds);
        std::string message;
        const Outcome outcome = CompileHostile(module, *target, **machine, message);
        const double seconds = ProcessorSeconds() - before;
        ++progress.tried;
        progress.accepted += outcome != Outcome::kRefusedByReader;
        progress.compiled += outcome == Outcome::kCompiled;
        if (seconds > progress.slowest_seconds) {
            progress.slowest_seconds = seconds;
            progress.slowest_seed = seed;
        }
        if (message.empty() && outcome != Outcome::kCompiled) {
            std::printf("seed %llu: is refused without a message\n",
                        static_cast<unsigned long long>(seed));
            return false;
        }
    }
    return true;
}

}  // namespace

int main(int argc, char** argv) {
    uint64_t first = 1;
    uint64_t count = UINT64_MAX;
    double seconds = 1e9;
    std::string directory;
    std::vector<Words> files;
    for (int i = 1; i < argc; ++i) {
        const std::string name = argv[i];
        if (name.starts_with("--") && i + 1 == argc) {
            std::fprintf(stderr, "%s needs a value\n", name.c_str());
            return 2;
        }
        if (name == "--first") {
            first = std::strtoull(argv[++i], nullptr, 10);
        } else if (name == "--count") {
            count = std::strtoull(argv[++i], nullptr, 10);
        } else if (name == "--seconds") {
            seconds = std::strtod(argv[++i], nullptr);
        } else if (name == "--keep") {
            directory = argv[++i];
        } else {
            files.push_back(ReadWords(name.c_str()));
        }
    }
    auto* progress = Shared<Progress>();
    const auto start = std::chrono::steady_clock::now();
    double passed = 0;
    for (uint64_t done = 0; done < count && passed < seconds;) {
        // Short runs end in time.
        const uint64_t cases = std::min({count - done, seconds < 600 ? 500 : kCasesAChild});
        const uint64_t next = first + done;
        if (InChild([&] { return RunCases(next, next + cases, files, *progress); })) {
            done += cases;
        } else {
            done = progress->seed + 1 - first;
            ++progress->found;
            ++progress->tried;
            const std::string path =
                directory + "/hostile-" + std::to_string(progress->seed) + ".spv";
            if (!directory.empty()) {
                const Words module = ModuleOf(progress->seed, files);
                std::ofstream(path, std::ios::binary)
                    .write(reinterpret_cast<const char*>(module.data()),
                           static_cast<std::streamsize>(module.size() * 4));
            }
            std::printf("seed %llu: crashes, or takes too long or too much memory %s\n",
                        static_cast<unsigned long long>(progress->seed),
                        directory.empty() ? "" : path.c_str());
        }
        passed = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        std::printf(
            "%llu modules, %llu read, %llu compiled, %llu findings, %.0f s; slowest %.2f s "
            "(seed %llu)\n",
            static_cast<unsigned long long>(progress->tried),
            static_cast<unsigned long long>(progress->accepted),
            static_cast<unsigned long long>(progress->compiled),
            static_cast<unsigned long long>(progress->found), passed, progress->slowest_seconds,
            static_cast<unsigned long long>(progress->slowest_seed));
        std::fflush(stdout);
    }
    return progress->found ? 1 : 0;
}
