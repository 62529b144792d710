// What a kernel is told of dispatches that have been submitted and have not begun.
#pragma once

#include <cstdint>
#include <functional>

namespace fornax::hal {

// A kernel that makes code for what a dispatch finds bound has one, to begin before the dispatch
// does. Nothing depends on it, so a device may tell little, or something that is not so any more
// when the dispatch begins. Thread-safe.
class Foresight {
  public:
    // Reads a word of a descriptor set that a dispatch will find; false where there is none.
    using ReadWord = std::function<bool(uint32_t set, uint32_t offset_bytes, uint32_t& word)>;

    // Whether Foresee has any use now. Costs a load.
    virtual bool WantsToForesee() const = 0;
    // Returns without waiting for any code.
    virtual void Foresee(const ReadWord& read) const = 0;

  protected:
    ~Foresight() = default;
};

}  // namespace fornax::hal
