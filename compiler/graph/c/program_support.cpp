// The text of the program around a network, on bare metal and on a host.
#include "compiler/graph/c/support.h"

namespace fornax::graph::c {

std::string_view BareMetalSupport() {
    return R"(// --- Machine -------------------------------------------------------------------------------------
#ifdef @NAME@_HOST
#include <stdio.h>
#include <time.h>

static void put_character(char c) {
    putchar(c);
}
static uint64_t count_cycles(void) {
    struct timespec now;
    timespec_get(&now, TIME_UTC);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}
static uint64_t count_instructions(void) {
    return 0;
}
// The parts of a file one after the other. False if it is not there or has another length.
static bool read_parts(const char* name, const part* parts, size_t count) {
    FILE* file = fopen(name, "rb");
    bool ok = file != NULL;
    for (size_t i = 0; ok && i < count; ++i) {
        ok = fread(parts[i].data, 1, parts[i].size, file) == parts[i].size;
    }
    ok = ok && fgetc(file) == EOF;
    return file != NULL ? fclose(file) == 0 && ok : ok;
}
static bool write_parts(const char* name, const part* parts, size_t count) {
    FILE* file = fopen(name, "wb");
    bool ok = file != NULL;
    for (size_t i = 0; ok && i < count; ++i) {
        ok = fwrite(parts[i].data, 1, parts[i].size, file) == parts[i].size;
    }
    return file != NULL ? fclose(file) == 0 && ok : ok;
}

static void device_write(uintptr_t address, uint32_t value);
static uint32_t device_read(uintptr_t address);
static void mmio_write32(uintptr_t address, uint32_t value) {
    device_write(address, value);
}
static uint32_t mmio_read32(uintptr_t address) {
    return device_read(address);
}

#else  // bare-metal RV64, machine mode

__asm__(
    ".section .text.init, \"ax\"\n"
    ".globl _start\n"
    "_start:\n"
    "    csrr t0, mhartid\n"
    "    bnez t0, 3f\n"
    ".option push\n"
    ".option norelax\n"
    "    la gp, __global_pointer$\n"
    ".option pop\n"
    "    la sp, __stack_top\n"
    "    la tp, __tls_base\n"
    "    li t0, 0x6000\n"  // floating point on
    "    csrs mstatus, t0\n"
    "    csrw fcsr, zero\n"
    "    la t0, trap_entry\n"
    "    csrw mtvec, t0\n"
    "    la t0, __bss_start\n"
    "    la t1, __bss_end\n"
    "1:  bgeu t0, t1, 2f\n"
    "    sd zero, 0(t0)\n"
    "    addi t0, t0, 8\n"
    "    j 1b\n"
    "2:  call main\n"
    "    call @name@_exit\n"
    "3:  wfi\n"
    "    j 3b\n"
    // Keeps what a function may change, and gives it to the handler.
    ".balign 4\n"
    "trap_entry:\n"
    "    addi sp, sp, -304\n"
    "    sd ra, 0(sp)\n    sd t0, 8(sp)\n    sd t1, 16(sp)\n    sd t2, 24(sp)\n"
    "    sd a0, 32(sp)\n    sd a1, 40(sp)\n    sd a2, 48(sp)\n    sd a3, 56(sp)\n"
    "    sd a4, 64(sp)\n    sd a5, 72(sp)\n    sd a6, 80(sp)\n    sd a7, 88(sp)\n"
    "    sd t3, 96(sp)\n    sd t4, 104(sp)\n    sd t5, 112(sp)\n    sd t6, 120(sp)\n"
    "    fsd ft0, 128(sp)\n    fsd ft1, 136(sp)\n    fsd ft2, 144(sp)\n    fsd ft3, 152(sp)\n"
    "    fsd ft4, 160(sp)\n    fsd ft5, 168(sp)\n    fsd ft6, 176(sp)\n    fsd ft7, 184(sp)\n"
    "    fsd fa0, 192(sp)\n    fsd fa1, 200(sp)\n    fsd fa2, 208(sp)\n    fsd fa3, 216(sp)\n"
    "    fsd fa4, 224(sp)\n    fsd fa5, 232(sp)\n    fsd fa6, 240(sp)\n    fsd fa7, 248(sp)\n"
    "    fsd ft8, 256(sp)\n    fsd ft9, 264(sp)\n    fsd ft10, 272(sp)\n    fsd ft11, 280(sp)\n"
    "    mv a0, sp\n"
    "    call @name@_trap\n"
    "    fld ft0, 128(sp)\n    fld ft1, 136(sp)\n    fld ft2, 144(sp)\n    fld ft3, 152(sp)\n"
    "    fld ft4, 160(sp)\n    fld ft5, 168(sp)\n    fld ft6, 176(sp)\n    fld ft7, 184(sp)\n"
    "    fld fa0, 192(sp)\n    fld fa1, 200(sp)\n    fld fa2, 208(sp)\n    fld fa3, 216(sp)\n"
    "    fld fa4, 224(sp)\n    fld fa5, 232(sp)\n    fld fa6, 240(sp)\n    fld fa7, 248(sp)\n"
    "    fld ft8, 256(sp)\n    fld ft9, 264(sp)\n    fld ft10, 272(sp)\n    fld ft11, 280(sp)\n"
    "    ld ra, 0(sp)\n    ld t0, 8(sp)\n    ld t1, 16(sp)\n    ld t2, 24(sp)\n"
    "    ld a0, 32(sp)\n    ld a1, 40(sp)\n    ld a2, 48(sp)\n    ld a3, 56(sp)\n"
    "    ld a4, 64(sp)\n    ld a5, 72(sp)\n    ld a6, 80(sp)\n    ld a7, 88(sp)\n"
    "    ld t3, 96(sp)\n    ld t4, 104(sp)\n    ld t5, 112(sp)\n    ld t6, 120(sp)\n"
    "    addi sp, sp, 304\n"
    "    mret\n"
    ".text\n");

enum { kFrameA0 = 4, kFrameA1 = 5 };

#define READ_CSR(name)                                       \
    ({                                                       \
        uint64_t csr_value;                                  \
        __asm__ volatile("csrr %0, " name : "=r"(csr_value)); \
        csr_value;                                           \
    })

static uint64_t count_cycles(void) {
    return READ_CSR("mcycle");
}
static uint64_t count_instructions(void) {
    return READ_CSR("minstret");
}
static void put_character(char c) {
    *(volatile uint8_t*)@NAME@_UART = (uint8_t)c;
}

// The host's services under a debugger or QEMU's -semihosting-config. -1 where there are none.
static __attribute__((noinline)) int64_t semihost(int64_t operation, const void* argument) {
    register int64_t a0 __asm__("a0") = operation;
    register const void* a1 __asm__("a1") = argument;
    __asm__ volatile(
        ".balign 16\n.option push\n.option norvc\n"
        "slli x0, x0, 0x1f\nebreak\nsrai x0, x0, 7\n.option pop\n"
        : "+r"(a0)
        : "r"(a1)
        : "memory");
    return a0;
}

static bool on_parts(const char* name, const part* parts, size_t count, bool writes) {
    const int64_t open[3] = {(int64_t)(uintptr_t)name, writes ? 5 : 1, (int64_t)strlen(name)};
    const int64_t file = semihost(1, open);
    bool ok = file > 0;
    for (size_t i = 0; ok && i < count; ++i) {
        const int64_t move[3] = {file, (int64_t)(uintptr_t)parts[i].data, (int64_t)parts[i].size};
        ok = parts[i].size == 0 || semihost(writes ? 5 : 6, move) == 0;
    }
    if (ok && !writes) {
        const int64_t length = semihost(12, &file);
        int64_t sum = 0;
        for (size_t i = 0; i < count; ++i) {
            sum += (int64_t)parts[i].size;
        }
        ok = length == sum;
    }
    if (file > 0) {
        semihost(2, &file);
    }
    return ok;
}
static bool read_parts(const char* name, const part* parts, size_t count) {
    return on_parts(name, parts, count, false);
}
static bool write_parts(const char* name, const part* parts, size_t count) {
    return on_parts(name, parts, count, true);
}

// Ends the program in QEMU's machine virt by its test device, elsewhere waits forever.
__attribute__((noreturn)) void @name@_exit(int status) {
    *(volatile uint32_t*)@NAME@_TEST_DEVICE =
        status == 0 ? 0x5555u : 0x3333u | ((uint32_t)status << 16);
    for (;;) {
        __asm__ volatile("wfi");
    }
}

// Registers of devices: one store or load of 32 bits, from a1 or to a0.
static __attribute__((noinline)) void mmio_write32(uintptr_t address, uint32_t value) {
    register uintptr_t a0 __asm__("a0") = address;
    register uint32_t a1 __asm__("a1") = value;
    __asm__ volatile(".option push\n.option norvc\nsw a1, 0(a0)\n.option pop\n"
                     :
                     : "r"(a0), "r"(a1)
                     : "memory");
}
static __attribute__((noinline)) uint32_t mmio_read32(uintptr_t address) {
    register uintptr_t a0 __asm__("a0") = address;
    __asm__ volatile(".option push\n.option norvc\nlw a0, 0(a0)\n.option pop\n"
                     : "+r"(a0)
                     :
                     : "memory");
    return (uint32_t)a0;
}

static void put_text(const char* text);
static void put_hexadecimal(uint64_t value);
static void device_write(uintptr_t address, uint32_t value);
static uint32_t device_read(uintptr_t address);
static bool is_device(uintptr_t address);

// Where no device answers at the addresses of @name@.h, its model does. A breakpoint is a service
// of a host that is not there.
void @name@_trap(uint64_t* frame) {
    const uint64_t cause = READ_CSR("mcause"), address = READ_CSR("mtval");
    const uint64_t at = READ_CSR("mepc");
    if (cause == 7 && is_device(address)) {
        device_write(address, (uint32_t)frame[kFrameA1]);
    } else if (cause == 5 && is_device(address)) {
        frame[kFrameA0] = device_read(address);
    } else if (cause == 3) {
        frame[kFrameA0] = ~UINT64_C(0);
    } else {
        put_text("trap: cause ");
        put_hexadecimal(cause);
        put_text(" at ");
        put_hexadecimal(at);
        put_text(", address ");
        put_hexadecimal(address);
        put_text("\n");
        @name@_exit(2);
    }
    __asm__ volatile("csrw mepc, %0" : : "r"(at + 4));
}
#endif
)";
}

