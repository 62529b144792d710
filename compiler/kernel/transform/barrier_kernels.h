// Kernels whose invocations go different ways between barriers, for tests of the pass that takes
// them apart and of the code that comes out. Buffer 0 takes an element of 64 bytes for each of the
// 40 invocations of a workgroup.
#pragma once

#include <cstddef>
#include <string>

namespace fornax::kernel {

struct BarrierKernel {
    const char* name;
    size_t parted;  // branches that may go different ways
    const char* body;
};

inline constexpr BarrierKernel kBarrierKernels[] = {
    // A function that returns early out of a loop with a barrier, some in the third iteration, and
    // a caller with a barrier behind.
    {"EarlyReturn", 1, R"(
        %r:i32 = scope @0 {
            %n:i32 = loop @1 (%k:i32 = %z, %s:i32 = %i) {
                %all:bool = ieq %k, %four
                if %all { exit @1 %s } else { yield }
                %third:bool = ieq %k, %two
                if %third {
                    if %low { %e:i32 = iadd %s, %k exit @0 %e } else { yield }
                    %f:i32 = imul %s, %three
                    exit @1 %f
                } else { yield }
                store_shared %so, %s align(4)
                barrier
                %t:i32 = load_shared %no align(4)
                %u:i32 = iadd %t, %s
                barrier
                continue @1 %u
            } continuing (%v:i32) {
                %next:i32 = iadd %k, %one
                next %next, %v
            }
            %m:i32 = imul %n, %five
            yield %m
        })"},
    // The others go on in the loop, for different numbers of iterations.
    {"IterationsThatDiffer", 2, R"(
        %r:i32 = scope @0 {
            %n:i32 = loop @1 (%k:i32 = %z, %s:i32 = %i) {
                %early:bool = ult %k, %two
                if %early {
                    store_shared %so, %s align(4)
                    barrier
                    yield
                } else {
                    %past:bool = ult %i, %k
                    if %past { %e:i32 = iadd %s, %k exit @0 %e } else { yield }
                    %same:bool = ieq %i3, %k
                    if %same { exit @1 %k } else { yield }
                    yield
                }
                %t:i32 = load_shared %no align(4)
                if %early { barrier yield } else { yield }
                %u:i32 = iadd %t, %s
                %w:i32 = iadd %u, %k
                continue @1 %w
            } continuing (%v:i32) {
                %next:i32 = iadd %k, %one
                %end:bool = ieq %next, %forty
                if %end { exit @1 %v } else { yield }
                next %next, %v
            }
            %m:i32 = imul %n, %five
            yield %m
        })"},
    // Some skip the rest of the iteration; all meet in the next.
    {"Continue", 1, R"(
        %r:i32 = loop @1 (%k:i32 = %z, %s:i32 = %i) {
            %third:bool = ieq %k, %two
            if %third {
                if %low { %e:i32 = iadd %s, %k continue @1 %e } else { yield }
                %f:i32 = imul %s, %three
                continue @1 %f
            } else { barrier yield }
            %h:i32 = iadd %s, %one
            continue @1 %h
        } continuing (%v:i32) {
            store_shared %so, %v align(4)
            barrier
            %t:i32 = load_shared %no align(4)
            %u:i32 = iadd %t, %v
            barrier
            %next:i32 = iadd %k, %one
            %end:bool = ieq %next, %four
            if %end { exit @1 %u } else { yield }
            next %next, %u
        })"},
    // Some leave the inner loop, others the function.
    {"OutOfTwo", 2, R"(
        %r:i32 = scope @0 {
            %n:i32 = loop @1 (%k:i32 = %z, %s:i32 = %i) {
                %all:bool = ieq %k, %three
                if %all { exit @1 %s } else { yield }
                %in:i32 = loop @2 (%j:i32 = %z, %a:i32 = %s) {
                    %every:bool = ieq %j, %two
                    if %every { exit @2 %a } else { yield }
                    store_shared %so, %a align(4)
                    barrier
                    %t:i32 = load_shared %no align(4)
                    barrier
                    %here:bool = ieq %k, %two
                    if %here {
                        if %low {
                            %far:bool = ult %i, %p
                            if %far { %e:i32 = iadd %t, %k exit @0 %e } else { yield }
                            exit @2 %k
                        } else { yield }
                        exit @2 %t
                    } else { yield }
                    %b:i32 = iadd %t, %a
                    continue @2 %b
                } continuing (%c:i32) {
                    %jn:i32 = iadd %j, %one
                    next %jn, %c
                }
                store_shared %so, %in align(4)
                %first:bool = ine %k, %two
                if %first { barrier yield } else { yield }
                %g:i32 = iadd %in, %k
                continue @1 %g
            } continuing (%v:i32) {
                %next:i32 = iadd %k, %one
                next %next, %v
            }
            yield %n
        })"},
    // All come together behind the branch, though one side of it may leave, and one holds a
    // barrier.
    {"BranchThatMayLeave", 1, R"(
        %r:i32 = scope @0 {
            %n:i32 = loop @1 (%k:i32 = %z, %s:i32 = %i) {
                %q:i32 = if %low {
                    %never:bool = ieq %p, %five
                    if %never { exit @0 %s } else { yield }
                    if %never { barrier yield } else { yield }
                    %e:i32 = iadd %s, %k
                    yield %e
                } else { yield %s }
                store_shared %so, %q align(4)
                barrier
                %t:i32 = load_shared %no align(4)
                barrier
                %end:bool = ieq %k, %three
                if %end { exit @1 %t } else { yield }
                continue @1 %t
            } continuing (%v:i32) {
                %next:i32 = iadd %k, %one
                next %next, %v
            }
            yield %n
        })"},
    // A switch whose cases leave to different places.
    {"Switch", 1, R"(
        %r:i32 = scope @0 {
            %n:i32 = scope @1 {
                store_shared %so, %i align(4)
                barrier
                %t:i32 = load_shared %no align(4)
                %w:i32 = switch %i3
                    default { %e:i32 = iadd %t, %i yield %e }
                    case 0 { exit @0 %t }
                    case 1 { exit @1 %five }
                    case 2 { yield %i }
                %f:i32 = iadd %w, %three
                %never:bool = ieq %p, %five
                if %never { barrier yield } else { yield }
                yield %f
            }
            %m:i32 = imul %n, %five
            yield %m
        })"},
    // A loop that ends by a return only, and all return.
    {"ReturnOutOfALoop", 0, R"(
        %r:i32 = loop @1 (%s:i32 = %i) {
            store_shared %so, %s align(4)
            barrier
            %t:i32 = load_shared %no align(4)
            %first:i32 = load_shared %z align(4)
            %u:i32 = iadd %t, %s
            barrier
            %done:bool = ult %forty, %first
            if %done {
                %b0:i32 = imul %w0, %forty
                %a0:i32 = iadd %b0, %i
                %t0:i32 = shl %a0, %six
                store_buffer %o, %t0, %u align(4)
                return
            } else { yield }
            continue @1 %u
        } continuing (%v:i32) { next %v })"},
    // Out of a continuing block, in a loop in another one.
    {"ContinuingBlock", 1, R"(
        %r:i32 = loop @1 (%k:i32 = %z, %s:i32 = %i) {
            store_shared %so, %s align(4)
            barrier
            %t:i32 = load_shared %no align(4)
            %u:i32 = iadd %t, %s
            barrier
            continue @1 %u
        } continuing (%v:i32) {
            %last:bool = ieq %k, %two
            if %last {
                %enough:bool = ult %v, %forty
                %x:i32 = iadd %v, %k
                if %enough { exit @1 %x } else { yield }
                exit @1 %v
            } else { yield }
            %next:i32 = iadd %k, %one
            next %next, %v
        })"},
    // Some skip the rest of the iteration, of the others some leave the loop, and who comes to its
    // end goes on or not. Nobody meets the barrier.
    {"NeverMet", 3, R"(
        %r:i32 = loop @1 (%k:i32 = %z, %s:i32 = %i) {
            if %low { yield } else { %c:i32 = iadd %s, %three continue @1 %c }
            %never:bool = ieq %p, %five
            if %never { barrier yield } else { yield }
            %next:i32 = iadd %k, %one
            %past:bool = ult %i3, %next
            if %past { %e:i32 = imul %s, %five exit @1 %e } else { yield }
            %h:i32 = iadd %s, %k
            continue @1 %h
        } continuing (%v:i32) {
            %later:i32 = iadd %k, %one
            %on:bool = ult %later, %i3
            if %on { yield } else { exit @1 %v }
            next %later, %v
        })"},
};

// Some invocations have returned before the barriers of the others, the first ones among them. The
// bodies go on to the end of the kernel.
inline constexpr BarrierKernel kReturnKernels[] = {
    // Loops whose conditions are the same for those who stay.
    {"OutOfAScope", 0, R"(
        store_shared %so, %z align(4)
        barrier
        scope @0 {
            if %low { exit @0 } else { yield }
            store_shared %so, %i align(4)
            barrier
            %n:i32 = loop @1 (%k:i32 = %five, %s:i32 = %i) {
                %on:bool = ine %k, %z
                if %on { yield } else { exit @1 %s }
                %t:i32 = load_shared %no align(4)
                %u:i32 = iadd %t, %s
                barrier
                store_shared %so, %u align(4)
                barrier
                continue @1 %u
            } continuing (%v:i32) {
                %next:i32 = isub %k, %one
                next %next, %v
            }
            %twelve:i32 = imul %three, %four
            %word6:i32 = shl %twelve, %one
            store_shared %word6, %z align(4)
            barrier
            %m:i32 = loop @2 (%c:i32 = %z, %s2:i32 = %n) {
                %seen:i32 = load_shared %word6 align(4)
                %enough:bool = ult %forty, %seen
                barrier
                if %enough { exit @2 %s2 } else { yield }
                %c2:i32 = iadd %c, %twelve
                store_shared %word6, %c2 align(4)
                barrier
                %s3:i32 = imul %s2, %three
                continue @2 %c2, %s3
            } continuing (%c3:i32, %v2:i32) { next %c3, %v2 }
            %b0:i32 = imul %w0, %forty
            %a0:i32 = iadd %b0, %i
            %t0:i32 = shl %a0, %six
            store_buffer %o, %t0, %m align(4)
            yield
        }
        return)"},
    // Out of a loop, further ones in each iteration, through a scope around it with a result.
    {"OutOfALoop", 0, R"(
        store_shared %so, %i align(4)
        barrier
        %r:i32 = scope @0 {
            %n:i32 = loop @1 (%k:i32 = %z, %s:i32 = %i) {
                %end:bool = ieq %k, %five
                if %end { exit @1 %s } else { yield }
                %past:bool = ieq %i, %k
                if %past { exit @0 %s } else { yield }
                %t:i32 = load_shared %no align(4)
                %u:i32 = iadd %t, %s
                barrier
                store_shared %so, %u align(4)
                barrier
                continue @1 %u
            } continuing (%v:i32) {
                %next:i32 = iadd %k, %one
                next %next, %v
            }
            %b0:i32 = imul %w0, %forty
            %a0:i32 = iadd %b0, %i
            %t0:i32 = shl %a0, %six
            store_buffer %o, %t0, %n align(4)
            yield %n
        }
        %unused:i32 = iadd %r, %one
        return)"},
};

inline std::string BarrierKernelStart() {
    return R"(kernel "k" workgroup_size(40, 1, 1) subgroup_size(8) shared(256) push_constants(68) {
  binding 0: storage_buffer set(0) binding(0) count(1) offset(0)
  binding 1: storage_buffer set(0) binding(1) count(1) offset(16)
  binding 2: storage_buffer set(0) binding(2) count(1) offset(32)
  body {
    %z:i32 = const 0
    %one:i32 = const 1
    %two:i32 = const 2
    %three:i32 = const 3
    %four:i32 = const 4
    %five:i32 = const 5
    %six:i32 = const 6
    %forty:i32 = const 40
    %i:i32 = builtin local_id_x
    %w0:i32 = builtin workgroup_id_x
    %o:buffer = buffer 0, %z
    %p:i32 = and %w0, %three
    %i3:i32 = and %i, %three
    %so:i32 = shl %i, %two
    %more:i32 = iadd %i, %three
    %other:i32 = urem %more, %forty
    %no:i32 = shl %other, %two
    %low:bool = ult %i, %six
)";
}

inline std::string BarrierKernelText(const BarrierKernel& kernel) {
    return BarrierKernelStart() + kernel.body + R"(
    barrier
    store_shared %so, %r align(4)
    barrier
    %theirs:i32 = load_shared %no align(4)
    %sum:i32 = imul %r, %three
    %out:i32 = iadd %sum, %theirs
    %base:i32 = imul %w0, %forty
    %at:i32 = iadd %base, %i
    %to:i32 = shl %at, %six
    store_buffer %o, %to, %out align(4)
    return
  }
}
)";
}

inline std::string ReturnKernelText(const BarrierKernel& kernel) {
    return BarrierKernelStart() + kernel.body + "\n}\n}\n";
}

}  // namespace fornax::kernel
