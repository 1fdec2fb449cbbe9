// Bindings of the engine: searches by BM25 and by the default ranking.
#define KLSA_KERNELS "engine/searcher.hpp"
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>
#include "engine/buffers.hpp"
#include "engine/containing.hpp"
#include "engine/index.hpp"
#include "engine/packing.hpp"
#include "engine/results.hpp"
#include "engine/rows.hpp"
#include "engine/shared.hpp"

#include <optional>

#include "arrays.hpp"
#include "bindings.hpp"
#include "for_each_instruction_set.hpp"
#include "posting_lists.hpp"

namespace klsa {
namespace {

using Words = std::optional<In1<u64>>;
using Matches = std::optional<Array2<u64>>;  // words of a mask for each query
using Query = std::vector<i64>;

using klsa::view;
Array<QueryTerm> view(const std::vector<QueryTerm>& query) {
    return {query.data(), i64(query.size())};
}
Mask mask_of(const Words& words) {
    return words ? Mask{view(*words)} : Mask{};
}

Idf idf_named(const std::string& name) {
    if (name == "lucene") return Idf::LUCENE;
    if (name == "robertson") return Idf::ROBERTSON;
    require(name == "atire", "idf: not lucene, robertson or atire");
    return Idf::ATIRE;
}

auto idf_of_frequencies(In1<f64> frequencies, i64 documents, const std::string& variant) {
    const Idf idf = idf_named(variant);
    std::vector<f64> result(length(frequencies));
    std::transform(frequencies.data(), frequencies.data() + length(frequencies), result.begin(),
                   [&](f64 n) { return idf_of(idf, n, f64(documents)); });
    return result;
}

// `TermWeights` of the module.
struct WeightsObject {
    Owners owners;
    TermWeights weights;

    WeightsObject(In1<i64> frequencies, In1<i64> occurrences, In1<i64> common, i64 documents, f64 max_burstiness,
                  f64 common_weight, const std::string& idf)
        : weights{view(owners.keep(frequencies)),
                  view(owners.keep(occurrences)),
                  view(owners.keep(common)),
                  documents,
                  max_burstiness,
                  common_weight,
                  idf_named(idf)} {
        require(length(frequencies) == length(occurrences), "frequencies and occurrences: their lengths differ");
        require(documents >= 0 && max_burstiness >= 1, "documents or max_burstiness: it is too small");
        require(std::is_sorted(common.data(), common.data() + length(common)), "common: not ascending");
    }

    auto of(In1<i64> terms) const {
        require_between(terms, 0, weights.size(), "terms");
        std::vector<f32> term_weights, burstiness;
        std::vector<i64> steps;
        for (i64 i = 0; i < length(terms); i++) {
            const TermWeight weight = weights[terms(i)];
            term_weights.push_back(weight.weight);
            steps.push_back(weight.steps);
            burstiness.push_back(weight.burstiness);
        }
        return std::tuple(std::move(term_weights), std::move(steps), std::move(burstiness));
    }
};

// `DocumentRows` of the module.
struct RowsObject {
    Owners owners;
    DocumentRows rows;

    RowsObject(In2<u32> entries, In2<f32> scales, In1<i64> starts, In1<u32> features, In2<i8> document_vectors) {
        rows.rows = view(owners.keep(entries));
        rows.scales = view(owners.keep(scales));
        rows.feature_starts = view(owners.keep(starts));
        rows.features = view(owners.keep(features));
        rows.document_vectors = view(owners.keep(document_vectors));
        rows.check();
    }
};

// `ExpansionModel` of the module.
struct ModelObject {
    Owners owners;
    Model model;

