// The description of an NPU: what of it takes time, as numbers.
//
// A description comes from a TOML file or a preset (read.h), its fields with their units and limits
// are the table of fields.h, and the equations that use them are in npu/units/. A value, immutable
// where it is used; nothing in it is a duration in cycles, so that clocks can be changed alone.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/hash.h"

namespace fornax::npu {

// Which operand stays in the matrix unit's array while the others stream through it. kBest: for
// each product the one that takes the fewest cycles.
enum class Dataflow : uint8_t { kWeightStationary, kOutputStationary, kInputStationary, kBest };
inline constexpr std::array<std::string_view, 4> kDataflowNames = {
    "weight-stationary", "output-stationary", "input-stationary", "best"};

// How the firmware places grants in a scratchpad (npu/units/scratchpad_allocator.h).
enum class ScratchpadPolicy : uint8_t { kBump, kBuddy, kBankColoured };
inline constexpr std::array<std::string_view, 3> kScratchpadPolicyNames = {"bump", "buddy",
                                                                           "bank-coloured"};

// What computes exponentials, roots and their like.
enum class SpecialUnit : uint8_t { kOwn, kVector };
inline constexpr std::array<std::string_view, 2> kSpecialUnitNames = {"own", "vector"};

// The operands of a matrix multiply-accumulate.
enum class MatrixType : uint8_t { kInt8, kF16, kBF16, kF32 };
inline constexpr uint32_t kMatrixTypes = 4;
inline constexpr std::array<std::string_view, kMatrixTypes> kMatrixTypeNames = {"int8", "f16",
                                                                                "bf16", "f32"};

struct Description {
    std::string name;

    struct Cores {
        double clock_ghz = 0;
        uint64_t clusters = 0;
        uint64_t per_cluster = 0;
        uint64_t workgroup_slots = 0;
        double overlap = 0;
        uint64_t count() const { return clusters * per_cluster; }
    } cores;
    struct Scalar {
        double interval = 0;
    } scalar;
    struct Matrix {
        uint64_t units = 0;  // of a core
        uint64_t rows = 0;
        uint64_t columns = 0;
        Dataflow dataflow = Dataflow::kWeightStationary;
        double rate_int8 = 0;
        double rate_f16 = 0;
        double rate_bf16 = 0;
        double rate_f32 = 0;
        // Multiply-accumulates of an element of the array in a cycle; 0: the unit has none of them.
        double rate(MatrixType type) const {
            return std::array{rate_int8, rate_f16, rate_bf16, rate_f32}[static_cast<size_t>(type)];
        }
    } matrix;
    struct Vector {
        uint64_t units = 0;  // of a core
        uint64_t bits = 0;
        double simple_interval = 0;
        double multiply_add_interval = 0;  // 0: that of simple operations
        double division_interval = 0;
    } vector;
    struct Special {
        uint64_t lanes = 0;  // of a core
        double interval = 0;
        SpecialUnit unit = SpecialUnit::kOwn;
    } special;
    struct Scratchpad {
        uint64_t bytes = 0;  // of a core
        uint64_t banks = 0;
        uint64_t bank_bytes = 0;
        uint64_t alignment_bytes = 0;
        ScratchpadPolicy policy = ScratchpadPolicy::kBump;
    } scratchpad;
    struct Dma {
        uint64_t engines = 0;  // of a core
        double port_gbs = 0;
        double setup_ns = 0;
        uint64_t outstanding = 0;
        double efficiency = 0;
        double exposed = 0;
        double barrier_exposed = 0;
        double stream_gbs = 0;  // of DRAM; 0: port_gbs
        double apart_gbs = 0;   // 0: port_gbs
        double far_gbs = 0;     // 0: port_gbs
    } dma;
    struct Network {
        double bandwidth_gbs = 0;
        double latency_ns = 0;
    } network;
    struct Cache {
        uint64_t bytes = 0;       // of all cores
        uint64_t core_bytes = 0;  // of each core beside it
        uint64_t write_allocate_bytes = 0;
    } cache;
    struct Dram {
        double bandwidth_gbs = 0;
        double latency_ns = 0;
        uint64_t burst_bytes = 0;
        double efficiency = 0;
    } dram;
    struct HostLink {
        double bandwidth_gbs = 0;
        double latency_ns = 0;
    } host_link;
    struct CommandProcessor {
        double doorbell_ns = 0;
        double decode_ns = 0;
        double allocation_ns = 0;
        double drain_ns = 0;
        double driver_us = 0;
    } command_processor;
    struct Energy {
        double mac_int8_pj = 0;
        double mac_f16_pj = 0;
        double mac_bf16_pj = 0;
        double mac_f32_pj = 0;
        double vector_pj = 0;
        double special_pj = 0;
        double scratchpad_pj_per_byte = 0;
        double network_pj_per_byte = 0;
        double dram_pj_per_byte = 0;
        double host_link_pj_per_byte = 0;
        double static_mw = 0;
        double mac_pj(MatrixType type) const {
            return std::array{mac_int8_pj, mac_f16_pj, mac_bf16_pj,
                              mac_f32_pj}[static_cast<size_t>(type)];
        }
    } energy;

    // Cycles of the cores' clock in a duration, and bytes that a bandwidth moves in a cycle.
    double CyclesOf(double nanoseconds) const { return nanoseconds * cores.clock_ghz; }
    double BytesPerCycle(double gigabytes_per_second) const {
        return gigabytes_per_second / cores.clock_ghz;
    }
    double Nanoseconds(double cycles) const { return cycles / cores.clock_ghz; }

    // Two operations for each multiply-accumulate of all matrix units, in 10^12 a second.
    double PeakTops(MatrixType type) const;

    // It covers all values and not the name: equal machines have equal hashes.
    Hash128 Hash() const;
};

// Part of every stamp: raised when the same description and records give other times.
inline constexpr uint32_t kModelVersion = 5;

// "modelled, uncalibrated (edge-4, description 0123456789abcdef, model 2)".
std::string StampOf(const Description& description);

}  // namespace fornax::npu
