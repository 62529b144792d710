// The page of a shared timeline.
#include "hal/support/shared_timeline.h"

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>

#include "hal/memory.h"
#include "hal/support/shared_file.h"

namespace fornax::hal {

namespace {

constexpr uint64_t kMagic = 0x31656e696c656d69;  // "imeline1": the layout of Page

}  // namespace

Result<std::shared_ptr<SharedTimeline>> SharedTimeline::Map(UniqueFd file) {
    void* page = mmap(nullptr, kMemoryPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
    if (page == MAP_FAILED) {
        return SystemError(ErrorCode::kOutOfHostMemory, "A shared timeline cannot be mapped");
    }
    return std::shared_ptr<SharedTimeline>(
        new SharedTimeline(std::move(file), static_cast<Page*>(page)));
}

Result<std::shared_ptr<SharedTimeline>> SharedTimeline::Create(uint64_t initial_value) {
    FORNAX_ASSIGN_OR_RETURN(UniqueFd file, CreateSharedFile("fornax-timeline", kMemoryPageBytes));
    FORNAX_ASSIGN_OR_RETURN(auto shared, Map(std::move(file)));
    shared->words().value.store(initial_value);
    shared->words().target.store(initial_value);
    shared->page_->magic.store(kMagic);
    return shared;
}

Result<std::shared_ptr<SharedTimeline>> SharedTimeline::Import(int file) {
    FORNAX_RETURN_IF_ERROR(CheckSharedFile(file, kMemoryPageBytes));
    FORNAX_ASSIGN_OR_RETURN(UniqueFd copy, DuplicateFile(file));
    FORNAX_ASSIGN_OR_RETURN(auto shared, Map(std::move(copy)));
    if (shared->page_->magic.load() != kMagic) {
        return Error{ErrorCode::kInvalidArgument, "The imported file holds no timeline."};
    }
    return shared;
}

SharedTimeline::~SharedTimeline() {
    munmap(page_, kMemoryPageBytes);
}

void SharedTimeline::Wake() const {
    page_->sequence.fetch_add(1, std::memory_order_seq_cst);
    syscall(SYS_futex, &page_->sequence, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace fornax::hal