    ModelObject(const std::vector<const RowsObject*>& parts, In2<i8> term_vectors, In2<u32> remote_rows,
                In2<u8> remote_levels, std::optional<In1<i64>> ordinals, i64 dimensions, i64 neighbours) {
        for (const RowsObject* part : parts) {
            owners.keep(present(part, "parts").owners);
            model.parts.push_back(part->rows);
        }
        model.term_vectors = view(owners.keep(term_vectors));
        model.remote_rows = view(owners.keep(remote_rows));
        model.remote_levels = view(owners.keep(remote_levels));
        model.is_partition = ordinals.has_value();
        if (ordinals) model.ordinals = view(owners.keep(*ordinals));
        model.dimensions = dimensions;
        model.neighbours = neighbours;
        model.check();
    }
};

// The fields of `SeedRows`.
auto tuple_of(Rows&& rows) {
    size_t columns = size_t(rows.columns), count = rows.steps.size() / 2;
    rows.check(count);
    return std::tuple(owned(std::move(rows.documents), {count, columns}),
                      owned(std::move(rows.levels), {count, columns}), owned(std::move(rows.steps), {count, 2}),
                      rows.width, rows.near);
}

// `KlsaParams` and `RerankDepths`: named tuples, of which items are read faster than attributes.
using ParamsTuple =
    std::tuple<i64, i64, double, double, double, double, double, double, double, double, bool, double, double>;
using DepthsTuple = std::tuple<i64, i64, i64, bool>;

Params params_of(const ParamsTuple& items) {
    Params params = std::apply([](auto... each) { return Params{each...}; }, items);
    bool is_valid = params.seeds >= 1 && params.seeds <= MAX_SEEDS && params.best >= params.seeds;
    require(is_valid, "params: seeds must be from 1 to 1,500, and at most best");
    return params;
}

Depths depths_of(const DepthsTuple& items) {
    auto [coverage, expansion, filtered, look_up_all] = items;
    return {std::max<i64>(coverage, 0), std::max<i64>(expansion, 0), std::max<i64>(filtered, 0), look_up_all};
}

std::vector<SharedSeeds> share(const std::vector<const Seeds*>& parts, const Params& params, double step) {
    return share_seeds(parts, params, step, [&](const MergedSeeds& merged) {
        BufferLease buffers;
        WeighedSeeds weighed = KLSA_DISPATCH(weigh_merged(merged, params, *buffers));
        buffers.release();
        return weighed;
    });
}

// `Engine` of the module; immutable and thread-safe.
class EngineObject {
  public:
    using Part = std::tuple<i64, const ListsObject*, std::optional<In1<i64>>, std::optional<In1<i64>>>;
    using Reverse = std::tuple<In1<i32>, In2<u32>, In1<f32>>;
    using Counts = std::vector<std::pair<i64, i64>>;
    using PartOfQuery = std::tuple<const EngineObject*, Query, ParamsTuple, DepthsTuple>;

    EngineObject(const std::vector<Part>& segments, const WeightsObject& weights, In2<u16> best, double step,
                 i64 deleted, Words live, const ModelObject* model, std::optional<Reverse> reverse)
        : weights_(weights.weights) {
        owners_.keep(weights.owners);
        for (const auto& [first, lists, terms, local_terms] : segments) {
            Segment segment;
            static_cast<PostingLists&>(segment) = present(lists, "segments").lists;
            owners_.keep(lists->owners);
            segment.first = first;
            if (terms && local_terms) {
                segment.is_renumbered = true;
                segment.terms = view(owners_.keep(*terms));
                segment.local_terms = view(owners_.keep(*local_terms));
            }
            segment.check();
            postings_.segments.push_back(segment);
        }
        postings_.best = view(owners_.keep(best));
        postings_.step = step;
        postings_.deleted = deleted;
        if (live) postings_.live.words = view(owners_.keep(*live));
        postings_.check();
        require(postings_.best.rows == weights_.size(), "weights and best: they have different numbers of terms");
        if (!model) return;
        owners_.keep(model->owners);
        model_ = model->model;
        require(model_->documents >= postings_.size, "model: it has fewer documents than the postings");
        if (reverse) {
            auto& [row_of, rows, steps] = *reverse;
            reverse_ = {view(owners_.keep(row_of)), view(owners_.keep(rows)), view(owners_.keep(steps))};
            reverse_.check();
        }
    }

    Counts bm25(const std::vector<Query>& queries, Words mask, bool totals, Matches matches, Array2<i32> documents,
                Array2<f32> scores) const {
        Request request = request_of(documents, mask, totals, matches);
        return for_each(queries, documents, scores, nullptr, matches,
                        [&](Searcher& searcher, Array<QueryTerm> query) { return searcher.bm25(query, request); });
    }

