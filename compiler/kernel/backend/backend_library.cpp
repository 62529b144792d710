// The backend of the driver: libfornax_compiler.so, which lies beside the driver's own library.
#include <dlfcn.h>

#include <cstdlib>

#include "compiler/kernel/backend/backend_interface.h"
#include "compiler/kernel/cache/cache_key.h"

namespace fornax::kernel {

namespace {

constexpr char kLibraryName[] = "libfornax_compiler.so";

// Closes the library after the backend in it is gone.
class OpenLibrary {
  public:
    explicit OpenLibrary(void* handle) : handle_(handle) {}
    OpenLibrary(const OpenLibrary&) = delete;
    OpenLibrary& operator=(const OpenLibrary&) = delete;
    ~OpenLibrary() {
        backend = nullptr;
        dlclose(handle_);
    }

    std::shared_ptr<KernelBackend> backend;

  private:
    void* handle_;
};

std::string DlError() {
    const char* text = dlerror();
    return text ? text : "no reason is known";
}

}  // namespace

Result<BackendSource> BackendSource::Find() {
    // Absolute from now on: the application may change its directory.
    Dl_info own = {};
    char* resolved = nullptr;
    if (dladdr(reinterpret_cast<const void*>(&DlError), &own) != 0 && own.dli_fname) {
        resolved = realpath(own.dli_fname, nullptr);
    }
    if (!resolved) {
        return Error{ErrorCode::kInternal, "The driver cannot find its own library file."};
    }
    std::string path = resolved;
    std::free(resolved);
    return FindIn(path.substr(0, path.rfind('/')));
}

Result<BackendSource> BackendSource::FindIn(const std::string& folder) {
    BackendSource source;
    source.path_ = folder + "/" + kLibraryName;
    source.identity_ = FileBuildIdentity(source.path_);
    if (source.identity_.empty()) {
        return Error{ErrorCode::kNotFound, "The kernel compiler's library " + source.path_ +
                                               " is missing; it belongs beside the driver's."};
    }
    return source;
}

Result<std::shared_ptr<KernelBackend>> BackendSource::Open() const {
    // It stays once it is there (CMakeLists.txt).
    void* handle = dlopen(path_.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        return Error{ErrorCode::kNotFound, "The kernel compiler's library " + path_ +
                                               " cannot be opened: " + DlError() + "."};
    }
    auto library = std::make_shared<OpenLibrary>(handle);
    auto open = reinterpret_cast<OpenBackendFunction>(dlsym(handle, kBackendFunction));
    if (!open || !open(BackendInterface(), library->backend)) {
        return Error{ErrorCode::kInternal, "The kernel compiler's library " + path_ +
                                               " is of another build than the driver."};
    }
    KernelBackend* backend = library->backend.get();
    return std::shared_ptr<KernelBackend>(std::move(library), backend);
}

}  // namespace fornax::kernel