std::string_view MainProgram() {
    return R"(
static void put_text(const char* text) {
    for (; *text != 0; ++text) {
        put_character(*text);
    }
}
static __attribute__((unused)) void put_hexadecimal(uint64_t value) {
    put_text("0x");
    for (int shift = 60; shift >= 0; shift -= 4) {
        put_character("0123456789abcdef"[(value >> shift) & 15]);
    }
}
static void put_number(uint64_t value, int width) {
    char digits[24];
    int count = 0;
    do {
        digits[count++] = (char)('0' + value % 10);
        value /= 10;
    } while (value != 0);
    for (int i = count; i < width; ++i) {
        put_character(' ');
    }
    while (count > 0) {
        put_character(digits[--count]);
    }
}

// --- Devices -------------------------------------------------------------------------------------

// The models of the echo device and the compute device, whose registers @name@.h describes.
static struct {
    uint32_t echo, status, step;
    uint64_t inputs, outputs, cycles, instructions;
    uint64_t of_step[@NAME@_STEPS + 1];
} device;

static __attribute__((unused)) bool is_device(uintptr_t address) {
    return address - @NAME@_ECHO_DEVICE < @NAME@_DEVICE_BYTES ||
           address - @NAME@_COMPUTE_DEVICE < @NAME@_DEVICE_BYTES;
}
static void set_half(uint64_t* whole, int high, uint32_t half) {
    *whole = high ? (*whole & UINT32_MAX) | ((uint64_t)half << 32)
                  : (*whole & ~(uint64_t)UINT32_MAX) | half;
}
static void device_start(void) {
    device.status = @NAME@_STATUS_BUSY;
    const uint64_t cycles = count_cycles(), instructions = count_instructions();
    uint64_t before = cycles;
    @name@_bind((const @name@_inputs*)(uintptr_t)device.inputs,
                (const @name@_outputs*)(uintptr_t)device.outputs);
    for (device.step = 0; device.step < @NAME@_STEPS; ++device.step) {
        @name@_step(device.step);
        const uint64_t now = count_cycles();
        device.of_step[device.step] = now - before;
        before = now;
    }
    @name@_finish();
    device.cycles = count_cycles() - cycles;
    device.instructions = count_instructions() - instructions;
    device.status = @NAME@_STATUS_DONE;
}
static void device_write(uintptr_t address, uint32_t value) {
    if (address == @NAME@_ECHO_DEVICE) {
        device.echo = value;
        put_character((char)value);
        return;
    }
    const uintptr_t offset = address - @NAME@_COMPUTE_DEVICE;
    switch (offset) {
        case @NAME@_REGISTER_CONTROL:
            if ((value & @NAME@_CONTROL_RESET) != 0) {
                @name@_reset();
                device.status = @NAME@_STATUS_IDLE;
            }
            if ((value & @NAME@_CONTROL_START) != 0) {
                device_start();
            }
            break;
        case @NAME@_REGISTER_INPUTS:
        case @NAME@_REGISTER_INPUTS + 4:
            set_half(&device.inputs, offset != @NAME@_REGISTER_INPUTS, value);
            break;
        case @NAME@_REGISTER_OUTPUTS:
        case @NAME@_REGISTER_OUTPUTS + 4:
            set_half(&device.outputs, offset != @NAME@_REGISTER_OUTPUTS, value);
            break;
        default:
            break;
    }
}
static uint32_t device_read(uintptr_t address) {
    if (address == @NAME@_ECHO_DEVICE) {
        return device.echo;
    }
    switch (address - @NAME@_COMPUTE_DEVICE) {
        case @NAME@_REGISTER_ID:
            return @NAME@_DEVICE_ID;
        case @NAME@_REGISTER_VERSION:
            return 1;
        case @NAME@_REGISTER_STATUS:
            return device.status;
        case @NAME@_REGISTER_STEPS:
            return @NAME@_STEPS;
        case @NAME@_REGISTER_STEP:
            return device.step;
        case @NAME@_REGISTER_CYCLES:
            return (uint32_t)device.cycles;
        case @NAME@_REGISTER_CYCLES + 4:
            return (uint32_t)(device.cycles >> 32);
        case @NAME@_REGISTER_INSTRUCTIONS:
            return (uint32_t)device.instructions;
        case @NAME@_REGISTER_INSTRUCTIONS + 4:
            return (uint32_t)(device.instructions >> 32);
        default:
            return 0;
    }
}

// --- Main program --------------------------------------------------------------------------------

static void echo(const char* text) {
    for (; *text != 0; ++text) {
        mmio_write32(@NAME@_ECHO_DEVICE, (uint8_t)*text);
    }
}
static void write64(uintptr_t offset, uint64_t value) {
    mmio_write32(@NAME@_COMPUTE_DEVICE + offset, (uint32_t)value);
    mmio_write32(@NAME@_COMPUTE_DEVICE + offset + 4, (uint32_t)(value >> 32));
}
static uint64_t read64(uintptr_t offset) {
    const uint64_t low = mmio_read32(@NAME@_COMPUTE_DEVICE + offset);
    return low | ((uint64_t)mmio_read32(@NAME@_COMPUTE_DEVICE + offset + 4) << 32);
}
static int fail(const char* text) {
    echo(text);
    return 1;
}

int main(void) {
    if (mmio_read32(@NAME@_COMPUTE_DEVICE + @NAME@_REGISTER_ID) != @NAME@_DEVICE_ID) {
        return fail("@name@: the compute device does not answer.\n");
    }
    mmio_write32(@NAME@_COMPUTE_DEVICE + @NAME@_REGISTER_CONTROL, @NAME@_CONTROL_RESET);
    const bool has_inputs = read_parts("@name@_inputs.bin", input_parts, @NAME@_INPUTS);
    echo(@NAME@_INPUTS == 0 ? "inputs: there are none\n"
         : has_inputs       ? "inputs: @name@_inputs.bin\n"
                            : "inputs: zeros, because @name@_inputs.bin is not there or has another length\n");
    if (!has_inputs) {
        for (size_t i = 0; i < @NAME@_INPUTS; ++i) {
            memset(input_parts[i].data, 0, input_parts[i].size);
        }
    }
    write64(@NAME@_REGISTER_INPUTS, (uintptr_t)&program_inputs);
    write64(@NAME@_REGISTER_OUTPUTS, (uintptr_t)&program_outputs);
    mmio_write32(@NAME@_COMPUTE_DEVICE + @NAME@_REGISTER_CONTROL, @NAME@_CONTROL_START);
    if (mmio_read32(@NAME@_COMPUTE_DEVICE + @NAME@_REGISTER_STATUS) != @NAME@_STATUS_DONE) {
        return fail("@name@: the compute device is not done.\n");
    }
    for (uint32_t i = 0; i < @NAME@_STEPS; ++i) {
        put_text("step ");
        put_number(i, 4);
        put_number(device.of_step[i], 14);
        put_text("  ");
        put_text(@name@_step_name(i));
        put_text("\n");
    }
    put_text("steps: ");
    put_number(mmio_read32(@NAME@_COMPUTE_DEVICE + @NAME@_REGISTER_STEP), 0);
    put_text(@NAME@_COUNTS_CYCLES ? "\ncycles: " : "\nnanoseconds: ");
    put_number(read64(@NAME@_REGISTER_CYCLES), 0);
    if (@NAME@_COUNTS_CYCLES) {
        put_text("\ninstructions: ");
        put_number(read64(@NAME@_REGISTER_INSTRUCTIONS), 0);
    }
    put_text("\n");
    if (!write_parts("@name@_outputs.bin", output_parts, @NAME@_OUTPUTS)) {
        return fail("outputs: @name@_outputs.bin cannot be written\n");
    }
    echo("outputs: @name@_outputs.bin\n");
    return 0;
}
)";
}

}  // namespace fornax::graph::c