    Counts score(const std::vector<Query>& queries, const ParamsTuple& params, const DepthsTuple& depths, Words mask,
                 bool totals, Matches matches, Array2<i32> documents, Array2<f32> scores, Array2<u8> exact) const {
        check_model();
        Request request = request_of(documents, mask, totals, matches);
        Params p = params_of(params);
        Depths d = depths_of(depths);
        return for_each(queries, documents, scores, &exact, matches, [&](Searcher& searcher, Array<QueryTerm> query) {
            return searcher.score(query, request, p, d);
        });
    }

    auto containing_all(const std::vector<i64>& terms) const {
        check_terms(terms);
        require(!terms.empty(), "terms: there is none");
        return run_without_gil([&] { return klsa::containing_all(postings_, terms); });
    }

    auto containing_any(const std::vector<i64>& terms) const {
        check_terms(terms);
        return run_without_gil([&] {
            Flags flags{std::vector<u8>(size_t(postings_.size))};
            for (const i64 term : terms)
                for_each_document(postings_, term, [&](i64 document) { flags.values[document] = 1; });
            return flags;
        });
    }

    auto count_within(const std::vector<i64>& terms, Array1<const bool> allowed) const {
        check_terms(terms);
        require(length(allowed) == postings_.size, "allowed: not a value for each document");
        return run_without_gil([&] {
            std::vector<i64> counts;
            for (const i64 term : terms) {
                i64& count = counts.emplace_back();
                for_each_document(postings_, term, [&](i64 document) { count += allowed(document); });
            }
            return counts;
        });
    }

    auto saturations(In1<i64> terms, In1<i64> documents) const {
        i64 n = length(documents), m = length(terms);
        require_between(documents, 0, postings_.size, "documents");
        require_between(terms, 0, weights_.size(), "terms");
        std::vector<u16> result(n * m);
        {
            WithoutGil released;
            for (i64 i = 0; i < n * m; i++)
                result[i] = postings_.saturation(terms.data()[i % m], documents.data()[i / m]);
        }
        return owned(std::move(result), {size_t(n), size_t(m)});
    }

    auto explain(const Query& query, In1<i32> documents, In1<u8> exact, const ParamsTuple& params,
                 const SharedSeeds* shared) const {
        check_model();
        auto terms = distinct(query);
        require(length(documents) == length(exact), "exact: not a value for each document");
        require_between(documents, 0, postings_.size, "documents");
        Params p = params_of(params);
        if (shared) check_shared(*shared, terms.size());
        Details d;
        {
            WithoutGil released;
            d = search([&](Searcher& searcher) {
                return searcher.explain(view(terms), view(documents), view(exact), p, shared);
            });
        }
        size_t n = documents.shape(0), m = terms.size(), z = d.weights.size(), h = size_t(model_->neighbours);
        return std::tuple(d.alpha, owned(std::move(d.seeds)), owned(std::move(d.weights)), owned(std::move(d.exact)),
                          owned(std::move(d.expansion)), owned(std::move(d.latent)), owned(std::move(d.lexical)),
                          owned(std::move(d.by_seed), {n, z}), owned(std::move(d.coverage), {n, m}),
                          owned(std::move(d.impacts), {n, m}), owned(std::move(d.neighbours), {n, h}),
                          owned(std::move(d.lent), {n, h, m}));
    }

    Seeds seeds(const Query& query, const ParamsTuple& params) const {
        check_model();
        auto terms = distinct(query);
        Params p = params_of(params);
        WithoutGil released;
        Seeds found = search([&](Searcher& searcher) { return searcher.seeds(view(terms), p, 0); });
        add_ordinals(found);
        describe(found, i64(found.latent.size()));
        return found;
    }

