// Postings of the query kernel: counting and writing them; bindings of posting_lists.hpp.
#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "arrays.hpp"
#include "bindings.hpp"
#include "posting_lists.hpp"

namespace klsa {
namespace {

constexpr i64 UNIT = 1 << 16;

void require_bits(i64 bits) {
    require(bits >= 0 && bits <= 16, "bits: a block has at most 2^16 documents");
}

template <class C>
void require_counts(const Array1<const i64>& starts, const Array1<const i32>& terms, const Array1<const C>& counts,
                    i64 V) {
    require(length(starts) > 0, "starts: it is empty");
    require(length(terms) == length(counts), "terms and counts: their lengths differ");
    require_offsets(starts, length(terms), "starts");
    require_between(terms, 0, V, "terms");
}

// Call `visit(document, entry, term, is_first)` for each entry, whether it is the first of its term in a block or not.
template <class Visit>
void for_each_entry(const Array1<const i64>& starts, const Array1<const i32>& terms, i64 bits, i64 V, Visit visit) {
    std::vector<i64> last(size_t(V), -1);
    for (i64 document = 0; document + 1 < length(starts); document++) {
        const i64 block = document >> bits;
        for (i64 p = starts(document); p < starts(document + 1); p++) {
            i64& before = last[size_t(terms(p))];
            visit(document, p, i64(terms(p)), before != block);
            before = block;
        }
    }
}

template <class C>
void count_postings(Array1<const i64> starts, Array1<const i32> terms, Array1<const C> counts, i64 bits,
                    Array1<i64> lengths, Array1<i64> runs, Array1<i64> occurrences) {
    const i64 V = length(lengths);
    require_bits(bits);
    require(length(runs) == V && length(occurrences) == V, "lengths, runs and occurrences: their lengths differ");
    require_counts(starts, terms, counts, V);
    for (const auto* totals : {&lengths, &runs, &occurrences})
        require_between(*totals, 0, i64(1) << 62, "lengths, runs and occurrences");
    for_each_entry(starts, terms, bits, V, [&](i64, i64 p, i64 term, bool is_first) {
        lengths(term)++;
        occurrences(term) += i64(counts(p));
        runs(term) += is_first;
    });
}

template <class C>
void write_postings(Array1<const i64> starts, Array1<const i32> terms, Array1<const C> counts, Array1<const f64> norms,
                    i64 bits, Array1<i64> places, Array1<i64> run_places, Array1<u32> entries, Array2<u16> runs) {
    require_bits(bits);
    const i64 V = length(places), mask = (i64(1) << bits) - 1;
    require(length(run_places) == V, "places and run_places: their lengths differ");
    require(length(norms) == length(starts) - 1, "norms: their number is not that of the documents");
    require(runs.shape(1) == 3, "runs: they do not have three columns");
    require_counts(starts, terms, counts, V);
    require_between(places, 0, length(entries) + 1, "places");
    require_between(run_places, 0, length(runs) + 1, "run_places");
    for_each_entry(starts, terms, bits, V, [&](i64 document, i64 p, i64 term, bool is_first) {
        const f64 count = f64(counts(p));
        const f64 share = std::nearbyint(count / (norms(document) + count) * f64(UNIT));
        const u32 saturation = u32(std::min(std::max(share, 1.0), f64(UNIT - 1)));
        const i64 place = places(term)++;
        require(place < length(entries), "places: there are fewer entries");
        entries(place) = u32(document & mask) << 16 | saturation;
        if (is_first) {
            const i64 run = run_places(term)++;
            require(run < length(runs), "run_places: there are fewer runs");
            runs(run, 0) = u16(document >> bits);
        } else {
            runs(run_places(term) - 1, 1)++;
        }
        u16& strongest = runs(run_places(term) - 1, 2);
        strongest = std::max(strongest, u16(saturation));
    });
}

void find_best_saturations(Array1<const i64> starts, Array1<const u32> entries, Array1<const i64> depths,
                           Array2<u16> best) {
    require(length(starts) == length(best) + 1, "best: its number of rows is not that of the terms");
    require(i64(best.shape(1)) == length(depths), "best and depths: their widths differ");
    require_offsets(starts, length(entries), "starts");
    for (i64 i = 0; i < length(depths); i++)
        require(depths(i) > 0 && (i == 0 || depths(i) > depths(i - 1)), "depths: they do not ascend from 1");
    std::vector<u16> shares;
    for (i64 term = 0; term < length(best); term++) {
        shares.clear();
        for (i64 p = starts(term); p < starts(term + 1); p++) shares.push_back(u16(entries(p)));
        auto end = shares.end();
        for (i64 i = length(depths) - 1; i >= 0; i--) {
            if (depths(i) > end - shares.begin()) continue;
            const auto nth = shares.begin() + (depths(i) - 1);
            std::nth_element(shares.begin(), nth, end, std::greater<>());
            best(term, i) = *nth;
            end = nth + 1;
        }
    }
}

template <class C>
void bind(nb::module_& module) {
    module.def("count_postings", without_gil(&count_postings<C>), exact("starts"), exact("terms"), exact("counts"),
               nb::arg("bits"), exact("lengths"), exact("runs"), exact("occurrences"), R"(
        Add the postings, runs and occurrences of each term to (V,) arrays.

        starts, terms, counts  f(t,d) as in CSR; counts are int32, int64, float32 or float64
        bits                   a block has 2^bits documents
        Cost O(nnz).
    )");
    module.def("write_postings", without_gil(&write_postings<C>), exact("starts"), exact("terms"), exact("counts"),
               exact("norms"), nb::arg("bits"), exact("places"), exact("run_places"), exact("entries"), exact("runs"),
               R"(
        Write the entries and runs of documents, and advance the places of each term.

        norms               K_d of each document
        places, run_places  (V,) where the next entry and run of each term are written
        `runs` must be 0. See `count_postings` for the other arguments. Cost O(nnz).
    )");
}

}  // namespace

void bind_postings(nb::module_& module) {
    bind<i32>(module);
    bind<i64>(module);
    bind<f32>(module);
    bind<f64>(module);
    module.def("find_best_saturations", without_gil(&find_best_saturations), exact("starts"), exact("entries"),
               exact("depths"), exact("best"), R"(
        Write the n-th best saturation of each term for every n of `depths`, where there are n.

        depths  (m,) ascending, at least 1
        best    (V, m)
        Cost O(nnz).
    )");
    nb::class_<ListsObject>(module, "PostingLists", R"(
        The postings of consecutive documents, as `kernels.postings.Postings` describes them.

        size        number of documents
        block_bits  a block has 2^block_bits doc ids
        Cost O(V): offsets are checked, single postings are not.
    )")
        .def(nb::init<i64, int, In1<i64>, In1<u32>, In1<i64>, In2<u16>>(), nb::arg("size"), nb::arg("block_bits"),
             exact("starts"), exact("entries"), exact("run_starts"), exact("runs"))
        .def("add_steps", without_gil(&ListsObject::add_steps), exact("terms"), exact("weights"), exact("steps"), R"(
            Add 1 + ⌊weight · saturation / 2^16⌋ of some terms to the documents that contain them: (N,).

            Cost: the postings of the terms.
        )");
}

}  // namespace klsa
