// The state of one search, whose steps are in the headers after this one.
//
// Included once for each instruction set: see `for_each_instruction_set.hpp`.

namespace klsa::KLSA_NS {

// Last slots of the seeds, the best, the matches of BM25, and all candidates.
struct Ranges {
    i64 stride;  // of `impacts`
    i64 best, seeds, matched, size;
};

// A seed with its features, of which `scalars` are as those of `Model`.
struct SeedFeatures {
    Array<u32> entries;
    const f32* scalars;
    f32 weight;
};

// What a search knows before it scores candidates.
struct Prepared {
    Ranges ranges{};
    Factors factors{};
    Centre centre{};
    double alpha = 0;
    f32 first = 0;  // k_q of the first seed, in steps; 0 if there is none
};

class State final : public Searcher {
  public:
    State(const Postings& postings, const Model* model, const ReverseRows* reverse, Buffers& buffers)
        : p(postings),
          model_(model),
          reverse_(reverse),
          b(buffers),
          columns_(postings.blocks + i64(postings.segments.size())) {}

    Hits bm25(Array<QueryTerm> query, const Request& request) override;
    Hits score(Array<QueryTerm> query, const Request& request, const Params& params, const Depths& depths) override;
    Seeds seeds(Array<QueryTerm> query, const Params& params, i64 least) override;
    Hits score_shared(Array<QueryTerm> query, const Request& request, const Params& params, const Depths& depths,
                      const SharedSeeds& shared, const Seeds* local) override;
    Details explain(Array<QueryTerm> query, Array<i32> documents, Array<u8> exact, const Params& params,
                    const SharedSeeds* shared) override;

  private:
    const Postings& p;
    const Model* model_;
    const ReverseRows* reverse_;
    Buffers& b;
    i64 columns_;  // of `posting_offsets`

    bool is_masked_ = false, totals_ = false;
    Array<QueryTerm> query{};  // distinct terms in the order of the query, during a search
    i64 terms = 0;             // their number
    i64 least_ = 0;            // score in steps below which documents are not collected
    bool has_remote_ = false;

    // terms.hpp
    void load_query(Array<QueryTerm> wanted, i64 matched);
    i64 initial_threshold(i64 k);
    void seek_segment(const Segment& segment, i64 column);
    i64 seek_block(const Segment& segment, i64 block, i64 column);
    struct Optional {
        i64 count = 0, slack = 0, skipped = 0;
    };
    Optional optional_terms(i64 threshold, i64 k);
    i64* offsets(i64 term) { return b.posting_offsets.data() + term * columns_; }

    // top_k.hpp
    struct Collected {
        i64 k, filled, threshold_key;  // larger keys pass
        i64 threshold() const { return threshold_key >> 32; }
    };
    i64 best_keys(const Mask& mask, i64 k);
    i64 collect_keys(const Mask& mask, i64 k, i64 margin, bool& guessed);
    void collect(i64 score, i64 document, Collected& c);
    void collect_postings(const u32* entries, i64 first, i64 after, Collected& c);
    struct Groups {
        i64 size, count;  // scores of a group, 16 apart, and groups
    };
    void collect_block(Groups groups, const u32* entries, const Optional& optional, i64 first, i64 after, Collected& c);
    void cut_keys(Collected& c);
    i64 add_terms(i64 begin, i64 end, const u32* entries);
    void apply_mask(const Mask& mask, i64 first, i64 span);
    void mark(i64 document, u64 bits);
    void mark_postings(i64 count, const u32* entries, i64 first);
    void count_matches(const Request& request, i64 slots, Hits& hits);
    Groups group_scores(i64 span, i64 target);
    i64 reached_by(Groups groups, i64 threshold, i64 bound, i64 target);

