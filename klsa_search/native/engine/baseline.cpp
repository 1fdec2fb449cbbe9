// The engine for the baseline of the platform, by itself, so that processors share the compilation.
#define KLSA_KERNELS "engine/all.hpp"
#define KLSA_ONLY 2
#include "buffers.hpp"
#include "results.hpp"

#include "../for_each_instruction_set.hpp"
