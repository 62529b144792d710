#include "runtime/npu/modelled.h"

namespace fornax::runtime {

using nlohmann::json;

Result<Modelled> ReplayPlan(npu::Description description, PlanRecords plan) {
    FORNAX_ASSIGN_OR_RETURN(npu::ReplayResult result, npu::Replay(description, plan.records));
    return Modelled{std::move(description), std::move(plan), std::move(result)};
}

json ToJson(const Modelled& modelled) {
    const npu::Description& description = modelled.description;
    const npu::ReplayResult& result = modelled.result;
    const auto nanoseconds = [&](npu::Cycles cycles) {
        return description.Nanoseconds(static_cast<double>(cycles));
    };
    json made = {{"stamp", npu::StampOf(description)},
                 {"description", description.name},
                 {"description_hash", description.Hash().ToHex()},
                 {"model_version", npu::kModelVersion},
                 {"total_cycles", result.total},
                 {"total_ns", nanoseconds(result.total)},
                 {"energy_nj", result.energy.total_nj()},
                 {"dram_read_bytes", result.traffic.dram_read},
                 {"dram_written_bytes", result.traffic.dram_written},
                 {"network_bytes", result.traffic.network},
                 {"over_fetch_bytes", result.traffic.over_fetch},
                 {"spill_bytes", result.traffic.spill},
                 {"host_steps", modelled.plan.host_steps},
                 {"unknown_steps", modelled.plan.unknown_steps}};
    made["units"] = json::object();
    for (uint32_t i = 0; i < npu::kUnits; ++i) {
        const npu::UnitTime& unit = result.units[i];
        made["units"][std::string(npu::kUnitNames[i])] = {{"instances", unit.instances},
                                                          {"busy", unit.busy},
                                                          {"stall", unit.stall},
                                                          {"idle", unit.idle}};
    }
    made["records"] = json::array();
    for (size_t i = 0; i < result.records.size(); ++i) {
        const npu::RecordTime& time = result.records[i];
        made["records"].push_back(
            {{"step", modelled.plan.steps[i]},
             {"name", modelled.plan.records[i].name()},
             {"began_ns", nanoseconds(time.began)},
             {"ended_ns", nanoseconds(time.ended)},
             {"run_ns", nanoseconds(time.finished - time.began)},
             {"launch_ns", nanoseconds(time.launch)},
             {"cores", time.cost.cores},
             {"bound", npu::kBoundNames[static_cast<size_t>(time.bound)]},
             {"grant", npu::kGrantStepNames[static_cast<size_t>(time.grant.step)]},
             {"dram_bytes", time.cost.traffic.dram()},
             {"macs_on_vector_units", time.cost.macs_on_vector_units}});
    }
    return made;
}

}  // namespace fornax::runtime