    // impacts.hpp
    i64 posting_count(i64 term);
    i64 term_impact(i64 term, i64 document);
    i64 reserve_impacts(i64 best, i64 others);
    i64 load_impacts(const Seeds& local, i64 best, i64 others);
    i64 look_up_impacts(i64 best, i64 others);
    template <class Visit>
    void scan_postings(i64 term, Visit visit);
    i64 look_up_keys(const Mask& mask, i64 limit);

    // candidates.hpp
    void score_alone(i64 stride, i64 first, i64 after);
    void score_coverage(i64 stride, i64 best, const i32* list, i64 count, f32* out);
    i64 find_near(i64 document, i64 best, i64 neighbours, u32& levels);
    i64 find_remote_neighbours(i64 document, i64 best, i64 neighbours, u32& levels);
    i64 remote_slot(u32 ordinal, i64 best);
    void fetch_features(i64 document);
    void fetch_vector(i64 document);
    f32 project_query();
    i32 latent_score(i64 document);
    f32 expansion_score(i64 document, const Centre& centre);
    f32 clip(f32 value, const Params& params) { return params.unit_length ? std::max(value, f32(0)) : value; }

    // seeds.hpp
    f32 assign_slots(i64 count, i64 best, i64 seeds, i64 first);
    i64 filtered_keys(const Mask& mask, const Depths& depths);
    i64 assign_filtered(i64 count, i64 extra, f32 top);
    void fetch_seeds(i64 seeds, i64 count);
    void weigh_seeds(const Params& params, i64 stride, i64 seeds, f32 top);
    i64 add_row(const u32* row, i64 width, f32 step, i64 size);
    i64 add_rows(const Params& params, i64 seeds, i64 size);
    i64 add_near(const SharedSeeds& shared, i64 size);
    void load_remote(const SharedSeeds& shared, i64 stride, i64 best);
    double matched_share(i64 stride);
    void release_slots(i64 size);

    // scores.hpp
    void score_all(const Params& params, const Ranges& r, const Factors& f);
    void exclude_masked(const Mask& mask, i64 size);
    i64 score_threshold(i32* bits, i64 count, i64 target);
    i64 select_slots(i64 size, i64 target);
    i64 select_chosen(i64 count, i64 target);
    i64 drop_excluded(i64 count);
    f32 lowest_of(i64 size, i64 target);
    void rescore_coverage(const Ranges& r, i64 chosen, i64 depth, i64 k, const Factors& f);
    i64 rescore_expansion(const Params& params, i64 seeds, i64 chosen, i64 depth, const Factors& f,
                          const Centre& centre);
    Hits write_results(i64 size, i64 matched, i64 chosen, i64 k);
    i32* score_bits() { return reinterpret_cast<i32*>(b.scores.data()); }

    // rank.hpp
    i64 find_best(Array<QueryTerm> query, const Request& request, i64 depth, const Depths& depths, i64 from_rows);
    i64 load_best(Array<QueryTerm> query, const Request& request, const Seeds& local, i64 best, i64 from_rows);
    i64 add_masked(const Request& request, const Depths& depths, i64 count, f32 top);
    Prepared prepare(Array<QueryTerm> query, const Request& request, const Params& params, const Depths& depths);
    Prepared prepare_shared(Array<QueryTerm> query, const Request& request, const Params& params, const Depths& depths,
                            const SharedSeeds& shared, const Seeds* local);
    Hits rescore(const Request& request, const Params& params, const Depths& depths, const Prepared& s);
    void clear_sums(i64 seeds);
    void clear_shared(const SharedSeeds& shared);

    // details.hpp
    std::vector<SeedFeatures> seed_features(i64 seeds, const SharedSeeds* shared);
    void explain_parts(i64 i, i64 document, const Params& params, const Prepared& s, Details& d);
    void explain_coverage(i64 i, i64 document, const Prepared& s, Details& d);
    void divide_expansion(i64 document, f32 share, const Params& params, const std::vector<SeedFeatures>& seeds,
                          f32* out);
};

}  // namespace klsa::KLSA_NS
