// What a search is asked and what it returns.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "../term_weights.hpp"
#include "index.hpp"

namespace klsa {

// A distinct term of a query that documents contain.
struct QueryTerm {
    i64 number, count;  // f(t, q)
    TermWeight weight;  // of the term
};

// k best documents of a query.
struct Request {
    i64 k = 0;
    Mask mask;               // of documents that may be returned
    bool is_masked = false;  // whether this is more than the live documents
    bool totals = false;     // whether to count the documents that match
    bool lists = false;      // whether to return them
};

// Which parts of a score are not estimates, one bit each.
enum Exact : u8 { EXPANSION_EXACT = 1, COVERAGE_EXACT = 2, LEXICAL_EXACT = 4 };

struct Hits {
    std::vector<i32> documents;
    std::vector<f32> scores;
    std::vector<u8> exact;  // see `Exact`; empty for BM25
    i64 total = 0;
    std::vector<u64> matches;  // a bit of each document, if they are listed
};

// What the scores of n documents consist of, in units of the score: see `ScoreDetails`.
struct Details {
    double alpha = 0;
    std::vector<i32> seeds;  // documents, if they are of this index
    std::vector<f32> weights;
    std::vector<f32> expansion, latent, lexical;  // (n,)
    std::vector<u8> exact;                        // (n,)
    std::vector<f32> by_seed;                     // (n, seeds) of the exact expansion
    std::vector<f32> coverage, impacts;           // (n, terms); of the document itself, in steps
    std::vector<i32> neighbours;                  // (n, neighbours) documents; -1 for none, -2 - i elsewhere
    std::vector<f32> lent;                        // (n, neighbours, terms) in steps
};

// The features of some documents: see `DocFeatures`.
struct Features {
    std::vector<i64> starts{0};
    std::vector<u32> entries;
    std::vector<f32> scalars;  // (documents, 3)

    Array<u32> of(i64 i) const { return {entries.data() + starts[i], starts[i + 1] - starts[i]}; }

    // Append the features of a document.
    void add(Array<u32> features, const f32* of_document) {
        entries.insert(entries.end(), features.data, features.data + features.size);
        starts.push_back(i64(entries.size()));
        scalars.insert(scalars.end(), of_document, of_document + 3);
    }
};

// Rows of D of some documents, with their entries in all partitions: see `SeedRows`.
struct Rows {
    std::vector<i64> documents;  // (documents, columns), by ordinals
    std::vector<u8> levels;
    std::vector<f32> steps;  // (documents, 2)
    i64 columns = 0, width = 0, near = 0;

    f32 step(i64 row, i64 column) const { return steps[2 * row + (column >= width)]; }

    // Check rows of so many documents, which may come from another process, before they are used.
    void check(size_t count) const {
        bool fits = 0 <= near && near <= width && width <= columns;
        fits = fits && (count == 0 || size_t(columns) <= documents.size());  // so that the product does not overflow
        fits = fits && documents.size() == count * size_t(columns) && levels.size() == documents.size();
        require(fits && steps.size() == 2 * count, "rows: not one for each seed");
    }
};

using Names = std::vector<std::pair<std::string, std::string>>;

// The best documents of one partition, of which the first may be seeds: see `LocalSeeds`.
struct Seeds {
    std::vector<i32> documents;
    std::vector<i64> ordinals, steps;
    std::vector<i32> latent;              // of the first `Params::seeds`
    std::vector<f32> impacts;             // (documents, terms) in steps
    std::vector<f32> term_weights, half;  // f(t,q) · h(t) · w(t), and the impact at which g is one half
    double share = 0;                     // of the query in the first document
    f32 angle = 0;                        // one step of a cosine
    Features features;                    // of the first `Params::seeds`, and their rows
    Rows rows;
    Names names;  // ID and title of each document, if scores are explained

    // What only the partition needs again, to rank its documents by the seeds of all: it is not sent.
    std::vector<std::pair<i64, i64>> terms;  // number of each, and f(t, q)
    std::vector<u64> matches;                // a bit of each document, set if it contains a term

    // Check seeds, which may come from another process, before they are used with those of `first`.
    void check(i64 wanted, const Seeds& first) const {
        size_t best = documents.size(), n = latent.size(), terms = first.half.size();
        require(half.size() == terms && term_weights.size() == terms, "parts: not a weight of each term");
        bool fits = steps.size() == best && ordinals.size() == best && impacts.size() == best * terms;
        require(fits && n == std::min(best, size_t(wanted)), "parts: lengths differ");
        fits = features.starts.size() == n + 1 && features.scalars.size() == 3 * n;
        require(fits, "parts: not the features of each seed");
        rows.check(n);
        require(names.size() == (first.names.empty() ? 0 : best), "parts: not a name of each document");
        require_offsets(features.starts, i64(features.entries.size()), "parts: starts");
        require(best == 0 || steps[0] > 0, "parts: the first document scores 0");
    }
};

// Terms of E that centre the features, and the value of one step of the sums.
struct Centre {
    f32 scale, mean, mean_square;
    double step;
};

// Shares of E, T, L (in steps) and X; divided by their lengths if parts are scaled.
struct Factors {
    f32 expansion, coverage, latent, lexical;
};

// The seeds of all partitions and what weighs them.
struct MergedSeeds {
    Array<i64> steps;
    Table<f32> impacts;  // of the terms of the query in the best documents, of which the first are seeds
    Array<f32> term_weights, half;
    Table<i32> near;  // places of the neighbours of the seeds among the best, -1 for others
    Table<u8> levels;
    const Features* features;  // of the seeds
    Array<i32> latent;
    double share, step;
    f32 angle;
};

struct WeighedSeeds {
    double alpha;
    std::vector<f32> weights;
    Centre centre;
    Factors factors;
    std::vector<u32> features;  // of seeds with a weight, and the sum of each that is not 0
    std::vector<i16> sums;
};

// The seeds of all partitions, as one of them needs them: see `SharedSeeds`.
struct SharedSeeds {
    i64 first = 0, best = 0, seeds = 0;
    Centre centre{};
    Factors factors{};
    std::vector<u32> features;  // of the seeds, and the sum of each
    std::vector<i16> sums;
    std::vector<i64> near;  // ordinals of documents in the rows of the seeds, and E of each by these rows
    std::vector<f32> estimates;
    std::vector<i64> remote;   // ordinals of the best documents of other partitions, ascending
    std::vector<f32> impacts;  // of the terms of the query in these
    // For explanations: α(q), the weights of all seeds, their features, rows and names, and the
    // names of the remote documents.
    double alpha = 0;
    std::vector<f32> weights;
    Features seed_features;
    Rows rows;
    Names names, remote_names;
};

// One search: the same functions, compiled for several instruction sets.
class Searcher {
  public:
    virtual ~Searcher() = default;
    virtual Hits bm25(Array<QueryTerm> query, const Request& request) = 0;
    virtual Hits score(Array<QueryTerm> query, const Request& request, const Params& params, const Depths& depths) = 0;
    virtual Seeds seeds(Array<QueryTerm> query, const Params& params, i64 least) = 0;
    virtual Hits score_shared(Array<QueryTerm> query, const Request& request, const Params& params,
                              const Depths& depths, const SharedSeeds& shared, const Seeds* local) = 0;
    virtual Details explain(Array<QueryTerm> query, Array<i32> documents, Array<u8> exact, const Params& params,
                            const SharedSeeds* shared) = 0;
};

}  // namespace klsa
