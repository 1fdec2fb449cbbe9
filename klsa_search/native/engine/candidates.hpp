// Parts of the default ranking for single documents.
//
// Included once for each instruction set: see `for_each_instruction_set.hpp`.

namespace klsa::KLSA_NS {

constexpr f32 NEIGHBOURHOOD = 4;  // see `search.rankers.coverage`
constexpr f32 QUERY_LEVELS = 1 << 14, LATENT_LEVELS = 127;
constexpr u32 NO_DOCUMENT = 0xFFFFFFFF;  // an ordinal that no document has
constexpr i64 AHEAD = 12;                // documents whose data is fetched before it is used

// Compute T of the documents of some slots: see `search.rankers.coverage`.
//
// T is Σ weight · y / (y + half) over the terms, y = impacts[slot] + part · Σ shares[i] ·
// impacts[near[i]]. `best` is the last slot that has impacts; those of documents in other
// partitions follow.
inline void State::score_coverage(i64 stride, i64 best, const i32* list, i64 count, f32* out) {
    i64 neighbours = model_->neighbours;
    auto fetch = [&](i64 i) {
        const u32* row = model_->row(b.documents[list[i]]);
        prefetch(row);
        prefetch(row + std::max<i64>(neighbours - 1, 0));
    };
    for (i64 i = 0; i < std::min(AHEAD, count); i++) fetch(i);
    for (i64 i = 0; i < count; i++) {
        if (i + AHEAD < count) fetch(i + AHEAD);
        i64 slot = list[i];
        u32 levels = 0;
        i64 hits = find_near(b.documents[slot], best, neighbours, levels);
        for (i64 place = 0; place < hits; place++) b.near[place] *= i32(stride);
        f32 part = NEIGHBOURHOOD / f32(std::max(levels, 1u)), total = 0;
        const f32* of_document = b.impacts.data() + (slot <= best ? slot * stride : 0);
        for (i64 first = 0; first < stride; first += TERM_GROUP)
            total += covered_group(b.impacts.data() + first, of_document + first, b.near.data(), b.shares.data(), hits,
                                   part, b.term_weights.data() + first, b.half.data() + first);
        out[i] = total;
    }
}

// Compute T of the documents of consecutive slots without their neighbours: a lower bound.
inline void State::score_alone(i64 stride, i64 first, i64 after) {
    for (i64 slot = first; slot < after; slot++) {
        f32 total = 0;
        for (i64 group = 0; group < stride; group += TERM_GROUP)
            total += covered_group(nullptr, b.impacts.data() + slot * stride + group, nullptr, nullptr, 0, 0,
                                   b.term_weights.data() + group, b.half.data() + group);
        b.covered[slot] = total;
    }
}

// Write rows of `impacts` and levels of the neighbours that are among the best, strongest first;
// return how many. `levels` is the sum of the levels of all.
inline i64 State::find_near(i64 document, i64 best, i64 neighbours, u32& levels) {
    if (document < model_->remote_rows.rows) return find_remote_neighbours(document, best, neighbours, levels);
    if (neighbours == 0) return 0;
    i64 hits = near_hits(model_->row(document), neighbours, b.is_best.data(), b.near.data(), b.shares.data(), levels);
    for (i64 place = 0; place < hits; place++) b.near[place] = b.slots[b.near[place]];
    return hits;
}

// The same for neighbours in this partition and in others. Those that may be among the best are
// noted first, without a branch that would be mispredicted: others as the complement of their ordinal.
inline i64 State::find_remote_neighbours(i64 document, i64 best, i64 neighbours, u32& levels) {
    i64 count = 0, hits = 0, here = 0, there = 0;
    const u32 *row = model_->row(document), *ordinals = model_->remote_rows[document];
    const u8* levels_there = model_->remote_levels[document];
    for (i64 i = 0; i < neighbours; i++) {
        u32 other = row[here] >> 8, ordinal = ordinals[there], level_here = row[here] & LEVELS;
        bool is_here = level_here >= levels_there[there];
        u32 level = is_here ? level_here : levels_there[there];
        u32 is_near = b.is_best[other >> 5] >> (other & 31) & 1, may_be_near = b.remote_filter[ordinal & (FILTER - 1)];
        levels += level;
        b.near[count] = i32(is_here ? other : ~ordinal);
        b.shares[count] = f32(level);
        count += (is_here ? is_near : may_be_near) & u32(level > 0);
        here += is_here;
        there += !is_here;
    }
    for (i64 i = 0; i < count; i++) {
        i64 place = b.near[i] >= 0 ? b.slots[b.near[i]] : remote_slot(u32(~b.near[i]), best);
        b.near[hits] = i32(place);
        b.shares[hits] = b.shares[i];
        hits += place > 0;
    }
    return hits;
}

// The row of `impacts` of a document of another partition; 0 if it has none.
inline i64 State::remote_slot(u32 ordinal, i64 best) {
    if (!has_remote_ || !b.remote_filter[ordinal & (FILTER - 1)]) return 0;
    i64 place = find(b.remote.data(), 0, i64(b.remote.size()), ordinal);
    return b.remote[place] == ordinal ? best + 1 + place : 0;
}

// Fetch the features of a document, whose place should have been fetched before.
inline void State::fetch_features(i64 document) {
    Array<u32> features = model_->features_of(document);
    for (i64 at = 0; at < features.size; at += 16) prefetch(features.data + at);
}

inline void State::fetch_vector(i64 document) {
    const i8* vector = model_->vector(document);
    for (i64 at = 0; at < model_->vector_width; at += 64) prefetch(vector + at);
}

// Project the query to the latent space, in integer steps; return one step of a cosine.
inline f32 State::project_query() {
    i64 dimensions = model_->dimensions;
    f32* sum = b.query_floats.data();
    std::fill_n(sum, dimensions, 0.f);
    std::fill(b.query_vector.begin(), b.query_vector.end(), i16(0));
    for (i64 place = 0; place < terms; place++) {  // floats are added in the order of the query
        i64 term = query[place].number;
        if (term >= model_->term_vectors.rows) continue;  // only in documents added after the build
        f32 step = f32(query[place].count) * query[place].weight.burstiness * model_->term_step(term);
        const i8* coordinates = model_->term_vectors[term];
        for (i64 i = 0; i < dimensions; i++) sum[i] += step * f32(coordinates[i]);
    }
    f32 largest = 0;
    for (i64 i = 0; i < dimensions; i++) largest = std::max(largest, std::fabs(sum[i]));
    if (!(largest > 0)) return 0;
    for (i64 i = 0; i < dimensions; i++)
        b.query_vector[i] = i16(i32(std::nearbyint(double(sum[i] / largest) * QUERY_LEVELS)));
    return largest / (QUERY_LEVELS * LATENT_LEVELS);
}

// The inner product of a document and the query vector, in steps: integers, so exact. Over the
// whole document vector: the query vector is 0 beyond its coordinates.
inline i32 State::latent_score(i64 document) {
    return dot(model_->vector(document), b.query_vector.data(), i64(b.query_vector.size()));
}

// Σ_s weight(s) · K(s, d), from the features.
inline f32 expansion_of(Array<u32> features, const f32* scalars, const Centre& centre, const FeatureSums& sums) {
    i64 steps = inner_product(features, sums);
    f32 centring = centre.scale * scalars[2];
    centring += scalars[1] * (centre.mean - centre.scale * centre.mean_square);
    return f32(centre.step * double(steps) * double(scalars[0]) - double(centring));
}

inline f32 State::expansion_score(i64 document, const Centre& centre) {
    return expansion_of(model_->features_of(document), model_->scalars(document), centre, b.features);
}

}  // namespace klsa::KLSA_NS
