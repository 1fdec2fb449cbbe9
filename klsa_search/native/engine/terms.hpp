// The terms of a query: ordered by ascending maximum impact, with their bounds in each block.
//
// Included once for each instruction set: see `for_each_instruction_set.hpp`.

namespace klsa::KLSA_NS {

constexpr i64 CHEAP = 256;                     // optional terms with fewer postings are added
constexpr i64 LOOK_UP = 24;                    // cost of one look-up, in postings added
constexpr i64 SHARE = 4;                       // bounds of optional terms add up to at most 1/4 of the threshold
constexpr i64 OPTIONAL_K = 100;                // largest k with optional terms: else the threshold is too low
constexpr i64 DEPTHS[4] = {1, 10, 100, 1000};  // of `Postings::best`

// The impact of a posting, in steps: see `klsa_search.kernels.postings`.
inline i64 impact(i64 weight, i64 saturation) {
    return 1 + ((weight * saturation) >> 16);
}

// Order the terms of the query by ascending maximum impact; make room for `matched` results.
inline void State::load_query(Array<QueryTerm> wanted, i64 matched) {
    query = wanted;
    b.reserve_postings(p, query.size, matched);
    terms = query.size;
    for (i64 i = 0; i < terms; i++) {
        Term& t = b.terms[i];
        t.term = query[i].number;
        t.count = query[i].count;
        t.place = i;
        t.weight = t.count * query[i].weight.steps;
        t.max_impact = impact(t.weight, p.best[t.term][0]);
    }
    // By insertion: terms are few, and those of equal impact stay in order.
    for (i64 i = 1; i < terms; i++)
        for (i64 j = i; j > 0 && b.terms[j - 1].max_impact > b.terms[j].max_impact; j--)
            std::swap(b.terms[j - 1], b.terms[j]);
}

// A score that k documents are known to exceed by a single term.
inline i64 State::initial_threshold(i64 k) {
    int column = 0;
    while (column < 4 && DEPTHS[column] < k) column++;
    i64 threshold = 0;
    for (i64 j = 0; j < terms && column < 4; j++)
        if (i64 saturation = p.best[b.terms[j].term][column])
            threshold = std::max(threshold, impact(b.terms[j].weight, saturation) - 1);
    return threshold;
}

// Find where each term's postings and runs in a segment begin and end.
inline void State::seek_segment(const Segment& segment, i64 column) {
    for (i64 j = 0; j < terms; j++) {
        Term& t = b.terms[j];
        i64 local = segment.local_term(t.term);
        t.posting = t.last_posting = t.run = t.last_run = 0;
        if (local >= 0) {
            t.posting = segment.starts[local];
            t.last_posting = segment.starts[local + 1];
            t.run = segment.run_starts[local];
            t.last_run = segment.run_starts[local + 1];
        }
        offsets(j)[column] = t.posting;
    }
}

// Find each term's postings in a block of the segment; return the sum of their bounds.
inline i64 State::seek_block(const Segment& segment, i64 block, i64 column) {
    i64 total = 0;
    for (i64 j = 0; j < terms; j++) {
        Term& t = b.terms[j];
        t.first = t.after = t.posting;
        t.bound = 0;
        if (t.run < t.last_run) {
            const u16* run = segment.runs[t.run];
            if (run[0] == block) {
                t.after = std::min<i64>(t.first + run[1] + 1, t.last_posting);
                t.bound = impact(t.weight, run[2]);
                t.run++;
                t.posting = t.after;
            }
        }
        offsets(j)[column + 1] = t.after;
        total += t.bound;
    }
    return total;
}

// The first terms that are optional, with the sums of their bounds and postings.
inline State::Optional State::optional_terms(i64 threshold, i64 k) {
    Optional o;
    if (k > OPTIONAL_K) return o;
    for (; o.count < terms && (o.slack + b.terms[o.count].bound) * SHARE <= threshold; o.count++) {
        o.slack += b.terms[o.count].bound;
        o.skipped += b.terms[o.count].after - b.terms[o.count].first;
    }
    return o.skipped < CHEAP ? Optional{} : o;
}

}  // namespace klsa::KLSA_NS
