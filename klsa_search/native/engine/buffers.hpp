// Memory of a search, reused by later searches of any index.
//
// Each candidate has a slot, numbered from 1: first the seeds, then the other best documents by
// BM25, then documents that only the expansion finds.
#pragma once

#include <cstdlib>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "../pool.hpp"
#include "../ranking_keys.hpp"
#include "index.hpp"

namespace klsa {

// Zeroed memory, of which only what is written takes space.
template <class T>
class Zeroed {
  public:
    explicit Zeroed(i64 size = 0) { grow(size); }
    void grow(i64 size) {
        if (size <= size_) return;
        T* data = static_cast<T*>(std::calloc(size, sizeof(T)));
        if (!data) throw std::bad_alloc();
        data_.reset(data);
        size_ = size;
    }
    T* data() { return data_.get(); }
    const T* data() const { return data_.get(); }
    i64 size() const { return size_; }
    T& operator[](i64 i) { return data_.get()[i]; }

  private:
    struct Free {
        void operator()(void* data) const { std::free(data); }
    };
    std::unique_ptr<T, Free> data_;
    i64 size_ = 0;
};

constexpr i64 PADDING = 64;      // vectors may be read or written as a whole
constexpr int FILTER = 1 << 13;  // bytes of the filter that saves look-ups; they fit the L1 cache

// Sums of the features of the seeds, in steps; all 0 between searches. Most features of a document
// have none: these are told apart by a filter of their lowest bits.
struct FeatureSums {
    Zeroed<i16> sums{NUMBERS + PADDING};
    std::vector<u8> filter = std::vector<u8>(FILTER);

    void set(u32 feature, i16 sum) {
        sums[feature] = sum;
        filter[feature & (FILTER - 1)] = 1;
    }
    i16 take(u32 feature) {
        filter[feature & (FILTER - 1)] = 0;
        return std::exchange(sums[feature], i16(0));
    }
    void clear(Array<u32> features) {
        i16* all = sums.data();
        u8* marks = filter.data();
        for (u32 entry : features.items()) {
            u32 feature = entry >> 8;
            all[feature] = 0;
            marks[feature & (FILTER - 1)] = 0;
        }
    }
};

// A distinct term of a query, and its postings in the current segment and block.
struct Term {
    i64 term, count;                           // number; f(t, q)
    i64 place;                                 // in the query
    i64 weight;                                // f(t, q) · h(t) · w(t), in steps
    i64 max_impact;                            // in steps
    i64 posting, last_posting, run, last_run;  // next in the segment, and its ends
    i64 first, after;                          // in the block
    i64 bound;                                 // of their impacts, in steps
};

struct Buffers {
    // BM25. The accumulator has room for any offset of a posting.
    Zeroed<i32> accumulator{(1 << MAX_BLOCK_BITS) + PADDING};  // all 0 between blocks
    std::vector<Term> terms;
    std::vector<i32> maxima, passing, places;
    std::vector<i64> keys, spare_keys;
    std::vector<i64> posting_offsets;  // start of each term's postings in each block

    // Of each document or feature number; all 0 between searches.
    Zeroed<i32> slots;                                               // 0 for none
    Zeroed<u32> is_best{NUMBERS / 32 + (1 << MAX_BLOCK_BITS) / 32};  // a bit each
    FeatureSums features;
    Zeroed<u64> matches{(NUMBERS + (1 << MAX_BLOCK_BITS)) / 64 + 1};  // a bit each, set if totals are counted

    // Of each slot.
    std::vector<i32> documents, chosen, rescored, bits, remaining;
    std::vector<f32> lexical, covered, scores, exact;
    std::vector<f32> expanded;  // 0 beyond the last slot
    std::vector<u8> is_exact;   // which parts are: see `Exact`
    std::vector<f32> impacts;   // (best + 1, stride) of each term; row 0 is 0
    std::vector<i64> result_keys, sort_buffer;

    // Of each term, padded to a multiple of 8; of each seed; of the query.
    std::vector<f32> term_weights, half, weights, query_floats;
    std::vector<i16> query_vector;

    // Of the neighbours of a document that are among the best; of postings being scanned.
    std::vector<i32> near;
    std::vector<f32> shares;
    std::vector<u32> hits;

    // The best documents of other partitions, and a filter of their lowest bits.
    std::vector<u32> remote;
    std::vector<u8> remote_filter = std::vector<u8>(FILTER);

    // Make room for `matched` results of BM25, of an index of some size.
    void reserve_postings(const Postings& postings, i64 terms_, i64 matched) {
        grow(terms, terms_);
        grow(posting_offsets, terms_ * (postings.blocks + i64(postings.segments.size())));
        for (auto* each : {&maxima, &passing, &places}) grow(*each, (i64(1) << postings.block_bits) + 16 * 32);
        grow(keys, key_buffer_size(matched) + (i64(1) << postings.block_bits));
        grow(spare_keys, i64(keys.size()));
    }

    void reserve_slots(const Postings& postings, const Model& model, i64 matched, i64 slots_) {
        slots.grow(postings.size + (1 << MAX_BLOCK_BITS));
        for (auto* each : {&documents, &chosen, &rescored, &bits}) grow(*each, slots_ + PADDING);
        for (auto* each : {&covered, &scores, &exact, &expanded}) grow(*each, slots_ + PADDING);
        for (auto* each : {&result_keys, &sort_buffer}) grow(*each, slots_ + PADDING);
        grow(is_exact, slots_ + PADDING);
        grow(lexical, matched + 1 + PADDING);
        grow(near, model.neighbours + PADDING);
        grow(shares, model.neighbours + PADDING);
        query_vector.assign(model.vector_width, 0);
        query_floats.assign(model.dimensions, 0);
    }

    // How many keys are collected before the k largest are selected, at about equal cost.
    static i64 key_buffer_size(i64 k) { return std::max(2 * k, k + 32); }

    template <class T>
    static void grow(std::vector<T>& buffer, i64 size) {
        if (i64(buffer.size()) < size) buffer.resize(size);
    }
};

constexpr i64 MAX_RETAINED = 1 << 14;  // results of searches whose buffers are reused

// Buffers for one search; returned to the pool by `release`, freed if an exception passes.
class BufferLease {
  public:
    Buffers& operator*() { return *buffers_; }
    void release() {
        if (i64(buffers_->keys.size()) <= Buffers::key_buffer_size(2 * MAX_RETAINED) + (1 << MAX_BLOCK_BITS))
            pool().give(std::move(buffers_));
    }

  private:
    static Pool<Buffers>& pool() {
        static auto* pool = new Pool<Buffers>;  // never freed: a thread may search while the process ends
        return *pool;
    }
    std::unique_ptr<Buffers> buffers_ = pool().take();
};

}  // namespace klsa
