// The impacts of the terms of a query in single documents, from their postings.
//
// Included once for each instruction set: see `for_each_instruction_set.hpp`.

namespace klsa::KLSA_NS {

constexpr i64 SCAN_COST = 64;               // postings scanned in the time of one look-up
constexpr i64 SCAN_CHUNK = 256;             // postings scanned at once
constexpr int TERM_GROUP = 8;               // terms whose coverage is summed in the same pairs everywhere
constexpr double UNIT = 65536, HALF = 1.0;  // see `search.rankers.coverage`

// The number of postings of a term in all segments.
inline i64 State::posting_count(i64 term) {
    i64 count = 0;
    const i64* first = offsets(term);
    for (const Segment& segment : p.segments) {
        count += first[segment.blocks] - first[0];
        first += segment.blocks + 1;
    }
    return count;
}

// The impact of a term in a document, in steps. A search in a window around the place where the
// posting is expected nearly always finds it.
inline i64 State::term_impact(i64 term, i64 document) {
    size_t s = 0;
    const i64* columns = offsets(term);
    while (document >= p.segments[s].first + p.segments[s].size) columns += p.segments[s++].blocks + 1;
    const Segment& segment = p.segments[s];
    const u32* entries = segment.entries.data;
    document -= segment.first;
    i64 block = document >> p.block_bits, low = columns[block], high = columns[block + 1];
    i64 first = block << p.block_bits, place = document - first;
    if (high == low) return 0;
    u32 last = u32(place << 16 | 0xFFFF);
    i64 at;
    if (high - low < LANES) {
        at = find(entries, low, high, last);
    } else {
        i64 span = std::min(i64(1) << p.block_bits, segment.size - first);
        i64 expected = low + place * (high - low) / span;
        i64 begin = std::max(low, std::min(expected - LANES / 2, high - LANES));
        if (entries[begin] > last)
            at = find(entries, low, begin + 1, last);
        else if (entries[begin + LANES - 1] <= last)
            at = find(entries, begin + LANES - 1, high, last);
        else
            at = find(entries, begin, begin + LANES, last);
    }
    if (entries[at] >> 16 != u32(place)) return 0;
    return impact(b.terms[term].weight, entries[at] & 0xFFFF);
}

// Make room for the impacts of the best documents, and of others after them; return their stride.
inline i64 State::reserve_impacts(i64 best, i64 others) {
    i64 stride = (terms + TERM_GROUP - 1) / TERM_GROUP * TERM_GROUP;
    Buffers::grow(b.impacts, stride * (best + others + 1) + PADDING);
    for (auto* each : {&b.term_weights, &b.half}) Buffers::grow(*each, stride + PADDING);
    std::fill_n(b.impacts.data(), stride * (best + 1), 0.f);
    std::fill_n(b.term_weights.data(), stride, 0.f);
    std::fill_n(b.half.data(), stride, 1.f);
    return stride;
}

// Take the impacts of the best documents from what `seeds` found; return their stride.
inline i64 State::load_impacts(const Seeds& local, i64 best, i64 others) {
    i64 stride = reserve_impacts(best, others);
    std::copy_n(local.term_weights.data(), terms, b.term_weights.data());
    std::copy_n(local.half.data(), terms, b.half.data());
    for (i64 i = 0; i < best; i++) std::copy_n(&local.impacts[i * terms], terms, b.impacts.data() + (i + 1) * stride);
    return stride;
}

// Compute the impacts of all terms in the best documents, in steps; return their stride.
//
// Columns have the order of the query: floats are added in it, so no bit of a score depends on the
// maximum impacts, which also come from documents that are deleted or hidden.
// Short posting lists are scanned; in long ones each document is looked up. The longest is not
// read: its impact is what the other terms leave of the score. `others` documents of other
// partitions follow the best.
inline i64 State::look_up_impacts(i64 best, i64 others) {
    i64 stride = reserve_impacts(best, others), longest = 0, most = -1;
    Buffers::grow(b.hits, SCAN_CHUNK + PADDING);
    for (i64 j = 0; j < terms; j++) {
        const Term& t = b.terms[j];
        b.term_weights[t.place] = f32(t.count) * query[t.place].weight.weight;
        b.half[t.place] = f32(HALF * double(t.weight) / (UNIT * p.step));
        if (i64 count = posting_count(j); count > most) {
            longest = j;
            most = count;
        }
    }
    f32* impacts = b.impacts.data();
    i32* remaining = b.remaining.data();
    for (i64 j = 0; j < terms; j++) {
        if (j == longest) continue;
        const i64 place = b.terms[j].place, weight = b.terms[j].weight;
        if (posting_count(j) >= SCAN_COST * best) {
            for (i64 slot = 1; slot <= best; slot++)
                if (i64 steps = term_impact(j, b.documents[slot])) {
                    impacts[slot * stride + place] = f32(steps);
                    remaining[slot] -= i32(steps);
                }
            continue;
        }
        scan_postings(j, [&](i64 slot, u32 entry) {
            i64 steps = impact(weight, entry & 0xFFFF);
            impacts[slot * stride + place] = f32(steps);
            remaining[slot] -= i32(steps);
        });
    }
    i64 place = b.terms[longest].place;
    for (i64 slot = 1; slot <= best; slot++) impacts[slot * stride + place] = f32(remaining[slot]);
    return stride;
}

// Visit the postings of a term in the best documents, by their slots. These are selected by their
// bits, which fit the cache; slots would not.
template <class Visit>
inline void State::scan_postings(i64 term, Visit visit) {
    const i64* columns = offsets(term);
    u32* hits = b.hits.data();
    for (const Segment& segment : p.segments) {
        i64 base = segment.first;
        for (i64 block = 0; block < segment.blocks; block++, base += i64(1) << p.block_bits) {
            const u32* is_best = b.is_best.data() + (base >> 5);
            const u32 lead = u32(base & 31);
            const i32* slots = b.slots.data() + base;
            for (i64 begin = columns[block], after = columns[block + 1]; begin < after; begin += SCAN_CHUNK) {
                i64 size = std::min<i64>(SCAN_CHUNK, after - begin);
                i64 count = scan_best(segment.entries.data + begin, size, is_best, lead, hits);
                for (i64 i = 0; i < count; i++) visit(slots[hits[i] >> 16], hits[i]);
            }
        }
        columns += segment.blocks + 1;
    }
}

// Collect the keys of the documents in a mask that contain a term; return how many.
//
// Each of at most `limit` documents is looked up in the postings of each term, whose offsets
// `best_keys` has found. Returns -1 if adding all postings costs less.
inline i64 State::look_up_keys(const Mask& mask, i64 limit) {
    i64 postings = 0, filled = 0;
    for (i64 j = 0; j < terms; j++) postings += posting_count(j);
    if (limit * terms * LOOK_UP > postings) return -1;
    for (i64 at = 0; at < mask.words.size; at++)
        for (u64 word = mask.words[at]; word; word &= word - 1) {
            i64 document = at * 64 + __builtin_ctzll(word), score = 0;
            if (document >= p.size || filled == limit) return filled;
            for (i64 j = 0; j < terms; j++) score += term_impact(j, document);
            if (score > 0) b.keys[filled++] = key_of(score, document);
        }
    return filled;
}

}  // namespace klsa::KLSA_NS
