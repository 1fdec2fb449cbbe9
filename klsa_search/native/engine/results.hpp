// What a search is asked and what it returns.
#pragma once

#include <vector>

#include "index.hpp"

namespace klsa {

// A distinct term of a query that documents contain.
struct QueryTerm {
    i64 number, count;  // f(t, q)
};

// k best documents of a query.
struct Request {
    i64 k = 0;
    Mask mask;               // of documents that may be returned
    bool is_masked = false;  // whether this is more than the live documents
    bool totals = false;     // whether to count the documents that match
};

// Which parts of a score are not estimates, one bit each.
enum Exact : u8 { EXPANSION_EXACT = 1, COVERAGE_EXACT = 2, LEXICAL_EXACT = 4 };

struct Hits {
    std::vector<i32> documents;
    std::vector<f32> scores;
    std::vector<u8> exact;  // see `Exact`; empty for BM25
    i64 total = 0;
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
    std::vector<i32> lenders;                     // (n, neighbours) documents; -1 for none, -2 - i elsewhere
    std::vector<f32> lent;                        // (n, neighbours, terms) in steps
};

// The features of some documents: see `DocFeatures`.
struct Features {
    std::vector<i64> starts{0};
    std::vector<u32> entries;
    std::vector<f32> scalars;  // (documents, 3)
};

// Rows of D of some documents, with their entries in all partitions: see `SeedRows`.
struct Rows {
    std::vector<i64> documents;  // (documents, width), by ordinals
    std::vector<u8> levels;
    std::vector<f32> steps;  // (documents, 2)
};

// The best documents of one partition, of which the first may be seeds: see `LocalSeeds`.
struct Seeds {
    std::vector<i32> documents;
    std::vector<i64> ordinals;
    std::vector<i64> steps;
    std::vector<i32> latent;              // of the first `Params::seeds`
    std::vector<f32> impacts;             // (documents, terms)
    std::vector<f32> term_weights, half;  // of the terms: see `QueryImpacts`
    double share = 0;                     // of the query in the first document
    f32 angle = 0;                        // one step of a cosine
    Features features;                    // of the first `Params::seeds`, and their rows
    Rows rows;
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

// The seeds of all partitions and what weighs them: see `MergedSeeds` in Python.
struct MergedSeeds {
    Array<i64> steps;
    Table<f32> impacts;  // of the terms of the query in the best documents, of which the first are seeds
    Array<f32> term_weights, half;
    Table<i32> near;  // places of the neighbours of the seeds among the best, -1 for others
    Table<u8> levels;
    Array<i64> starts;  // of the features of the seeds
    Array<u32> entries;
    Table<f32> scalars;
    Array<i32> latent;
    double share, step;
    f32 angle;
};

struct WeighedSeeds {
    double alpha;
    std::vector<f32> weights;
    Centre centre;
    Factors factors;
    std::vector<u32> features;  // of seeds with a weight, ascending, and the sum of each
    std::vector<i16> sums;
};

// The seeds of all partitions, as one of them needs them: see `SharedSeeds`.
struct SharedSeeds {
    i64 first, best, seeds;
    Centre centre;
    Factors factors;
    Array<u32> features;  // of the seeds, and the sum of each
    Array<i16> sums;
    Array<i32> near;  // documents in the rows of the seeds, and E of each by these rows
    Array<f32> estimates;
    Array<u32> remote;   // ordinals of the best documents of other partitions, ascending
    Table<f32> impacts;  // of the terms of the query in these
    // For explanations: α(q), the weights of all seeds, and their features.
    double alpha;
    Array<f32> weights;
    Array<i64> starts;
    Array<u32> entries;
    Table<f32> scalars;
};

// One search: the same functions, compiled for several instruction sets.
class Searcher {
  public:
    virtual ~Searcher() = default;
    virtual Hits bm25(Array<QueryTerm> query, const Request& request) = 0;
    virtual Hits score(Array<QueryTerm> query, const Request& request, const Params& params, const Depths& depths) = 0;
    virtual Seeds seeds(Array<QueryTerm> query, const Params& params) = 0;
    virtual Hits score_shared(Array<QueryTerm> query, const Request& request, const Params& params,
                              const Depths& depths, const SharedSeeds& shared) = 0;
    virtual Details explain(Array<QueryTerm> query, Array<i32> documents, Array<u8> exact, const Params& params,
                            const SharedSeeds* shared) = 0;
};

}  // namespace klsa
