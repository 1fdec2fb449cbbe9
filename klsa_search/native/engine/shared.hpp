// The seeds of a query over several partitions: the best documents of all, and what each partition
// needs of them.
#pragma once

#include <algorithm>
#include <bit>
#include <vector>

#include "index.hpp"
#include "results.hpp"

namespace klsa {

// Step between the keys of later documents of different partitions. The key of a document is its
// ordinal, which later documents of several partitions may share, plus steps.
constexpr i64 PARTITION_STEP = i64(1) << 32;

inline i64 key_in(i64 ordinal, i64 partition) {
    return ordinal + (ordinal >= FIRST_LATER ? partition * PARTITION_STEP : 0);
}
inline i64 ordinal_of(i64 key) {
    return key < FIRST_LATER ? key : FIRST_LATER + key % PARTITION_STEP;
}
// Whether a partition has a number for a document: not for later ones of other partitions.
inline bool is_numbered(i64 key, i64 partition) {
    return key < FIRST_LATER || (key - FIRST_LATER) / PARTITION_STEP == partition;
}

// A document among the best of all partitions, and among those of its partition.
struct BestDocument {
    i64 steps, key, partition, place;
};

// Numbers keys from 0 in the order in which they are added.
class Numbering {
  public:
    explicit Numbering(size_t most) : slots_(std::bit_ceil(2 * most + 1), -1) { keys.reserve(most); }

    std::vector<i64> keys;

    // The number of a key; -1 if it was not added.
    i32 find(i64 key) const { return slots_[slot_of(key)]; }
    i32 add(i64 key) {
        i32& number = slots_[slot_of(key)];
        if (number < 0) {
            number = i32(keys.size());
            keys.push_back(key);
        }
        return number;
    }

  private:
    std::vector<i32> slots_;