    // Search several partitions of this process, as many calls of `seeds` and `score_shared` would;
    // documents below the best of earlier partitions are left out of `seeds`.
    static Counts score_all(const std::vector<PartOfQuery>& parts, double step, bool totals, Array2<i32> documents,
                            Array2<f32> scores, Array2<u8> exact) {
        struct Search {
            const EngineObject& engine;
            std::vector<QueryTerm> terms;
            Request request;
            Params params;
            Depths depths;
            Seeds local;
        };
        i64 rows = i64(parts.size()), k = i64(documents.shape(1));
        require(rows > 0, "parts: there is none");
        auto fits = [&](const auto& array) { return length(array) == rows && i64(array.shape(1)) == k; };
        require(fits(documents) && fits(scores) && fits(exact), "documents, scores and exact: not a row of each part");
        std::vector<Search> all;
        for (const auto& [engine, query, params, depths] : parts) {
            present(engine, "parts").check_model();
            i64 size = engine->postings_.size;
            Request request{engine->checked_k(std::min(k, size)), engine->postings_.live, false, totals};
            all.push_back({*engine, engine->distinct(query), request, params_of(params), depths_of(depths), {}});
            require(all.back().terms.size() == all[0].terms.size(), "parts: their queries have different words");
            require(all.back().params.seeds == all[0].params.seeds, "parts: they have different numbers of seeds");
        }
        Counts counts(rows);
        WithoutGil released;
        std::vector<const Seeds*> found;
        std::vector<i64> steps;
        for (Search& part : all) {
            i64 best = part.params.best, least = 0;
            if (i64(steps.size()) >= best) {
                std::nth_element(steps.begin(), steps.begin() + best - 1, steps.end(), std::greater<>());
                steps.resize(best);
                least = steps[best - 1];
            }
            part.local = part.engine.search(
                [&](Searcher& searcher) { return searcher.seeds(view(part.terms), part.params, least); });
            steps.insert(steps.end(), part.local.steps.begin(), part.local.steps.end());
            part.engine.add_ordinals(part.local);
            found.push_back(&part.local);
        }
        std::vector<i64> seeds(all.size());
        for (const BestDocument& seed : best_of(found, all[0].params.seeds)) seeds[seed.partition]++;
        for (size_t i = 0; i < all.size(); i++) all[i].engine.describe(all[i].local, seeds[i]);
        std::vector<SharedSeeds> shared = share(found, all[0].params, step);
        for (i64 i = 0; i < i64(shared.size()); i++) {
            const Search& part = all[i];
            Hits hits = part.engine.search([&](Searcher& searcher) {
                return searcher.score_shared(view(part.terms), part.request, part.params, part.depths, shared[i],
                                             &part.local);
            });
            std::copy(hits.documents.begin(), hits.documents.end(), documents.data() + i * k);
            std::copy(hits.scores.begin(), hits.scores.end(), scores.data() + i * k);
            std::copy(hits.exact.begin(), hits.exact.end(), exact.data() + i * k);
            counts[i] = {i64(hits.documents.size()), hits.total};
        }
        return counts;
    }

    auto rows(In1<i64> documents) const {
        check_model();
        require_between(documents, 0, model_->documents, "documents");
        Rows result;
        {
            WithoutGil released;
            result = rows_of(*model_, reverse_, view(documents));
        }
        return tuple_of(std::move(result));
    }

    std::pair<i64, i64> score_shared(const Query& query, const ParamsTuple& params, const DepthsTuple& depths,
                                     const SharedSeeds& shared, const Seeds* local, Words mask, bool totals,
                                     Matches matches, Array2<i32> documents, Array2<f32> scores,
                                     Array2<u8> exact) const {
        check_model();
        Request request = request_of(documents, mask, totals, matches);
        Params p = params_of(params);
        Depths d = depths_of(depths);
        auto distinct_terms = distinct(query);
        check_shared(shared, distinct_terms.size());
        if (local) check_local(*local, shared, distinct_terms);
        return for_each({query}, documents, scores, &exact, matches, [&](Searcher& searcher, Array<QueryTerm> terms) {
            return searcher.score_shared(terms, request, p, d, shared, local);
        })[0];
    }

  private:
    void add_ordinals(Seeds& found) const {
        found.ordinals.reserve(found.documents.size());
        for (i32 document : found.documents) found.ordinals.push_back(model_->ordinal(document));
    }

    // Add features and rows of the first documents.
    void describe(Seeds& found, i64 count) const {
        Array<i32> seeds{found.documents.data(), count};
        found.features = features_of(*model_, seeds);
        found.rows = rows_of(*model_, reverse_, seeds);
    }

