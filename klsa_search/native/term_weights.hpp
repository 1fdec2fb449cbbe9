// Weights of terms by their counts in documents: see `klsa_search.kernels.query_kernel`.
#pragma once

#include <algorithm>
#include <cmath>

#include "engine/index.hpp"
#include "integers.hpp"

namespace klsa {

enum class Idf { LUCENE, ROBERTSON, ATIRE };

// w(t) of a term that n of N documents contain: see `klsa_search.kernels.bm25.idf_of`.
inline f64 idf_of(Idf variant, f64 n, f64 N) {
    constexpr f64 LEAST = 1.0 / 65536;
    if (variant == Idf::ATIRE) return std::max(std::log(std::max(N, 1.0) / std::max(n, 1.0)), LEAST);
    const f64 odds = (N - n + 0.5) / (n + 0.5);
    return variant == Idf::ROBERTSON ? std::max(std::log(odds), LEAST) : std::log1p(odds);
}

struct TermWeight {
    f32 weight;      // h(t) · w(t)
    i64 steps;       // the same in 65,536ths, at least 1
    f32 burstiness;  // b(t)
};

// Computes the weights of the terms that are asked for: a write changes those of all terms.
struct TermWeights {
    Array<i64> frequencies, occurrences;  // of each term
    Array<i64> common;                    // terms, ascending
    i64 documents;
    f64 max_burstiness, common_weight;
    Idf idf;

    i64 size() const { return frequencies.size; }

    TermWeight operator[](i64 term) const {
        const f64 n = f64(frequencies[term]), N = f64(std::max<i64>(documents, 1));
        const f64 by_chance = N * -std::expm1(-f64(occurrences[term]) / N);
        const f64 burstiness = std::clamp(std::sqrt(by_chance / std::max(n, 1.0)), 1.0, max_burstiness);
        f64 weight = idf_of(idf, n, f64(documents)) * burstiness;
        if (std::binary_search(common.data, common.data + common.size, term)) weight *= common_weight;
        return {f32(weight), std::max<i64>(std::llrint(weight * 65536), 1), f32(burstiness)};
    }
};

}  // namespace klsa