    size_t slot_of(i64 key) const {
        size_t slot = size_t(u64(key) * 0x9E3779B97F4A7C15 >> 32);
        for (;; slot++) {
            slot &= slots_.size() - 1;
            if (slots_[slot] < 0 || keys[slots_[slot]] == key) return slot;
        }
    }
};

// The best documents of all partitions, best first; equal scores in the order of ordinals, then later
// ones, partition by partition. Those of each partition are in this order.
inline std::vector<BestDocument> best_of(const std::vector<const Seeds*>& parts, i64 count) {
    std::vector<BestDocument> best, next;
    auto follow = [&](i64 partition, i64 place) {
        const Seeds* part = parts[partition];
        if (!part || place >= i64(part->documents.size())) return BestDocument{0, 0, partition, place};
        return BestDocument{part->steps[place], key_in(part->ordinals[place], partition), partition, place};
    };
    auto follows = [](const BestDocument& one, const BestDocument& other) {
        return one.steps != other.steps ? one.steps < other.steps : one.key > other.key;
    };
    for (size_t partition = 0; partition < parts.size(); partition++) next.push_back(follow(i64(partition), 0));
    while (i64(best.size()) < count && !next.empty()) {
        BestDocument& first = *std::max_element(next.begin(), next.end(), follows);
        if (first.steps == 0) break;
        best.push_back(first);
        first = follow(first.partition, first.place + 1);
    }
    return best;
}

// Features, and rows with keys instead of ordinals, of the first documents.
inline Features features_of(const std::vector<const Seeds*>& parts, const BestDocument* seeds, i64 count) {
    Features result;
    for (i64 i = 0; i < count; i++) {
        const Features& features = parts[seeds[i].partition]->features;
        result.add(features.of(seeds[i].place), &features.scalars[3 * seeds[i].place]);
    }
    return result;
}
inline Rows rows_of(const std::vector<const Seeds*>& parts, const BestDocument* seeds, i64 count) {
    Rows result;
    result.width = parts[seeds[0].partition]->rows.width;
    result.near = parts[seeds[0].partition]->rows.near;
    for (i64 i = 0; i < count; i++) result.columns = std::max(result.columns, parts[seeds[i].partition]->rows.columns);
    result.documents.resize(count * result.columns);
    result.levels.resize(count * result.columns);
    for (i64 i = 0; i < count; i++) {
        const Rows& rows = parts[seeds[i].partition]->rows;
        i64 from = seeds[i].place * rows.columns, to = i * result.columns;
        for (i64 column = 0; column < rows.columns; column++) {
            result.documents[to + column] = key_in(rows.documents[from + column], seeds[i].partition);
            result.levels[to + column] = rows.levels[from + column];
        }
        result.steps.insert(result.steps.end(), {rows.step(seeds[i].place, 0), rows.step(seeds[i].place, rows.width)});
    }
    return result;
}

// The places of the neighbours of seeds among the best, -1 for others.
inline std::vector<i32> places_of(const Rows& rows, i64 count, const std::vector<BestDocument>& best) {
    Numbering places(best.size());
    for (const BestDocument& document : best) places.add(document.key);
    std::vector<i32> result;
    for (i64 i = 0; i < count; i++)
        for (i64 column = 0; column < rows.near; column++)
            result.push_back(places.find(rows.documents[i * rows.columns + column]));
    return result;
}

// The sum of rows, each times its weight: keys of documents, and the sum of each. Values are added
// row by row, as the engine does.
inline std::pair<std::vector<i64>, std::vector<f32>> sum_of(const Rows& rows, const std::vector<f32>& weights,
                                                            f32 slope) {
    Numbering documents(rows.documents.size());
    std::vector<f32> sums(rows.documents.size(), 0.f);
    for (i64 i = 0; i < i64(weights.size()); i++)
        for (i64 column = 0; weights[i] > 0 && column < rows.columns; column++) {
            i64 at = i * rows.columns + column;
            if (rows.levels[at] == 0) continue;
            sums[documents.add(rows.documents[at])] += slope * weights[i] * rows.step(i, column) * f32(rows.levels[at]);
        }
    return {std::move(documents.keys), std::move(sums)};
}

// The rows with ordinals, without later documents of other partitions.
inline Rows rows_for(i64 partition, Rows rows) {
    for (size_t at = 0; at < rows.documents.size(); at++) {
        if (!is_numbered(rows.documents[at], partition)) rows.levels[at] = 0;
        rows.documents[at] = ordinal_of(rows.documents[at]);
    }
    return rows;
}

// The seeds of a query as each partition needs them; none if no document has its words.
//
// `parts` are the best documents of each partition, null for one that does not answer; `step` is the
// value of one step of their scores, and `weigh` weighs the seeds.
template <class Weigh>
std::vector<SharedSeeds> share_seeds(const std::vector<const Seeds*>& parts, const Params& params, double step,
                                     Weigh weigh) {
    std::vector<BestDocument> best = best_of(parts, params.best);
    if (best.empty()) return {};
    const Seeds& leading = *parts[best[0].partition];
    i64 seeds = std::min(params.seeds, i64(best.size())), terms = i64(leading.half.size());
    Features features = features_of(parts, best.data(), seeds);
    Rows rows = rows_of(parts, best.data(), seeds);
    std::vector<i32> near = places_of(rows, seeds, best), latent;
    std::vector<i64> steps;
    std::vector<f32> impacts;
    std::vector<u8> levels;
    for (i64 i = 0; i < seeds; i++) {
        latent.push_back(parts[best[i].partition]->latent[best[i].place]);
        steps.push_back(best[i].steps);
        auto row = rows.levels.begin() + i * rows.columns;
        levels.insert(levels.end(), row, row + rows.near);
    }
    for (const BestDocument& document : best) {
        auto row = parts[document.partition]->impacts.begin() + document.place * terms;
        impacts.insert(impacts.end(), row, row + terms);
    }
    MergedSeeds m{{steps.data(), seeds},
                  {impacts.data(), i64(best.size()), terms},
                  {leading.term_weights.data(), terms},
                  {leading.half.data(), terms},
                  {near.data(), seeds, rows.near},
                  {levels.data(), seeds, rows.near},
                  &features,
                  {latent.data(), seeds},
                  leading.share,
                  step,
                  leading.angle};
    WeighedSeeds w = weigh(m);
    auto [near_keys, sums] = sum_of(rows, w.weights, f32(params.slope));
    bool is_explained = !leading.names.empty();
    auto name = [&](const BestDocument& document) { return parts[document.partition]->names[document.place]; };

    SharedSeeds common;
    common.first = steps[0];
    common.centre = w.centre;
    common.factors = w.factors;
    common.features = std::move(w.features);
    common.sums = std::move(w.sums);
    common.alpha = w.alpha;
    if (is_explained) {
        common.weights = std::move(w.weights);
        common.seed_features = std::move(features);
        for (i64 i = 0; i < seeds; i++) common.names.push_back(name(best[i]));
    }
    std::vector<SharedSeeds> shared(parts.size(), common);
    std::vector<std::pair<i64, i64>> by_key;
    for (size_t i = 0; i < best.size(); i++) by_key.emplace_back(best[i].key, i64(i));
    std::sort(by_key.begin(), by_key.end());
    for (i64 number = 0; number < i64(parts.size()); number++) {
        SharedSeeds& s = shared[number];
        for (const auto& [key, at] : by_key) {
            if (best[at].partition == number) {
                s.best++;
                s.seeds += at < seeds;
            } else if (key < FIRST_LATER) {
                s.remote.push_back(key);
                s.impacts.insert(s.impacts.end(), &impacts[at * terms], &impacts[at * terms] + terms);
                if (is_explained) s.remote_names.push_back(name(best[at]));
            }
        }
        for (size_t i = 0; i < near_keys.size(); i++)
            if (is_numbered(near_keys[i], number)) {
                s.near.push_back(ordinal_of(near_keys[i]));
                s.estimates.push_back(sums[i]);
            }
        if (is_explained) s.rows = rows_for(number, rows);
    }
    return shared;
}

}  // namespace klsa