    i64 checked_k(i64 k) const {
        require(k >= 1 && k <= postings_.size, "k: not from 1 to the number of documents");
        return k;
    }
    Mask checked_mask(const Words& words) const {
        Mask mask = words ? mask_of(words) : postings_.live;
        postings_.check_mask(mask);
        return mask;
    }
    Request request_of(const Array2<i32>& documents, const Words& mask, bool totals, const Matches& matches) const {
        const bool lists = matches.has_value();
        return {checked_k(i64(documents.shape(1))), checked_mask(mask), mask.has_value(), totals || lists, lists};
    }
    void check_terms(const std::vector<i64>& terms) const { require_between(terms, 0, weights_.size(), "terms"); }
    void check_model() const { require(model_.has_value(), "the engine has no model"); }

    // The distinct terms of a query that documents contain, in its order.
    std::vector<QueryTerm> distinct(const Query& query) const {
        std::vector<QueryTerm> terms;
        for (i64 number : query) {
            if (number < 0) continue;
            if (number >= weights_.size()) throw nb::index_error("a query has a term that the index has not");
            auto same = [&](const QueryTerm& term) { return term.number == number; };
            auto at = std::find_if(terms.begin(), terms.end(), same);
            if (at == terms.end())
                terms.push_back({number, 1, weights_[number]});
            else
                at->count++;
        }
        return terms;
    }

    // Check seeds, which may come from another process, before they are used.
    void check_shared(const SharedSeeds& s, size_t terms) const {
        require(s.best >= s.seeds && s.seeds >= 0 && s.first > 0, "shared: no seeds");
        require(s.features.size() == s.sums.size() && s.near.size() == s.estimates.size(), "shared: lengths differ");
        require(s.impacts.size() == s.remote.size() * terms, "shared: not an impact for each document and term");
        require_between(s.features, 0, NUMBERS, "shared: features");
        const Features& f = s.seed_features;
        bool fits = s.weights.empty() || f.starts.size() == s.weights.size() + 1;
        require(fits && f.scalars.size() == 3 * s.weights.size(), "shared: not the features of each seed");
        require_offsets(f.starts, i64(f.entries.size()), "shared: starts");
        s.rows.check(s.weights.size());
    }

    // Check that seeds are of this query to this engine, and not from another process.
    void check_local(const Seeds& s, const SharedSeeds& shared, const std::vector<QueryTerm>& query) const {
        size_t terms = query.size();
        auto same = [](const std::pair<i64, i64>& one, const QueryTerm& other) {
            return one == std::pair(other.number, other.count);
        };
        bool fits = std::equal(s.terms.begin(), s.terms.end(), query.begin(), query.end(), same);
        fits = fits && s.half.size() == terms && s.term_weights.size() == terms;
        fits = fits && i64(s.documents.size()) >= shared.best && s.steps.size() == s.documents.size();
        fits = fits && s.impacts.size() == s.documents.size() * terms;
        fits = fits && i64(s.matches.size()) == postings_.size / 64 + 1;
        require(fits, "local: not the seeds of this query by this engine");
        require_between(s.documents, 0, postings_.size, "local: documents");
    }

    // Run one search with buffers from the pool; without the GIL.
    template <class F>
    std::invoke_result_t<F, Searcher&> search(F run) const {
        BufferLease buffers;
        auto searcher = KLSA_DISPATCH(make_searcher(postings_, model_ ? &*model_ : nullptr, &reverse_, *buffers));
        auto result = run(*searcher);
        buffers.release();
        return result;
    }

