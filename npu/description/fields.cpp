#include "npu/description/fields.h"

#include <type_traits>

#include <fmt/format.h>

namespace fornax::npu {
namespace {

template <typename T>
struct MemberOf;
template <typename Class, typename Member>
struct MemberOf<Member Class::*> {
    using type = Member;
};

// Reads and writes `description.*kPart.*kMember`.
template <auto kPart, auto kMember>
Field Make(std::string_view table,
           std::string_view key,
           std::string_view unit,
           double least,
           double most,
           std::string_view meaning,
           std::span<const std::string_view> words = {}) {
    using Value = typename MemberOf<decltype(kMember)>::type;
    Field field{.table = table, .key = key, .unit = unit, .meaning = meaning};
    field.kind = std::is_enum_v<Value>       ? FieldKind::kWord
                 : std::is_integral_v<Value> ? FieldKind::kInteger
                                             : FieldKind::kNumber;
    field.least = least;
    field.most = words.empty() ? most : static_cast<double>(words.size() - 1);
    field.words = words;
    field.get = [](const Description& from) { return static_cast<double>(from.*kPart.*kMember); };
    field.set = [](Description& into, double value) {
        if constexpr (std::is_enum_v<Value>) {
            into.*kPart.*kMember = static_cast<Value>(static_cast<uint8_t>(value));
        } else {
            into.*kPart.*kMember = static_cast<Value>(value);
        }
    };
    return field;
}

Field Optional(Field field) {
    field.is_optional = true;
    return field;
}

// Speeds: of a faster machine they are more, or less.
Field More(Field field) {
    field.faster = Faster::kMore;
    return field;
}
Field Less(Field field) {
    field.faster = Faster::kLess;
    return field;
}

using D = Description;

const Field kFields[] = {
    More(Make<&D::cores, &D::Cores::clock_ghz>("cores",
                                               "clock_ghz",
                                               "GHz",
                                               0.001,
                                               100,
                                               "the clock of cores, scratchpads and matrix units")),
    Make<&D::cores, &D::Cores::clusters>("cores", "clusters", "", 1, 1024, "clusters of cores"),
    Make<&D::cores,
         &D::Cores::per_cluster>("cores", "per_cluster", "", 1, 1024, "cores of a cluster"),
    Make<&D::cores, &D::Cores::workgroup_slots>(
        "cores",
        "workgroup_slots",
        "",
        1,
        1024,
        "workgroups that a core holds at once if its scratchpad suffices"),
    Make<&D::cores, &D::Cores::overlap>(
        "cores",
        "overlap",
        "of 1",
        0,
        1,
        "how much of the other units' time one workgroup hides behind its busiest unit"),

    Optional(Less(Make<&D::scalar, &D::Scalar::interval>(
        "scalar",
        "interval",
        "cycles",
        0,
        1e4,
        "between two operations of a core's scalar unit; 0: they take no time"))),

    Make<&D::matrix, &D::Matrix::units>("matrix",
                                        "units",
                                        "",
                                        0,
                                        1024,
                                        "matrix units of a core; 0: it has none"),
    Make<&D::matrix,
         &D::Matrix::rows>("matrix", "rows", "", 1, 4096, "rows of the array of a matrix unit"),
    Make<&D::matrix, &D::Matrix::columns>("matrix", "columns", "", 1, 4096, "columns of the array"),
    Make<&D::matrix, &D::Matrix::dataflow>("matrix",
                                           "dataflow",
                                           "",
                                           0,
                                           0,
                                           "which operand stays in the array",
                                           kDataflowNames),
    More(Make<&D::matrix, &D::Matrix::rate_int8>(
        "matrix",
        "rate_int8",
        "MAC/cycle",
        0,
        64,
        "int8 multiply-accumulates of an element of the array in a cycle; 0: none")),
    More(
        Make<&D::matrix, &D::Matrix::rate_f16>("matrix", "rate_f16", "MAC/cycle", 0, 64, "of f16")),
    More(Make<&D::matrix,
              &D::Matrix::rate_bf16>("matrix", "rate_bf16", "MAC/cycle", 0, 64, "of bf16")),
    More(
        Make<&D::matrix, &D::Matrix::rate_f32>("matrix", "rate_f32", "MAC/cycle", 0, 64, "of f32")),

    Make<&D::vector, &D::Vector::units>("vector", "units", "", 1, 1024, "vector units of a core"),
    Make<&D::vector, &D::Vector::bits>("vector",
                                       "bits",
                                       "bit",
                                       32,
                                       1 << 20,
                                       "width of a vector unit, a multiple of 32"),
    Less(Make<&D::vector, &D::Vector::simple_interval>(
        "vector",
        "simple_interval",
        "cycles",
        0.01,
        1e4,
        "between two vectors of additions, multiplications, comparisons, ...")),
    Optional(Less(Make<&D::vector, &D::Vector::multiply_add_interval>(
        "vector",
        "multiply_add_interval",
        "cycles",
        0,
        1e4,
        "between two vectors of multiply-adds; 0: as simple ones"))),
    Less(Make<&D::vector, &D::Vector::division_interval>("vector",
                                                         "division_interval",
                                                         "cycles",
                                                         0.01,
                                                         1e4,
                                                         "between two vectors of divisions")),

    Make<&D::special, &D::Special::lanes>("special",
                                          "lanes",
                                          "",
                                          1,
                                          1 << 16,
                                          "lanes of a core's special-function unit"),
    Less(Make<&D::special, &D::Special::interval>(
        "special",
        "interval",
        "cycles",
        0.01,
        1e4,
        "between two vectors of exponentials, logarithms, roots, ...")),
    Optional(Make<&D::special, &D::Special::unit>("special",
                                                  "unit",
                                                  "",
                                                  0,
                                                  0,
                                                  "a unit of its own, or the vector units, whose "
                                                  "other work waits meanwhile",
                                                  kSpecialUnitNames)),

    Make<&D::scratchpad, &D::Scratchpad::bytes>("scratchpad",
                                                "bytes",
                                                "B",
                                                1024,
                                                1ULL << 40,
                                                "scratchpad memory of a core"),
    Make<&D::scratchpad, &D::Scratchpad::banks>("scratchpad",
                                                "banks",
                                                "",
                                                1,
                                                4096,
                                                "banks, each of which serves one access a cycle"),
    Make<&D::scratchpad, &D::Scratchpad::bank_bytes>("scratchpad",
                                                     "bank_bytes",
                                                     "B",
                                                     1,
                                                     4096,
                                                     "width of a bank, a power of two"),
    Make<&D::scratchpad, &D::Scratchpad::alignment_bytes>(
        "scratchpad",
        "alignment_bytes",
        "B",
        1,
        1 << 20,
        "grants begin at multiples of it, a power of two"),
    Make<&D::scratchpad, &D::Scratchpad::policy>("scratchpad",
                                                 "policy",
                                                 "",
                                                 0,
                                                 0,
                                                 "how the firmware places grants",
                                                 kScratchpadPolicyNames),

    Make<&D::dma, &D::Dma::engines>("dma", "engines", "", 1, 1024, "DMA engines of a core"),
    More(Make<&D::dma, &D::Dma::port_gbs>("dma",
                                          "port_gbs",
                                          "GB/s",
                                          1e-3,
                                          1e6,
                                          "what one engine moves at most")),
    Less(Make<&D::dma, &D::Dma::setup_ns>("dma",
                                          "setup_ns",
                                          "ns",
                                          0,
                                          1e6,
                                          "before a descriptor's first request")),
    Make<&D::dma, &D::Dma::outstanding>("dma",
                                        "outstanding",
                                        "",
                                        1,
                                        1 << 20,
                                        "requests of one burst that an engine has under way"),
    Make<&D::dma, &D::Dma::efficiency>("dma",
                                       "efficiency",
                                       "of 1",
                                       0.01,
                                       1,
                                       "the share of the port that long streams reach"),
    Optional(Make<&D::dma, &D::Dma::exposed>("dma",
                                             "exposed",
                                             "of 1",
                                             0,
                                             1,
                                             "the share of a dispatch's bytes that move while its "
                                             "cores wait, as where cores move them; 0: none")),
    Optional(Make<&D::dma, &D::Dma::barrier_exposed>(
        "dma",
        "barrier_exposed",
        "of 1",
        0,
        1,
        "how much of what passes between barriers could overlap is waited for, as where cores move "
        "bytes; 0: nothing, engines run ahead of barriers")),
    Optional(More(Make<&D::dma, &D::Dma::stream_gbs>(
        "dma",
        "stream_gbs",
        "GB/s",
        0,
        1e6,
        "what one engine reads of DRAM, where each burst follows the one before; 0: as much as its "
        "port moves"))),
    Optional(
        More(Make<&D::dma, &D::Dma::apart_gbs>("dma",
                                               "apart_gbs",
                                               "GB/s",
                                               0,
                                               1e6,
                                               "what one engine reads of bursts that do not follow "
                                               "each other; 0: as much as of streams"))),
    Optional(More(Make<&D::dma, &D::Dma::far_gbs>(
        "dma",
        "far_gbs",
        "GB/s",
        0,
        1e6,
        "what one engine reads of bursts that may lie anywhere, as gathers do; 0: as much as of "
        "streams"))),

    More(Make<&D::network, &D::Network::bandwidth_gbs>(
        "network",
        "bandwidth_gbs",
        "GB/s",
        1e-3,
        1e6,
        "of the network on chip, all cores together")),
    Less(Make<&D::network, &D::Network::latency_ns>("network",
                                                    "latency_ns",
                                                    "ns",
                                                    0,
                                                    1e6,
                                                    "from a core to the memory controller")),

    Optional(Make<&D::cache, &D::Cache::bytes>("cache",
                                               "bytes",
                                               "B",
                                               0,
                                               1ULL << 34,
                                               "of a cache between the network and DRAM, which all "
                                               "cores share; 0: none")),
    Optional(Make<&D::cache, &D::Cache::core_bytes>(
        "cache",
        "core_bytes",
        "B",
        0,
        1ULL << 34,
        "of a cache that a core has beside it, for what only this core streams; 0: none")),
    Optional(Make<&D::cache, &D::Cache::write_allocate_bytes>(
        "cache",
        "write_allocate_bytes",
        "B",
        0,
        1ULL << 40,
        "stores that miss read first: to smaller buffers, and to those that a dispatch reads as "
        "well; 0: none do")),

    More(Make<&D::dram, &D::Dram::bandwidth_gbs>("dram",
                                                 "bandwidth_gbs",
                                                 "GB/s",
                                                 1e-3,
                                                 1e6,
                                                 "peak, reads and writes together")),
    Less(Make<&D::dram, &D::Dram::latency_ns>("dram", "latency_ns", "ns", 0, 1e6, "of one burst")),
    Make<&D::dram, &D::Dram::burst_bytes>("dram",
                                          "burst_bytes",
                                          "B",
                                          1,
                                          1 << 16,
                                          "the least that an access moves, a power of two"),
    Make<&D::dram, &D::Dram::efficiency>("dram",
                                         "efficiency",
                                         "of 1",
                                         0.01,
                                         1,
                                         "the share of the peak that streams reach"),

    More(Make<&D::host_link, &D::HostLink::bandwidth_gbs>("host_link",
                                                          "bandwidth_gbs",
                                                          "GB/s",
                                                          1e-3,
                                                          1e6,
                                                          "between the host's memory and DRAM")),
    Less(
        Make<&D::host_link,
             &D::HostLink::latency_ns>("host_link", "latency_ns", "ns", 0, 1e9, "of one transfer")),

    Less(Make<&D::command_processor, &D::CommandProcessor::doorbell_ns>(
        "command_processor",
        "doorbell_ns",
        "ns",
        0,
        1e9,
        "from the doorbell of a submission to its first packet")),
    Less(Make<&D::command_processor, &D::CommandProcessor::decode_ns>("command_processor",
                                                                      "decode_ns",
                                                                      "ns",
                                                                      0,
                                                                      1e9,
                                                                      "of a packet")),
    Less(Make<&D::command_processor, &D::CommandProcessor::allocation_ns>(
        "command_processor",
        "allocation_ns",
        "ns",
        0,
        1e9,
        "of scratchpad for a dispatch")),
    Less(Make<&D::command_processor, &D::CommandProcessor::drain_ns>(
        "command_processor",
        "drain_ns",
        "ns",
        0,
        1e9,
        "from a dispatch's last store to its end")),
    Less(Make<&D::command_processor, &D::CommandProcessor::driver_us>(
        "command_processor",
        "driver_us",
        "us",
        0,
        1e9,
        "of the driver on the host, before the doorbell of a submission")),

    Make<&D::energy, &D::Energy::mac_int8_pj>("energy",
                                              "mac_int8_pj",
                                              "pJ",
                                              0,
                                              1e6,
                                              "of an int8 multiply-accumulate"),
    Make<&D::energy, &D::Energy::mac_f16_pj>("energy", "mac_f16_pj", "pJ", 0, 1e6, "of f16"),
    Make<&D::energy, &D::Energy::mac_bf16_pj>("energy", "mac_bf16_pj", "pJ", 0, 1e6, "of bf16"),
    Make<&D::energy, &D::Energy::mac_f32_pj>("energy", "mac_f32_pj", "pJ", 0, 1e6, "of f32"),
    Make<&D::energy, &D::Energy::vector_pj>("energy",
                                            "vector_pj",
                                            "pJ",
                                            0,
                                            1e6,
                                            "of a lane's operation in a vector unit"),
    Make<&D::energy, &D::Energy::special_pj>("energy",
                                             "special_pj",
                                             "pJ",
                                             0,
                                             1e6,
                                             "of a lane's operation in a special-function unit"),
    Make<&D::energy, &D::Energy::scratchpad_pj_per_byte>("energy",
                                                         "scratchpad_pj_per_byte",
                                                         "pJ/B",
                                                         0,
                                                         1e6,
                                                         "of a scratchpad access"),
    Make<&D::energy, &D::Energy::network_pj_per_byte>("energy",
                                                      "network_pj_per_byte",
                                                      "pJ/B",
                                                      0,
                                                      1e6,
                                                      "over the network"),
    Make<&D::energy,
         &D::Energy::dram_pj_per_byte>("energy", "dram_pj_per_byte", "pJ/B", 0, 1e6, "of DRAM"),
    Make<&D::energy, &D::Energy::host_link_pj_per_byte>("energy",
                                                        "host_link_pj_per_byte",
                                                        "pJ/B",
                                                        0,
                                                        1e6,
                                                        "over the host link"),
    Make<&D::energy, &D::Energy::static_mw>("energy",
                                            "static_mw",
                                            "mW",
                                            0,
                                            1e9,
                                            "whether there is work or not"),
};

}  // namespace

std::string TextOf(const Field& field, double value) {
    if (field.kind == FieldKind::kWord) {
        return std::string(field.words[static_cast<size_t>(value)]);
    }
    return field.kind == FieldKind::kInteger ? fmt::format("{:.0f}", value)
                                             : fmt::format("{}", value);
}

std::span<const Field> Fields() {
    return kFields;
}

}  // namespace fornax::npu
