// Include the file named by KLSA_KERNELS once for each instruction set, in a namespace of its own.
//
// Such a file has no include guard, puts its contents in namespace klsa::KLSA_NS, and may ask for
// KLSA_ISA: 2 for the baseline of the platform, 3 for AVX2, 4 for AVX-512. KLSA_DISPATCH(f(x)) then
// calls the f of the active instruction set. All three give the same bits. With KLSA_ONLY, the number
// of one, the others are left to other files; with KLSA_NATIVE, the module has only that one.
//
// Standard headers come first: a function that the linker shares between files must not be compiled
// for a larger instruction set than the processor has.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "instruction_sets.hpp"
#include "integers.hpp"
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define KLSA_HAS(isa) ((!KLSA_ONLY || KLSA_ONLY == isa) && (!KLSA_NATIVE || KLSA_NATIVE == isa))

#if KLSA_HAS(2)
#define KLSA_NS baseline
#define KLSA_ISA 2
#include KLSA_KERNELS
#undef KLSA_NS
#undef KLSA_ISA
#endif

#if defined(__x86_64__) && KLSA_HAS(3)
#define KLSA_NS avx2
#define KLSA_ISA 3
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,bmi,bmi2,popcnt,lzcnt,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,bmi,bmi2,popcnt,lzcnt,fma")
#endif
#include KLSA_KERNELS
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#undef KLSA_NS
#undef KLSA_ISA
#endif

#if defined(__x86_64__) && KLSA_HAS(4)
#define KLSA_NS avx512
#define KLSA_ISA 4
#if defined(__clang__)
#pragma clang attribute push( \
    __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx2,bmi,bmi2,popcnt,lzcnt,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,avx2,bmi,bmi2,popcnt,lzcnt,fma")
#endif
#include KLSA_KERNELS
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#undef KLSA_NS
#undef KLSA_ISA
#endif

#undef KLSA_KERNELS
#undef KLSA_HAS

#ifndef KLSA_DISPATCH
#if KLSA_NATIVE == 4
#define KLSA_DISPATCH(...) (klsa::avx512::__VA_ARGS__)
#elif KLSA_NATIVE == 3
#define KLSA_DISPATCH(...) (klsa::avx2::__VA_ARGS__)
#elif defined(__x86_64__) && !KLSA_NATIVE
#define KLSA_DISPATCH(...)                                                                    \
    (klsa::active_instruction_set == klsa::InstructionSet::avx512 ? klsa::avx512::__VA_ARGS__ \
     : klsa::active_instruction_set == klsa::InstructionSet::avx2 ? klsa::avx2::__VA_ARGS__   \
                                                                  : klsa::baseline::__VA_ARGS__)
#else
#define KLSA_DISPATCH(...) (klsa::baseline::__VA_ARGS__)
#endif
#endif
