// The engine for AVX2, by itself, so that processors share the compilation.
#define KLSA_KERNELS "engine/all.hpp"
#define KLSA_ONLY 3
#include "buffers.hpp"
#include "results.hpp"

#include "../for_each_instruction_set.hpp"
