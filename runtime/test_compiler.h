// The compiler that the C interface's tests are linked with: it knows a few models by name.
#pragma once

namespace fornax::runtime {

// How often CompileModel() was called.
int CompileCount();

}  // namespace fornax::runtime
