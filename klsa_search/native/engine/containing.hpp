// Which documents contain terms, by their postings alone.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "index.hpp"

namespace klsa {

// Call `visit` with the first document of each block that has postings of a term, and with these.
template <class Visit>
void for_each_run(const PostingLists& lists, i64 term, Visit visit) {
    i64 at = lists.starts[term];
    const i64 last = lists.starts[term + 1];
    for (i64 i = lists.run_starts[term]; i < lists.run_starts[term + 1]; i++) {
        const u16* run = lists.runs[i];
        const i64 after = std::min(at + run[1] + 1, last);
        visit(i64(run[0]) << lists.block_bits, std::span(lists.entries.data + at, size_t(after - at)));
        at = after;
    }
}
template <class Visit>
void for_each_run(const Postings& p, i64 term, Visit visit) {
    for (const Segment& segment : p.segments)
        if (const i64 local = segment.local_term(term); local >= 0)
            for_each_run(static_cast<const PostingLists&>(segment), local,
                         [&](i64 first, std::span<const u32> entries) { visit(segment.first + first, entries); });
}

// Call `visit` with each document that contains a term, ascending.
template <class Visit>
void for_each_document(const Postings& p, i64 term, Visit visit) {
    for_each_run(p, term, [&](i64 first, std::span<const u32> entries) {
        for (const u32 entry : entries)
            if (const i64 document = first + (entry >> 16); document < p.size) visit(document);  // else it is damaged
    });
}

inline i64 frequency_of(const Postings& p, i64 term) {
    i64 count = 0;
    for_each_run(p, term, [&](i64, std::span<const u32> entries) { count += i64(entries.size()); });
    return count;
}

// Keep those of ascending documents that contain a term. Cost: a search in steps that double, for each.
inline void keep_containing(const Postings& p, i64 term, std::vector<i32>& documents) {
    size_t next = 0, kept = 0;
    for_each_run(p, term, [&](i64 first, std::span<const u32> entries) {
        while (next < documents.size() && documents[next] < first) next++;
        const u32 *at = entries.data(), *end = at + entries.size();
        const i64 after = first + (i64(1) << p.block_bits);
        for (; next < documents.size() && documents[next] < after; next++) {
            const u32 least_entry = u32(documents[next] - first) << 16;
            i64 step = 1;
            while (step < end - at && at[step] < least_entry) step *= 2;
            at = std::lower_bound(at + step / 2, at + std::min(step + 1, i64(end - at)), least_entry);
            if (at == end) break;
            if (*at >> 16 == least_entry >> 16) documents[kept++] = documents[next];
        }
    });
    documents.resize(kept);
}

// The documents that contain all terms, ascending. Cost: the postings of the rarest, and look-ups of these.
inline std::vector<i32> containing_all(const Postings& p, std::span<const i64> terms) {
    std::vector<std::pair<i64, i64>> ordered;
    for (const i64 term : terms) ordered.emplace_back(frequency_of(p, term), term);
    std::sort(ordered.begin(), ordered.end());
    std::vector<i32> documents;
    documents.reserve(size_t(ordered[0].first));
    for_each_document(p, ordered[0].second, [&](i64 document) { documents.push_back(i32(document)); });
    for (size_t i = 1; i < ordered.size(); i++) keep_containing(p, ordered[i].second, documents);
    return documents;
}

}  // namespace klsa
