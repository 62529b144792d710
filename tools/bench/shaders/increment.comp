// The smallest dispatch with an effect: adds one to a counter. Dispatched a thousand times with barriers
// between, the counter tells whether each dispatch saw the one before it.
#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) buffer Counter {
    uint count;
};

void main() {
    if (gl_GlobalInvocationID.x == 0)
        count += 1;
}
