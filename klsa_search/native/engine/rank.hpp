// The k best documents of a query by the default ranking.
//
//   1. Find the best documents by BM25, exactly; the first z are the seeds. With a mask, also find
//      the best within it: seeds do not depend on the mask, so it changes no score. Deleted
//      documents are excluded from both;
//   2. look up the impacts of the query's terms in the best; weigh the seeds by their T; compute
//      α(q) from the share of the query that the first document contains;
//   3. add up the rows of the seeds: E as far as it is in strong entries. The documents of these
//      rows are candidates too;
//   4. estimate the score of every candidate: E from the rows, L, X, and T without neighbours;
//   5. for the best of them that are not far below the k-th, compute T from the neighbours; then,
//      for the best of these, E from the features of the seeds.
//
// Matches are documents that contain a term of the query or are in a row of a seed. They depend
// neither on k nor on the mask, and the total counts them. If a mask has few documents, each is
// looked up and its T computed exactly.
//
// Seeds, their weights, the lengths of the parts, and the scores that step 5 computes are exact to
// the 8 bits of entries and features, except that seeds of negligible weight are ignored. A document
// is missed if it is no candidate, or if step 4 strongly underestimates it.
//
// Included once for each instruction set: see `for_each_instruction_set.hpp`.

namespace klsa::KLSA_NS {

inline Hits State::score(Array<QueryTerm> query, const Request& request, const Params& params, const Depths& depths) {
    Prepared s = prepare(query, request, params, depths);
    if (s.first == 0) return {};
    Hits hits = rescore(request, params, depths, s);
    clear_sums(s.ranges.seeds);
    return hits;
}

// Step 1: collect the keys of the `depth` best documents; return how many.
//
// from_rows  number of entries of the rows of the seeds, at most
inline i64 State::find_best(Array<QueryTerm> query, const Request& request, i64 depth, const Depths& depths,
                            i64 from_rows) {
    totals_ = request.totals && !request.is_masked;  // totals are of documents in the mask
    depth = std::min(depth, p.size);                 // so that buffers are no larger than the index
    i64 matched = depth + std::min(depths.filtered, p.size);
    load_query(query, matched);
    b.reserve_slots(p, *model_, matched, matched + std::min(p.size, from_rows) + 1);
    return best_keys(p.live, depth);
}

// The same of the `best` documents that `seeds` found, without their postings.
inline i64 State::load_best(Array<QueryTerm> wanted, const Request& request, const Seeds& local, i64 best,
                            i64 from_rows) {
    query = wanted;
    terms = query.size;
    totals_ = request.totals;
    std::copy(local.matches.begin(), local.matches.end(), b.matches.data());
    for (auto* each : {&b.keys, &b.spare_keys}) Buffers::grow(*each, best + 1);
    b.reserve_slots(p, *model_, best, best + std::min(p.size, from_rows) + 1);
    for (i64 i = 0; i < best; i++) b.keys[i] = key_of(local.steps[i], local.documents[i]);
    return best;
}

// Add the best documents within a mask to the slots; return how many have one.
inline i64 State::add_masked(const Request& request, const Depths& depths, i64 count, f32 top) {
    if (!request.is_masked) return count;
    is_masked_ = true;
    totals_ = request.totals;
    return assign_filtered(count, filtered_keys(request.mask, depths), top);
}

// Steps 1 to 3.
inline Prepared State::prepare(Array<QueryTerm> query, const Request& request, const Params& params,
                               const Depths& depths) {
    Prepared s;
    i64 from_rows = params.seeds * (model_->row_width + reverse_->rows.width);
    i64 count = find_best(query, request, std::max(params.best, request.k), depths, from_rows);
    if (count == 0) return s;
    i64 best = std::min(count, params.best), seeds = std::min(count, params.seeds);
    s.first = assign_slots(count, best, seeds, 0);
    count = add_masked(request, depths, count, s.first);
    f32 top = s.first * f32(p.step);
    fetch_seeds(seeds, count);
    i64 stride = look_up_impacts(best, 0);
    for (i64 slot = 1; slot <= seeds; slot++) fetch_features(b.documents[slot]);
    f32 angle = project_query();
    weigh_seeds(params, stride, seeds, top);
    s.ranges = {stride, best, seeds, count, add_rows(params, seeds, count)};
    s.centre = add_features(params, seed_features(seeds, nullptr), b.features);
    for (i64 slot = 1; slot <= seeds; slot++)
        b.expanded[slot] = clip(expansion_score(b.documents[slot], s.centre), params);
    std::vector<i32> latent;
    for (i64 slot = 1; slot <= seeds && params.unit_length; slot++) latent.push_back(latent_score(b.documents[slot]));
    s.alpha = alpha_of(params, matched_share(stride));
    s.factors = part_factors(params, seeds, s.alpha, top, angle, b.expanded.data() + 1, b.covered.data() + 1,
                             latent.data(), b.lexical.data() + 1);
    return s;
}

// Clear the sums of the features of the seeds.
inline void State::clear_sums(i64 seeds) {
    for (i64 i = 0; i < seeds; i++) {
        if (b.weights[i] > 0) b.features.clear(model_->features_of(b.documents[i + 1]));
    }
}

// Steps 4 and 5; then all candidates are forgotten.
inline Hits State::rescore(const Request& request, const Params& params, const Depths& depths, const Prepared& s) {
    const Mask& mask = request.mask;
    const Ranges& r = s.ranges;
    std::fill_n(b.is_exact.data() + 1, r.size, u8(params.coverage > 0 ? 0 : COVERAGE_EXACT));
    std::fill_n(b.is_exact.data() + 1, r.seeds, u8(EXPANSION_EXACT | COVERAGE_EXACT));
    std::fill_n(b.covered.data() + r.matched + 1, r.size - r.matched, 0.f);
    score_all(params, r, s.factors);
    exclude_masked(mask, r.size);
    i64 chosen = select_slots(r.size, params.coverage > 0 ? depths.coverage : r.size);
    if (params.coverage > 0) rescore_coverage(r, chosen, depths.coverage, request.k, s.factors);
    chosen = rescore_expansion(params, r.seeds, chosen, depths.expansion, s.factors, s.centre);
    Hits hits = write_results(r.size, r.matched, chosen, request.k);
    count_matches(request, r.size, hits);
    release_slots(r.size);
    return hits;
}

// The best documents of one partition, of which the first may be seeds of a query to all.
//
// least  in steps: those that score less are left out
inline Seeds State::seeds(Array<QueryTerm> query, const Params& params, i64 least) {
    least_ = least;
    i64 count = find_best(query, {params.best, p.live, false, true}, params.best, {}, 1);
    Seeds result;
    for (i64 i = 0; i < query.size; i++) result.terms.emplace_back(query[i].number, query[i].count);
    result.matches.assign(b.matches.data(), b.matches.data() + p.size / 64 + 1);
    if (terms == 0) return result;
    assign_slots(count, count, count, 0);
    i64 stride = look_up_impacts(count, 0);
    result.term_weights.assign(b.term_weights.data(), b.term_weights.data() + terms);
    result.half.assign(b.half.data(), b.half.data() + terms);
    if (count == 0) return result;
    result.angle = project_query();
    result.share = matched_share(stride);
    for (i64 i = 0; i < count; i++) {
        result.documents.push_back(b.documents[i + 1]);
        result.steps.push_back(b.keys[i] >> 32);
        if (i < params.seeds) result.latent.push_back(latent_score(b.documents[i + 1]));
    }
    for (i64 slot = 1; slot <= count; slot++) {
        const f32* impacts = b.impacts.data() + slot * stride;
        result.impacts.insert(result.impacts.end(), impacts, impacts + terms);
    }
    release_slots(count);
    return result;
}

// Search one partition by the seeds of all.
//
// local  the best documents that `seeds` found for this query, if they are at hand
inline Hits State::score_shared(Array<QueryTerm> query, const Request& request, const Params& params,
                                const Depths& depths, const SharedSeeds& shared, const Seeds* local) {
    Hits hits = rescore(request, params, depths, prepare_shared(query, request, params, depths, shared, local));
    clear_shared(shared);
    return hits;
}

// Up to `Params::best` results are of the best documents of all partitions, and of those in the rows
// of the seeds, as in an index without partitions. Others need more documents of each partition.
inline Prepared State::prepare_shared(Array<QueryTerm> query, const Request& request, const Params& params,
                                      const Depths& depths, const SharedSeeds& shared, const Seeds* local) {
    bool is_deep = request.k > params.best || request.is_masked;
    i64 depth = is_deep ? std::max(params.best, request.k) : std::max<i64>(shared.best, 1);
    i64 from_rows = i64(shared.near.size()), count;
    if (is_deep) local = nullptr;
    if (local)
        count = load_best(query, request, *local, shared.best, from_rows);
    else
        count = find_best(query, request, depth, depths, from_rows);
    i64 best = std::min(count, shared.best), seeds = std::min(count, shared.seeds);
    if (!is_deep) count = best;
    f32 first = assign_slots(count, best, seeds, shared.first);
    count = add_masked(request, depths, count, first);
    i64 stride = local ? load_impacts(*local, best, i64(shared.remote.size()))
                       : look_up_impacts(best, i64(shared.remote.size()));
    load_remote(shared, stride, best);
    project_query();
    if (params.coverage > 0) {
        for (i64 i = 0; i < seeds; i++) b.chosen[i] = i32(i + 1);
        score_coverage(stride, best, b.chosen.data(), seeds, b.covered.data() + 1);
    }
    Ranges ranges{stride, best, seeds, count, add_near(shared, count)};
    for (size_t i = 0; i < shared.features.size(); i++) b.features.set(shared.features[i], shared.sums[i]);
    for (i64 slot = 1; slot <= seeds; slot++)
        b.expanded[slot] = clip(expansion_score(b.documents[slot], shared.centre), params);
    return {ranges, shared.factors, shared.centre, shared.alpha, first};
}

// Clear the sums of the features of the seeds, and the filter of the best documents elsewhere.
inline void State::clear_shared(const SharedSeeds& shared) {
    for (u32 ordinal : b.remote) b.remote_filter[ordinal & (FILTER - 1)] = false;
    for (u32 feature : shared.features) b.features.take(feature);
}

}  // namespace klsa::KLSA_NS
