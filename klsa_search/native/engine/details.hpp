// What the scores of single documents consist of.
//
// Included once for each instruction set: see `for_each_instruction_set.hpp`.

namespace klsa::KLSA_NS {

// Divide the scores of some documents into what parts, seeds, terms and neighbours add to them.
//
// `exact` has which parts of each score are not estimates, as `Hits` do. `shared` are the seeds of
// all partitions, if there are several. Without a seed nothing is written but zeros.
inline Details State::explain(Array<QueryTerm> query, Array<i32> documents, Array<u8> exact, const Params& params,
                              const SharedSeeds* shared) {
    Request request{1, p.live};
    Prepared s =
        shared ? prepare_shared(query, request, params, {}, *shared, nullptr) : prepare(query, request, params, {});
    Details d;
    d.alpha = s.alpha;
    i64 n = documents.size, seeds = shared ? 0 : s.ranges.seeds;
    d.seeds.assign(b.documents.data() + 1, b.documents.data() + 1 + seeds);
    std::vector<SeedFeatures> of_seeds = seed_features(seeds, shared);
    for (const SeedFeatures& seed : of_seeds) d.weights.push_back(seed.weight);
    for (auto* each : {&d.expansion, &d.latent, &d.lexical}) each->assign(n, 0.f);
    d.exact.assign(exact.data, exact.data + n);
    d.by_seed.assign(n * i64(of_seeds.size()), 0.f);
    for (auto* each : {&d.coverage, &d.impacts}) each->assign(n * terms, 0.f);
    d.neighbours.assign(n * model_->neighbours, -1);
    d.lent.assign(n * model_->neighbours * terms, 0.f);
    for (i64 i = 0; i < n && s.first > 0; i++) {
        explain_parts(i, documents[i], params, s, d);
        if (params.coverage > 0) explain_coverage(i, documents[i], s, d);
    }
    if (shared)
        clear_shared(*shared);
    else
        clear_sums(seeds);
    for (i64 i = 0; i < n && s.first > 0; i++)
        divide_expansion(documents[i], s.factors.expansion, params, of_seeds, &d.by_seed[i * i64(of_seeds.size())]);
    release_slots(s.ranges.size);
    return d;
}

// The features and weights of the seeds of this index, or of all partitions.
inline std::vector<SeedFeatures> State::seed_features(i64 seeds, const SharedSeeds* shared) {
    std::vector<SeedFeatures> result;
    for (i64 i = 0; i < seeds; i++) {
        i64 document = b.documents[i + 1];
        result.push_back({model_->features_of(document), model_->scalars(document), b.weights[i]});
    }
    for (i64 i = 0; shared && i < i64(shared->weights.size()); i++)
        result.push_back({shared->seed_features.of(i), &shared->seed_features.scalars[3 * i], shared->weights[i]});
    return result;
}

// Write the expansion, latent and lexical parts of a score. A lexical part that is omitted is an
// estimate if the document contains a term.
inline void State::explain_parts(i64 i, i64 document, const Params& params, const Prepared& s, Details& d) {
    i64 slot = b.slots[document], steps = 0;
    for (i64 j = 0; j < terms; j++) steps += term_impact(j, document);
    bool is_exact = d.exact[i] & EXPANSION_EXACT, has_lexical = steps > 0 && (d.exact[i] & LEXICAL_EXACT);
    f32 expanded = is_exact ? clip(expansion_score(document, s.centre), params) : slot > 0 ? b.expanded[slot] : 0;
    f32 latent = params.latent > 0 ? clip(f32(latent_score(document)), params) : 0;
    f32 lexical = has_lexical ? power(f32(steps) / s.first, params.lexical_sharpness) : 0;
    d.expansion[i] = s.factors.expansion * expanded;
    d.latent[i] = s.factors.latent * latent;
    d.lexical[i] = s.factors.lexical * lexical;
    if (steps == 0) d.exact[i] |= LEXICAL_EXACT;
}

// Write what each term adds to the coverage of the i-th document, and which neighbours lend it.
inline void State::explain_coverage(i64 i, i64 document, const Prepared& s, Details& d) {
    const Ranges& r = s.ranges;
    i64 slot = b.slots[document], hits = 0, neighbours = model_->neighbours;
    u32 levels = 0;
    if (d.exact[i] & COVERAGE_EXACT) hits = find_near(document, r.best, neighbours, levels);
    f32 part = NEIGHBOURHOOD / f32(std::max(levels, 1u));
    const f32* impacts = b.impacts.data() + (slot <= r.best ? slot * r.stride : 0);
    for (i64 h = 0; h < hits; h++) {
        i64 near = b.near[h];
        d.neighbours[i * neighbours + h] = near <= r.best ? b.documents[near] : i32(r.best - near - 1);
    }
    for (i64 j = 0; j < terms; j++) {
        f32 lent = 0;
        for (i64 h = 0; h < hits; h++) {
            f32 addend = b.shares[h] * b.impacts[b.near[h] * r.stride + j];
            d.lent[(i * neighbours + h) * terms + j] = part * addend;
            lent += addend;
        }
        f32 y = impacts[j] + part * lent;
        d.impacts[i * terms + j] = impacts[j];
        d.coverage[i * terms + j] = s.factors.coverage * (b.term_weights[j] * (y / (y + b.half[j])));
    }
}

// Write what each seed adds to the exact expansion of a document, without the rounding of the sum
// of all. `sums` must be 0.
inline void State::divide_expansion(i64 document, f32 share, const Params& params,
                                    const std::vector<SeedFeatures>& seeds, f32* out) {
    Array<u32> features = model_->features_of(document);
    const f32* scalars = model_->scalars(document);
    for (i64 at = 0; at < features.size; at++) b.features.set(features[at] >> 8, i16(features[at] & LEVELS));
    for (const SeedFeatures& seed : seeds) {
        double weight = double(f32(params.slope) * seed.weight), scale = weight * double(seed.scalars[1]);
        double steps = double(inner_product(seed.entries, b.features));
        double centring = scale * scalars[2] + scalars[1] * (weight * seed.scalars[2] - scale * params.mean_square);
        double value = weight * seed.scalars[0] * scalars[0] * steps - centring;
        *out++ = seed.weight > 0 ? f32(share * value) : 0;
    }
    b.features.clear(features);
}

}  // namespace klsa::KLSA_NS
