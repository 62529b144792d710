// The backend of programs that link it.
#include "compiler/kernel/backend/backend.h"

namespace fornax::kernel {

Result<BackendSource> BackendSource::Find() {
    return BackendSource();
}

Result<BackendSource> BackendSource::FindIn(const std::string&) {
    return BackendSource();
}

Result<std::shared_ptr<KernelBackend>> BackendSource::Open() const {
    return MakeKernelBackend();
}

}  // namespace fornax::kernel
