// The seeds of the default ranking: their weights, the sum of their rows, and the part lengths.
//
// Included once for each instruction set: see `for_each_instruction_set.hpp`.

namespace klsa::KLSA_NS {

constexpr double SUMS = 32000;        // largest sum of features: fits 16 bits after rounding
constexpr double NEGLIGIBLE = 0.002;  // share of the first seed's weight below which one is ignored

inline f32 power(f32 base, double exponent) {
    f32 result = 0;
    add_powers(&base, 1, exponent, 1, &result);
    return result;
}

// α(q) of a query of which the first document contains a share.
inline double alpha_of(const Params& params, double share) {
    return params.alpha * (1 - params.hold_back * (share * share * share));
}

// The weights of the seeds: sharpened k_q times a power of their coverage; 0 for negligible ones.
inline void seed_weights(const Params& params, i64 seeds, f32 top, const f32* lexical, const f32* covered,
                         f32* weights) {
    f32 largest = 0;
    for (i64 i = 0; i < seeds; i++) {
        weights[i] = top * power(lexical[i], params.sharpness);
        largest = std::max(largest, covered[i]);
    }
    for (i64 i = 0; i < seeds && params.coverage > 0; i++)
        weights[i] *= power(covered[i] / largest, params.coverage_power);
    f32 least = f32(NEGLIGIBLE) * weights[0];
    for (i64 i = 0; i < seeds; i++)
        if (weights[i] < least) weights[i] = 0;
}

// Add up the features of the seeds, in steps that keep the sums within 16 bits.
inline Centre add_features(const Params& params, const std::vector<SeedFeatures>& seeds, FeatureSums& sums) {
    f32 scale = 0, mean = 0;
    double largest = 0;
    for (const SeedFeatures& seed : seeds) {
        f32 weight = f32(params.slope) * seed.weight;
        scale += weight * seed.scalars[1];
        mean += weight * seed.scalars[2];
        largest += double(weight * seed.scalars[0]) * LEVELS;
    }
    f32 per_unit = largest > 0 ? f32(SUMS / largest) : 0;
    for (const SeedFeatures& seed : seeds) {
        if (!(seed.weight > 0)) continue;
        f32 weight = f32(params.slope) * seed.weight * per_unit;
        add_levels(seed.entries.data, seed.entries.size, weight * seed.scalars[0], sums.sums.data(),
                   sums.filter.data());
    }
    return {scale, mean, f32(params.mean_square), per_unit > 0 ? 1.0 / per_unit : 0};
}

// The shares of the parts divided by their lengths over the seeds, of which each array has a value.
inline Factors part_factors(const Params& params, i64 seeds, double alpha, f32 top, f32 angle, const f32* expanded,
                            const f32* covered, const i32* latent, const f32* lexical) {
    double shares[] = {alpha * params.expansion, alpha * params.coverage, alpha * params.latent, 1 - alpha};
    if (!params.unit_length) return {f32(shares[0]), f32(shares[1]), f32(shares[2]) * angle, f32(shares[3]) * top};
    f32 e = 0, t = 0, a = 0, x = 0;
    for (i64 i = 0; i < seeds; i++) {
        f32 steps = f32(std::max(latent[i], 0)), sharp = power(lexical[i], params.lexical_sharpness);
        e += expanded[i] * expanded[i];
        t += covered[i] * covered[i];
        a += steps * steps;
        x += sharp * sharp;
    }
    // A part that is 0 at every seed keeps its share.
    auto over = [](double share, f32 square) {
        return square > 0 ? f32(share / double(std::sqrt(square))) : f32(share);
    };
    f32 of_latent = a > 0 ? over(shares[2], a) : f32(shares[2]) * angle;
    return {over(shares[0], e), over(shares[1], t), of_latent, over(shares[3], x)};
}

// Assign slots to the documents found: seeds in order, then the other best, then all others.
//
// `first` is the score in steps that scores are divided by; 0 for that of the first document.
// Returns it.
inline f32 State::assign_slots(i64 count, i64 best, i64 seeds, i64 first) {
    i64* keys = b.keys.data();
    if (count > best && best > 0) select_largest(keys, count, best, b.spare_keys.data());
    if (best > seeds && seeds > 0) select_largest(keys, best, seeds, b.spare_keys.data());
    sort_descending(keys, seeds, b.sort_buffer.data());
    Buffers::grow(b.remaining, best + 1);
    f32 top = f32(first > 0 ? first : keys[0] >> 32), *lexical = b.lexical.data() + 1;
    i32 *slots = b.slots.data(), *documents = b.documents.data() + 1, *remaining = b.remaining.data() + 1;
    u32* is_best = b.is_best.data();
    for (i64 i = 0; i < count; i++) {
        i64 document = document_of(keys[i]), score = keys[i] >> 32;
        documents[i] = i32(document);
        slots[document] = i32(i + 1);
        lexical[i] = f32(score) / top;
    }
    for (i64 i = 0; i < best; i++) {
        remaining[i] = i32(keys[i] >> 32);
        is_best[documents[i] >> 5] |= 1u << (documents[i] & 31);
    }
    std::fill_n(b.covered.data() + 1, count, 0.f);
    return top;
}

// Collect the keys of the best documents within a mask; return how many.
inline i64 State::filtered_keys(const Mask& mask, const Depths& depths) {
    if (depths.look_up_all) {
        i64 count = look_up_keys(mask, depths.filtered);
        if (count >= 0) {
            if (totals_) std::fill_n(b.matches.data(), p.size / 64 + 1, u64(0));  // all with a term get slots
            return count;
        }
    }
    return best_keys(mask, depths.filtered);
}

// Assign slots to the best documents within the mask; return the last slot.
inline i64 State::assign_filtered(i64 count, i64 extra, f32 top) {
    for (i64 i = 0; i < extra; i++) {
        i64 document = document_of(b.keys[i]);
        if (b.slots[document]) continue;
        b.documents[++count] = i32(document);
        b.slots[document] = i32(count);
        b.lexical[count] = f32(b.keys[i] >> 32) / top;
        b.covered[count] = 0;
    }
    return count;
}

// Fetch what the seeds and the other candidates need soon.
inline void State::fetch_seeds(i64 seeds, i64 count) {
    for (i64 slot = 1; slot <= seeds; slot++) {
        i64 document = b.documents[slot];
        const u32* row = model_->row(document);
        for (i64 column = 0; column < model_->row_width; column += 16) prefetch(row + column);
        prefetch(model_->feature_start(document));
        prefetch(&model_->row_step(document));
    }
    for (i64 slot = 1; slot <= count; slot++) fetch_vector(b.documents[slot]);
}

// Look up the coverage of the seeds and weigh them.
inline void State::weigh_seeds(const Params& params, i64 stride, i64 seeds, f32 top) {
    Buffers::grow(b.weights, seeds);
    for (i64 i = 0; i < seeds; i++) b.chosen[i] = i32(i + 1);
    f32* covered = b.covered.data() + 1;
    if (params.coverage > 0) score_coverage(stride, seeds, b.chosen.data(), seeds, covered);
    seed_weights(params, seeds, top, b.lexical.data() + 1, covered, b.weights.data());
}

// Add the entries of a row to E of their documents, each of which gets a slot; return the last.
// Without a branch for new documents: `expanded` is 0 beyond the last slot.
inline i64 State::add_row(const u32* row, i64 width, f32 step, i64 size) {
    i32 *slots = b.slots.data(), *documents = b.documents.data();
    f32* expanded = b.expanded.data();
    const u32 limit = u32(p.size);
    for (i64 column = 0; column < width; column++) {
        const u32 entry = row[column], document = entry >> 8;
        if (!entry || document >= limit) break;  // the latter only in damaged files
        i32 slot = slots[document];
        bool is_new = slot == 0;
        size += is_new;
        slot = is_new ? i32(size) : slot;
        slots[document] = slot;
        documents[slot] = i32(document);
        expanded[slot] += step * f32(entry & LEVELS);
    }
    return size;
}

// Add up the rows of the seeds; return the last slot. The sums at the seeds themselves are not used:
// their E is computed exactly.
inline i64 State::add_rows(const Params& params, i64 seeds, i64 size) {
    for (i64 i = 0; i < seeds; i++) {
        if (b.weights[i] == 0) continue;
        i64 seed = b.documents[i + 1];
        f32 weight = f32(params.slope) * b.weights[i];
        size = add_row(model_->row(seed), model_->row_width, weight * model_->row_step(seed), size);
        if (seed < reverse_->row_of.size && reverse_->row_of[seed] > 0) {
            i64 row = reverse_->row_of[seed] - 1;
            size = add_row(reverse_->rows[row], reverse_->rows.width, weight * reverse_->steps[row], size);
        }
    }
    return size;
}

// Add candidates with estimates of their E; return the last slot.
inline i64 State::add_near(const SharedSeeds& shared, i64 size) {
    for (size_t i = 0; i < shared.near.size(); i++) {
        i64 document = model_->document_of(shared.near[i]);
        if (document < 0 || document >= p.size) continue;
        i32 slot = b.slots[document];
        if (slot == 0) {
            slot = i32(++size);
            b.slots[document] = slot;
            b.documents[slot] = i32(document);
        }
        b.expanded[slot] = shared.estimates[i];
    }
    return size;
}

// Add the impacts of the best documents of other partitions to those of this one.
inline void State::load_remote(const SharedSeeds& shared, i64 stride, i64 best) {
    i64 count = i64(shared.remote.size());
    has_remote_ = count > 0;
    b.remote.assign(shared.remote.begin(), shared.remote.end());
    for (u32 ordinal : b.remote) b.remote_filter[ordinal & (FILTER - 1)] = true;
    f32* impacts = b.impacts.data() + (best + 1) * stride;
    std::fill_n(impacts, count * stride, 0.f);
    for (i64 i = 0; i < count; i++) std::copy_n(&shared.impacts[i * terms], terms, impacts + i * stride);
}

// The share of the query that the first document contains, by term weights.
inline double State::matched_share(i64 stride) {
    i64 contained = 0, total = 0;
    for (i64 j = 0; j < terms; j++) {
        total += b.terms[j].weight;
        if (b.impacts[stride + b.terms[j].place] > 0) contained += b.terms[j].weight;
    }
    return double(contained) / double(total);
}

// Clear the slots of all candidates.
inline void State::release_slots(i64 size) {
    i32 *slots = b.slots.data(), *documents = b.documents.data();
    u32* is_best = b.is_best.data();
    if (size * 16 > p.size) {
        std::fill_n(slots, p.size, 0);
        std::fill_n(is_best, p.size / 32 + 1, 0u);
    } else {
        for (i64 slot = 1; slot <= size; slot++) {
            slots[documents[slot]] = 0;
            is_best[documents[slot] >> 5] = 0;
        }
    }
    std::fill_n(b.expanded.data() + 1, size, 0.f);
}

}  // namespace klsa::KLSA_NS