    // Write the hits of each query in a row of the results; return how many, and the totals.
    template <class F>
    Counts for_each(const std::vector<Query>& queries, const Array2<i32>& documents, const Array2<f32>& scores,
                    const Array2<u8>* exact, const Matches& matches, F run) const {
        i64 rows = i64(queries.size()), k = i64(documents.shape(1)), words = (postings_.size + 63) / 64;
        auto fits = [&](const auto& array, i64 width) { return length(array) == rows && i64(array.shape(1)) == width; };
        bool all_fit = fits(documents, k) && fits(scores, k) && (!exact || fits(*exact, k));
        require(all_fit, "documents, scores and exact: not a row of k for each query");
        require(!matches || fits(*matches, words), "matches: not the words of a mask for each query");
        std::vector<std::vector<QueryTerm>> terms;
        for (const Query& query : queries) terms.push_back(distinct(query));
        Counts counts;
        WithoutGil released;
        for (i64 i = 0; i < rows; i++) {
            Hits hits = search([&](Searcher& searcher) { return run(searcher, view(terms[size_t(i)])); });
            std::copy(hits.documents.begin(), hits.documents.end(), documents.data() + i * k);
            std::copy(hits.scores.begin(), hits.scores.end(), scores.data() + i * k);
            if (exact) std::copy(hits.exact.begin(), hits.exact.end(), exact->data() + i * k);
            hits.matches.resize(matches ? words : 0);  // none if no document has a term of the query
            if (matches) std::copy(hits.matches.begin(), hits.matches.end(), matches->data() + i * words);
            counts.emplace_back(i64(hits.documents.size()), hits.total);
        }
        return counts;
    }

