// Nearest neighbours of documents written after a build; delta/folding.py describes the method.
#pragma once

#include <algorithm>
#include <functional>
#include <span>
#include <vector>

#include "engine/containing.hpp"
#include "integers.hpp"
#include "ranking_keys.hpp"

namespace klsa {

// Documents as the kernel needs them: packed features, and step, S and SΦμ of each.
struct KernelRows {
    std::span<const i64> starts;
    std::span<const u32> features;
    const f32* scalars;
    i64 scalars_stride;
    std::span<const f32> boosts;  // S · K(x,x)^-¼

    i64 size() const { return i64(boosts.size()); }
    const f32* scalars_of(i64 document) const { return scalars + document * scalars_stride; }
};

// Postings of the documents written after a build, by term, in document order.
struct LaterPostings {
    struct Posting {
        i32 document;
        u16 share;
    };
    std::vector<std::vector<Posting>> of_terms;
    i64 documents = 0;
};

// Terms of new documents that select candidates, as in CSR.
struct CandidateTerms {
    std::span<const i64> starts;
    std::span<const i32> terms;
    std::span<const f32> weights;
};

// Finds the strongest entries of the rows of new documents. A search has its own buffers, which are
// zero between documents.
class NeighbourSearch {
  public:
    static constexpr size_t FILTER = 1 << 14;
    static constexpr i64 LAST = 0x7FFFFFFF;

    // Make room for the documents of the build, and for later ones, which follow them.
    void reserve(i64 built, i64 later) {
        built_ = built, after_ = built + later;
        if (i64(sums_.size()) < after_) sums_.resize(after_ + after_ / 8, 0);
        present_.resize(FILTER, 0);
    }

    // Accumulate partial sums of the documents before number d, heaviest terms first.
    //
    // A term with more postings of the build than are left of the budget is skipped.
    void accumulate(i64 d, i64 row, const CandidateTerms& query, const PostingLists& old, const LaterPostings& later,
                    i64 budget) {
        const i64 begin = query.starts[row], end = query.starts[row + 1];
        order_.clear();
        for (i64 i = begin; i < end; i++) order_.push_back(float_key(query.weights[i], i - begin));
        std::sort(order_.begin(), order_.end(), std::greater<i64>());
        touched_.clear();
        for (const i64 key : order_) {
            const i64 at = begin + document_of(key);
            const i32 term = query.terms[at];
            const f32 weight = query.weights[at];
            const i64 postings = old.starts[term + 1] - old.starts[term];
            if (postings > budget) continue;
            budget -= postings;
            for_each_run(old, term, [&](i64 first, std::span<const u32> entries) {
                for (const u32 entry : entries) add(first + (entry >> 16), weight * f32(entry & 0xFFFF));
            });
            for (const auto& [document, share] : later.of_terms[term]) {
                if (document >= d) break;
                add(built_ + document, weight * f32(share));
            }
        }
    }

    // Select the documents of the largest sums, by their boosts, and clear the sums.
    void select_candidates(i64 candidates, const KernelRows& old, const KernelRows& later) {
        keys_.clear();
        i64 least = 0;
        for (const i32 touched : touched_) {
            const i64 x = touched;
            const f32 boost = x < built_ ? old.boosts[x] : later.boosts[x - built_];
            const i64 key = float_key(sums_[x] * boost, x);
            sums_[x] = 0;
            if (key <= least) continue;
            keys_.push_back(key);
            if (i64(keys_.size()) == 4 * candidates) least = keep_largest(candidates);
        }
        keep_largest(candidates);
    }

    // Replace the candidates by the positive entries of row d, and keep the largest ones, in order.
    void compute_entries(i64 d, i64 width, const KernelRows& old, const KernelRows& later, f64 mean_square) {
        const auto features = of(later, d);
        for (const u32 feature : features) {
            if ((feature >> 8) >= dense_.size()) dense_.resize((feature >> 8) + 1, 0);
            dense_[feature >> 8] = u8(feature & LEVELS);
            present_[(feature >> 8) & (FILTER - 1)] = 1;
        }
        const f32* scalars = later.scalars_of(d);
        const f64 step = scalars[0], scale = scalars[1], dot = scalars[2];
        size_t size = 0;
        for (const i64 key : keys_) {
            const i64 x = document_of(key);
            const KernelRows& rows = x < built_ ? old : later;
            const i64 j = x < built_ ? x : x - built_;
            const f32* other = rows.scalars_of(j);
            f64 value = step * other[0] * f64(product(of(rows, j)));
            value -= dot * other[1];
            value -= scale * (other[2] - other[1] * mean_square);
            if (const f32 entry = f32(value); entry > 0) keys_[size++] = float_key(entry, x);
        }
        keys_.resize(size);
        for (const u32 feature : features) {
            dense_[feature >> 8] = 0;
            present_[(feature >> 8) & (FILTER - 1)] = 0;
        }
        keep_largest(width);
        std::sort(keys_.begin(), keys_.end(), std::greater<i64>());
    }

    // The entries of the last row, strongest first.
    i64 size() const { return i64(keys_.size()); }
    f32 value(i64 i) const { return value_of(keys_[i]); }
    i32 document(i64 i) const { return i32(document_of(keys_[i])); }

  private:
    static std::span<const u32> of(const KernelRows& rows, i64 document) {
        const i64 begin = rows.starts[document];
        return rows.features.subspan(begin, rows.starts[document + 1] - begin);
    }

    void add(i64 x, f32 value) {
        if (x < 0 || x >= after_) return;  // of a damaged posting
        const f32 before = sums_[x];
        sums_[x] = before + value;
        if (before == 0 && sums_[x] > 0) touched_.push_back(i32(x));  // a weight may be 0
    }

    // Return the smallest key that is kept.
    i64 keep_largest(i64 count) {
        if (i64(keys_.size()) <= count) return 0;
        if (count == 0) return keys_.clear(), 0;
        const i64 least = select_largest(keys_.data(), i64(keys_.size()), count);
        keys_.resize(count);
        return least;
    }

    // Return the sum of products of levels.
    i64 product(std::span<const u32> features) const {
        i64 total = 0;
        for (const u32 packed : features) {
            const u32 feature = packed >> 8;
            if (present_[feature & (FILTER - 1)] && feature < dense_.size())
                total += i64(dense_[feature]) * i64(packed & LEVELS);
        }
        return total;
    }

    i64 built_ = 0, after_ = 0;
    std::vector<f32> sums_;
    std::vector<i32> touched_;
    std::vector<i64> order_, keys_;
    std::vector<u8> dense_, present_;
};

}  // namespace klsa
