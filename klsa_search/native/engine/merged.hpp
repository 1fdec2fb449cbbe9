// The weights of the seeds of several partitions.
//
// Included once for each instruction set: see `for_each_instruction_set.hpp`.

namespace klsa::KLSA_NS {

// Compute T of the seeds: see `State::score_coverage`.
inline void cover_merged(const MergedSeeds& m, f32* covered) {
    i64 terms = m.term_weights.size, stride = (terms + TERM_GROUP - 1) / TERM_GROUP * TERM_GROUP;
    std::vector<f32> impacts((m.impacts.rows + 1) * stride + PADDING), weights(stride + PADDING);
    std::vector<f32> half(stride + PADDING, 1.f), shares(m.near.width + PADDING);
    std::vector<i32> near(m.near.width + PADDING);
    std::copy_n(m.term_weights.data, terms, weights.data());
    std::copy_n(m.half.data, terms, half.data());
    for (i64 i = 0; i < m.impacts.rows; i++) std::copy_n(m.impacts[i], terms, &impacts[(i + 1) * stride]);
    for (i64 i = 0; i < m.steps.size; i++) {
        i64 hits = 0;
        u32 levels = 0;
        for (i64 n = 0; n < m.near.width; n++) {
            u32 level = m.levels[i][n];
            near[hits] = i32((m.near[i][n] + 1) * stride);
            shares[hits] = f32(level);
            hits += level > 0 && m.near[i][n] >= 0;
            levels += level;
        }
        f32 part = NEIGHBOURHOOD / f32(std::max(levels, 1u));
        covered[i] = 0;
        for (i64 first = 0; first < stride; first += TERM_GROUP)
            covered[i] += covered_group(&impacts[first], &impacts[(i + 1) * stride + first], near.data(), shares.data(),
                                        hits, part, &weights[first], &half[first]);
    }
}

WeighedSeeds weigh_merged(const MergedSeeds& m, const Params& params, Buffers& b) {
    WeighedSeeds w;
    i64 seeds = m.steps.size;
    f32 first = f32(m.steps[0]), top = first * f32(m.step);
    std::vector<f32> lexical(seeds), covered(seeds), expanded(seeds);
    for (i64 i = 0; i < seeds; i++) lexical[i] = f32(m.steps[i]) / first;
    if (params.coverage > 0) cover_merged(m, covered.data());
    w.weights.resize(seeds);
    seed_weights(params, seeds, top, lexical.data(), covered.data(), w.weights.data());
    std::vector<SeedFeatures> features;
    for (i64 i = 0; i < seeds; i++) features.push_back({m.features->of(i), &m.features->scalars[3 * i], w.weights[i]});
    w.centre = add_features(params, features, b.features);
    for (i64 i = 0; i < seeds; i++) {
        const SeedFeatures& seed = features[i];
        f32 expansion = expansion_of(seed.entries, seed.scalars, w.centre, b.features);
        expanded[i] = params.unit_length ? std::max(expansion, 0.f) : expansion;
    }
    for (const SeedFeatures& seed : features)
        for (i64 at = 0; seed.weight > 0 && at < seed.entries.size; at++) {
            u32 feature = seed.entries[at] >> 8;
            i16 sum = b.features.take(feature);
            if (sum == 0) continue;
            w.features.push_back(feature);
            w.sums.push_back(sum);
        }
    w.alpha = alpha_of(params, m.share);
    w.factors = part_factors(params, seeds, w.alpha, top, m.angle, expanded.data(), covered.data(), m.latent.data,
                             lexical.data());
    return w;
}

}  // namespace klsa::KLSA_NS
