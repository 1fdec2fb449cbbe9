// Arrays of documents in parts of consecutive doc ids, of which the first begins at 0.
#pragma once

#include <algorithm>
#include <vector>

#include "integers.hpp"

namespace klsa {

// Return the part with a document. The first part, of the build, has nearly all.
template <class Part>
const Part& part_of(const std::vector<Part>& parts, i64 document) {
    if (parts.size() == 1 || document < parts[1].first) return parts[0];
    auto is_before = [](i64 number, const Part& part) { return number < part.first; };
    return std::upper_bound(parts.begin(), parts.end(), document, is_before)[-1];
}

}  // namespace klsa
