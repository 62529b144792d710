// Which instructions compute what, among those visible at the place a walk has reached: value
// numbering with scopes that follow the construct tree.
#pragma once

#include <algorithm>
#include <vector>

#include "compiler/kernel/ir/kernel.h"

namespace fornax::kernel {

class ValueTable {
  public:
    explicit ValueTable(const ir::Kernel& kernel) : kernel_(kernel), heads_(256, kNone) {}

    // `epoch` counts the writes to the memory that the operation reads; 0 for pure ones.
    struct Key {
        ir::Op op;
        uint8_t flags;
        uint64_t imm;
        std::span<const ir::ValueId> operands;
        ir::Type type;     // of the results
        uint32_t results;  // how many
        uint64_t epoch = 0;
    };

    // An instruction with equal results, or an invalid id.
    ir::InstId Find(const Key& key) const {
        uint32_t hash = Hash(key);
        for (uint32_t i = heads_[hash & (heads_.size() - 1)]; i != kNone; i = entries_[i].next) {
            if (entries_[i].hash == hash && entries_[i].epoch == key.epoch &&
                Equal(key, entries_[i].inst)) {
                return entries_[i].inst;
            }
        }
        return {};
    }

    void Add(const Key& key, ir::InstId inst) {
        if (entries_.size() >= heads_.size()) {
            Grow();
        }
        uint32_t hash = Hash(key);
        uint32_t& head = heads_[hash & (heads_.size() - 1)];
        entries_.push_back({inst, hash, head, key.epoch});
        head = static_cast<uint32_t>(entries_.size() - 1);
    }

    // Entries added after Mark vanish at Release.
    size_t Mark() const { return entries_.size(); }
    void Release(size_t mark) {
        for (; entries_.size() > mark; entries_.pop_back()) {
            heads_[entries_.back().hash & (heads_.size() - 1)] = entries_.back().next;
        }
    }

  private:
    static constexpr uint32_t kNone = UINT32_MAX;

    struct Entry {
        ir::InstId inst;
        uint32_t hash;
        uint32_t next;  // in the chain of one head
        uint64_t epoch;
    };

    static uint32_t Hash(const Key& key) {
        uint64_t hash = static_cast<uint64_t>(key.op) << 8 | static_cast<uint64_t>(key.type);
        hash = (hash ^ key.imm) * 0x9e3779b97f4a7c15u;
        for (ir::ValueId operand : key.operands) {
            hash = (hash ^ hash >> 29 ^ operand.value()) * 0x9e3779b97f4a7c15u;
        }
        return static_cast<uint32_t>(hash >> 32);
    }

    bool Equal(const Key& key, ir::InstId id) const {
        const ir::Instruction& inst = kernel_.inst(id);
        return inst.op == key.op && inst.flags == key.flags && inst.imm == key.imm &&
               inst.results.size() == key.results && kernel_.type(inst.results[0]) == key.type &&
               std::equal(inst.operands.begin(), inst.operands.end(), key.operands.begin(),
                          key.operands.end());
    }

    // Chains keep their order, newest first, as Release needs it.
    void Grow() {
        heads_.assign(heads_.size() * 4, kNone);
        for (uint32_t i = 0; i < entries_.size(); ++i) {
            uint32_t& head = heads_[entries_[i].hash & (heads_.size() - 1)];
            entries_[i].next = head;
            head = i;
        }
    }

    const ir::Kernel& kernel_;
    std::vector<uint32_t> heads_;  // by hash; a power of two of them
    std::vector<Entry> entries_;
};

}  // namespace fornax::kernel
