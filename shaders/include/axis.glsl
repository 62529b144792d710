// A tensor seen as [kOuter, kAxis, kInner]: what kernels that work along one axis share. Specialisation
// constants 2 to 4. One invocation, or one workgroup, walks one line of the axis.
layout(constant_id = 2) const uint kOuter = 1;
layout(constant_id = 3) const uint kAxis = 1;
layout(constant_id = 4) const uint kInner = 1;

// Where line `line` of kOuter * kInner begins; its elements are kInner apart.
uint LineStart(uint line) {
    return line / kInner * (kAxis * kInner) + line % kInner;
}
