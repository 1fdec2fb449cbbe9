// Checks of arguments, which raise ValueError.
#pragma once

#include <span>
#include <stdexcept>
#include <string>

#include "integers.hpp"

namespace klsa {

// Raise ValueError unless a condition holds.
inline void require(bool holds, const char* message) {
    if (!holds) throw std::invalid_argument(message);
}

// Raise ValueError unless all values are in [low, high).
template <class Values>
void require_between(const Values& values, i64 low, i64 high, const char* name) {
    bool outside = false;
    for (const auto value : std::span(values.data(), values.size())) outside |= i64(value) < low || i64(value) >= high;
    if (outside)
        throw std::invalid_argument(std::string(name) + ": a value is outside of " + std::to_string(low) + " to " +
                                    std::to_string(high - 1));
}

// Raise ValueError unless `starts` begins at 0 or more, never decreases, and ends at `end` at most.
template <class Starts>
void require_offsets(const Starts& starts, i64 end, const char* name) {
    const std::span offsets(starts.data(), starts.size());
    bool wrong = !offsets.empty() && (i64(offsets.front()) < 0 || i64(offsets.back()) > end);
    for (size_t i = 1; i < offsets.size(); i++) wrong |= offsets[i] < offsets[i - 1];
    if (wrong) throw std::invalid_argument(std::string(name) + ": the offsets decrease or leave their array");
}

}  // namespace klsa
