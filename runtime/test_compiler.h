// The compiler that the C interface's tests are linked with: it knows a few models by name.
#pragma once

namespace fornax::runtime {

// How often CompileModel() was called.
int CompileCount();

// While the gate is closed, compiling the model "gate" and the host step of the model "positive"
// wait; how many do.
void CloseGate();
void OpenGate();
int WaitingCount();

}  // namespace fornax::runtime
