// Exits behind the last barrier get a scope of their own: exact text before and after.
#include <gtest/gtest.h>

#include "compiler/kernel/transform/pass_test_util.h"
#include "compiler/kernel/transform/passes.h"

namespace fornax::kernel {
namespace {

constexpr char kPrologue[] = R"(
    %z:i32 = const 0
    %i:i32 = builtin local_id_x
    %b:bool = ieq %i, %z
    %o:buffer = buffer 0, %z
)";

void Expect(const std::string& in, const std::string& out) {
    ExpectPass(IsolateBarrierTails, "", kPrologue + in, "", kPrologue + out);
}

TEST(BarrierTails, ExitsBehindTheLastBarrierLeaveAScopeOfTheirOwn) {
    Expect(R"(
        %r:i32 = scope @0 {
            store_shared %z, %i align(4)
            if %b { exit @0 %z }
            barrier
            switch %i default { yield } case 1 { exit @0 %i }
            store_buffer %o, %z, %i align(4)
            yield %i
        }
        store_buffer %o, %z, %r align(4)
        return)",
           R"(
        %r:i32 = scope @0 {
            store_shared %z, %i align(4)
            if %b { exit @0 %z }
            barrier
            %t:i32 = scope @1 {
                switch %i default { yield } case 1 { exit @1 %i }
                store_buffer %o, %z, %i align(4)
                yield %i
            }
            yield %t
        }
        store_buffer %o, %z, %r align(4)
        return)");
}

TEST(BarrierTails, OtherExitsStay) {
    const std::string kBody = R"(
        scope @0 {
            scope @1 { if %b { exit @1 } store_buffer %o, %z, %i align(4) yield }
            if %b { exit @0 }
            barrier
            store_buffer %o, %z, %i align(4)
            yield
        }
        loop @2 () {
            barrier
            if %b { exit @2 }
            continue @2
        } continuing () { next }
        return)";
    Expect(kBody, kBody);
}

}  // namespace
}  // namespace fornax::kernel
