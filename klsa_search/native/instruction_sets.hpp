// The instruction set that kernels run with: chosen when the module is imported, changed by tests.
//
// A module for one machine is compiled with KLSA_NATIVE, the number of its only instruction set (KLSA_ISA).
#pragma once

#ifndef KLSA_NATIVE
#define KLSA_NATIVE 0
#endif

#include <atomic>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace klsa {

enum class InstructionSet { baseline, avx2, avx512 };

// Return the largest instruction set that the processor and its operating system support.
// By cpuid, because __builtin_cpu_supports is a stub that returns 0 in zig.
inline InstructionSet best_instruction_set() {
#if defined(__x86_64__)
    unsigned a, b, c, d, low, high;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c >> 27 & 1)) return InstructionSet::baseline;  // no xgetbv
    bool fma = c >> 12 & 1, popcnt = c >> 23 & 1;
    asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    if (!__get_cpuid_count(0x80000001, 0, &a, &b, &c, &d)) return InstructionSet::baseline;
    bool lzcnt = c >> 5 & 1;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return InstructionSet::baseline;
    auto bit = [b](int number) { return bool(b >> number & 1); };
    bool avx2 = (low & 0x6) == 0x6 && fma && popcnt && lzcnt && bit(5) && bit(3) && bit(8);  // avx2, bmi, bmi2
    bool avx512 = avx2 && (low & 0xE6) == 0xE6 && bit(16) && bit(17) && bit(30) && bit(31);  // f, dq, bw, vl
    return avx512 ? InstructionSet::avx512 : avx2 ? InstructionSet::avx2 : InstructionSet::baseline;
#else
    return InstructionSet::baseline;
#endif
}

// Those that the module may run with.
inline InstructionSet least_instruction_set() {
    return InstructionSet(KLSA_NATIVE ? KLSA_NATIVE - 2 : 0);
}
inline InstructionSet largest_instruction_set() {
    return KLSA_NATIVE ? least_instruction_set() : best_instruction_set();
}

inline std::atomic<InstructionSet> active_instruction_set{largest_instruction_set()};

// Read a cache line ahead. Not by __builtin_prefetch on x86-64: GCC 12 takes a function that only
// prefetches for one without effect, and drops its calls.
inline void prefetch(const void* address) {
#if defined(__x86_64__)
    asm volatile("prefetcht0 %0" : : "m"(*static_cast<const char*>(address)));
#else
    __builtin_prefetch(address);
#endif
}

}  // namespace klsa