    Owners owners_;
    TermWeights weights_;
    Postings postings_;
    std::optional<Model> model_;
    ReverseRows reverse_;
};

// See `share_seeds` in shared.hpp; a list of None if no document has the words of the query.
std::vector<std::optional<SharedSeeds>> share_with_each(const std::vector<const Seeds*>& parts,
                                                        const ParamsTuple& params, double step) {
    Params p = params_of(params);
    WithoutGil released;
    const Seeds* first = nullptr;
    for (const Seeds* part : parts) {
        if (!part || part->documents.empty()) continue;
        if (!first) first = part;
        part->check(p.seeds, *first);
    }
    std::vector<std::optional<SharedSeeds>> result;
    for (SharedSeeds& shared : share(parts, p, step)) result.emplace_back(std::move(shared));
    result.resize(parts.size());
    return result;
}

// Bind seeds as a class that is pickled to bytes.
template <class T>
nb::class_<T> bind_packed(nb::module_& module, const char* name, const char* description) {
    return nb::class_<T>(module, name, description)
        .def("__getstate__",
             [](const T& value) {
                 Packer pack;
                 pack(value);
                 return nb::bytes(pack.bytes.data(), pack.bytes.size());
             })
        .def("__setstate__", [](T& value, nb::bytes bytes) {
            T unpacked;
            Unpacker unpack({bytes.c_str(), bytes.size()});
            unpack(unpacked);
            unpack.finish();
            new (&value) T(std::move(unpacked));
        });
}

// An attribute that is a copy of an array, which is not of the object.
template <class C, class T>
auto copy_of(std::vector<T> C::* member) {
    return [member](const C& object) { return owned(std::vector<T>(object.*member)); };
}

}  // namespace

void bind_engine(nb::module_& module) {
    module.def("idf_of", without_gil(&idf_of_frequencies), nb::arg("frequencies"), nb::arg("documents"),
               nb::arg("variant"), "Return w(t) of terms: see `kernels.bm25.idf_of`.");
    nb::class_<WeightsObject>(module, "TermWeights", R"(
        Computes the weights of terms by their counts: see `kernels.query_kernel`.

        frequencies, occurrences  (V,) of each term
        common                    numbers of common terms, ascending
        documents                 N
        max_burstiness            limit of b(t)
        common_weight             h(t) of common terms
        idf                       variant
    )")
        .def(nb::init<In1<i64>, In1<i64>, In1<i64>, i64, f64, f64, const std::string&>(), nb::arg("frequencies"),
             nb::arg("occurrences"), nb::arg("common"), nb::arg("documents"), nb::arg("max_burstiness"),
             nb::arg("common_weight"), nb::arg("idf"))
        .def("of", without_gil(&WeightsObject::of), nb::arg("terms"),
             "Return h(t) · w(t) of terms, the same in 65,536ths, and b(t): (n,). Cost: 50 ns each.");
    nb::class_<RowsObject>(module, "DocumentRows", R"(
        The rows of D, features and vectors of consecutive documents: see `SparseExpansion`.

        Cost O(N): offsets are checked, single entries are not.
    )")
        .def(nb::init<In2<u32>, In2<f32>, In1<i64>, In1<u32>, In2<i8>>(), nb::arg("rows"), nb::arg("scales"),
             nb::arg("starts"), nb::arg("features"), nb::arg("document_vectors"));
    nb::class_<ModelObject>(module, "ExpansionModel", R"(
        The rows of all documents, and the vectors of terms.

        parts         one after the other
        term_vectors  `terms` of `SparseExpansion`
        remote_rows, remote_levels  of `RemoteRows`
        ordinals      of a partition: those of the documents of the build
        dimensions    m, coordinates of the latent space
        neighbours    entries of a row that count for coverage, the first ones
    )")
        .def(nb::init<const std::vector<const RowsObject*>&, In2<i8>, In2<u32>, In2<u8>, std::optional<In1<i64>>, i64,
                      i64>(),
             nb::arg("parts"), nb::arg("term_vectors"), nb::arg("remote_rows"), nb::arg("remote_levels"),
             nb::arg("ordinals").none(), nb::arg("dimensions"), nb::arg("neighbours"));
    bind_packed<Seeds>(module, "LocalSeeds", R"(
        The b best documents of one partition by BM25, of which the first z may be seeds.

        It has all that other partitions need of them, and is pickled to bytes.

        doc_ids, steps, ordinals  (b,) with k_q in steps, highest first
        impacts  (b · n,) of the n distinct terms of the query, in its order, in steps
        names    ID and title of each, for a request that explains scores
    )")
        .def_prop_ro("doc_ids", copy_of(&Seeds::documents))
        .def_prop_ro("steps", copy_of(&Seeds::steps))
        .def_prop_ro("ordinals", copy_of(&Seeds::ordinals))
        .def_prop_ro("impacts", copy_of(&Seeds::impacts))
        .def_rw("names", &Seeds::names);
    using S = SharedSeeds;
    bind_packed<S>(module, "SharedSeeds", R"(
        The seeds of a query, as one of several partitions needs them; pickled to bytes.

        first    k_q of the first seed, in steps
        best, seeds  number of documents of the partition that are among the best and the seeds of all
        centre, factors  of E and of the parts of a score, as results.hpp describes them
        numbers  (f,) of the features of the seeds; `sums` (f,) of each, in steps
        near     (n,) ordinals of the documents in the rows of the seeds
        estimates  (n,) E of these by the rows
        remote   (m,) ordinals of the best documents of other partitions, ascending, without later
                 documents, which no row of this one contains; their impacts, (m · terms,)
        names, rows, features  of the seeds, if scores are explained: `SeedRows` and `DocFeatures`
        remote_names  of the remote documents, likewise
    )")
        .def_ro("first", &S::first)
        .def_ro("best", &S::best)
        .def_ro("seeds", &S::seeds)
        .def_prop_ro(
            "centre",
            [](const S& s) { return std::tuple(s.centre.scale, s.centre.mean, s.centre.mean_square, s.centre.step); })
        .def_prop_ro("factors",
                     [](const S& s) {
                         const Factors& f = s.factors;
                         return std::tuple(f.expansion, f.coverage, f.latent, f.lexical);
                     })
        .def_prop_ro("numbers", copy_of(&S::features))
        .def_prop_ro("sums", copy_of(&S::sums))
        .def_prop_ro("near", copy_of(&S::near))
        .def_prop_ro("estimates", copy_of(&S::estimates))
        .def_prop_ro("remote", copy_of(&S::remote))
        .def_prop_ro("impacts", copy_of(&S::impacts))
        .def_ro("names", &S::names)
        .def_ro("remote_names", &S::remote_names)
        .def_prop_ro("rows", [](const S& s) { return tuple_of(Rows(s.rows)); })
        .def_prop_ro("features", [](S s) {
            Features& f = s.seed_features;
            size_t seeds = f.scalars.size() / 3;
            return std::tuple(owned(std::move(f.starts)), owned(std::move(f.entries)),
                              owned(std::move(f.scalars), {seeds, 3}));
        });
    module.def("share_seeds", &share_with_each, nb::arg("parts"), nb::arg("params"), nb::arg("step"),
               nb::sig("def share_seeds(parts: collections.abc.Sequence[LocalSeeds | None], "
                       "params: klsa_search.search.engine.engine.KlsaParams, step: float) -> list[SharedSeeds | None]"),
               R"(
        Return the seeds of a query for each partition; None for all if no document has its words.

        parts  best documents of each partition; None for a partition that does not answer
        step   value of one step of k_q
        Documents with equal scores are in the order of their ordinals; later ones follow, partition by
        partition. Cost: 50 µs.
    )");
    using E = EngineObject;
    nb::class_<E>(module, "Engine", R"(
        Searches segments by BM25, and by the default ranking if there is a model.

        segments      first doc id, posting lists, and global numbers of its terms, ascending, with its
                      own; None for both if these are the same
        weights       of the terms
        best          (V, 4), of `Segments`
        step          value of one step of a score
        deleted       number of documents
        live          words of the mask of the live documents; None if all are
        reverse       arrays of `ReverseNeighbours`
        Immutable and thread-safe. Queries are term numbers, negative if unknown; IndexError for a term
        beyond V. A mask changes no score. Results are written to rows of `documents`, `scores` and, by
        the default ranking, `exact`, (queries, k), best first; returns how many there are for each
        query, and the totals if `totals`, else 0. `matches` gets the words of the mask of the documents
        that match each query, unless it is None. `exact` has which parts of each score are not
        estimates, see `search.engine.engine.Exact`.
    )")
        .def(nb::init<const std::vector<E::Part>&, const WeightsObject&, In2<u16>, double, i64, Words,
                      const ModelObject*, std::optional<E::Reverse>>(),
             nb::arg("segments"), nb::arg("weights"), nb::arg("best"), nb::arg("step"), nb::arg("deleted"),
             nb::arg("live").none(), nb::arg("model").none(), nb::arg("reverse").none())
        .def("bm25", &E::bm25, nb::arg("queries"), nb::arg("mask").none(), nb::arg("totals"), nb::arg("matches").none(),
             nb::arg("documents"), nb::arg("scores"), "Find the k best documents of each query by BM25, exactly.")
        .def("score", &E::score, nb::arg("queries"), nb::arg("params"), nb::arg("depths"), nb::arg("mask").none(),
             nb::arg("totals"), nb::arg("matches").none(), nb::arg("documents"), nb::arg("scores"), nb::arg("exact"),
             "Find the k best documents of each query by the default ranking.")
        .def("containing_all", &E::containing_all, nb::arg("terms"), R"(
            Return the documents that contain all terms, ascending.

            Cost: the postings of the rarest, and a look-up of each of these for every other term.
        )")
        .def("containing_any", &E::containing_any, nb::arg("terms"),
             "Return which documents contain any of the terms: (N,). Cost: their postings.")
        .def("count_within", &E::count_within, nb::arg("terms"), nb::arg("allowed"),
             "Count the documents of a mask, (N,), that contain each term: (n,). Cost: their postings.")
        .def("saturations", &E::saturations, nb::arg("terms"), nb::arg("documents"),
             "Return the saturations of terms in documents, 0 for none: (documents, terms).")
        .def("explain", &E::explain, nb::arg("query"), nb::arg("documents"), nb::arg("exact"), nb::arg("params"),
             nb::arg("shared").none(),
             "Return what the scores of documents consist of, by the fields of `ScoreDetails`.")
        .def("seeds", &E::seeds, nb::arg("query"), nb::arg("params"),
             "Return the b best documents by BM25, of which the first z may be seeds.")
        .def("rows", &E::rows, nb::arg("documents"), "Return rows of D, by the fields of `SeedRows`.")
        .def_static("score_all", &E::score_all, nb::arg("parts"), nb::arg("step"), nb::arg("totals"),
                    nb::arg("documents"), nb::arg("scores"), nb::arg("exact"),
                    "Find the k best documents of a query in each of several engines by the seeds of all.")
        .def("score_shared", &E::score_shared, nb::arg("query"), nb::arg("params"), nb::arg("depths"),
             nb::arg("shared"), nb::arg("local").none(), nb::arg("mask").none(), nb::arg("totals"),
             nb::arg("matches").none(), nb::arg("documents"), nb::arg("scores"), nb::arg("exact"), R"(
            Find the k best documents of one query by the seeds of all partitions.

            local  what `seeds` returned for the query, so that postings are not read again
        )");
}

}  // namespace klsa
