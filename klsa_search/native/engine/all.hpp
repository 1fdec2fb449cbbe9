// The engine for one instruction set.
// clang-format off: each needs those before it
#include "searcher.hpp"
#include "kernels.hpp"
#include "selection.hpp"
#include "state.hpp"
#include "terms.hpp"
#include "top_k.hpp"
#include "impacts.hpp"
#include "candidates.hpp"
#include "seeds.hpp"
#include "scores.hpp"
#include "rank.hpp"
#include "details.hpp"
#include "merged.hpp"
// clang-format on

namespace klsa::KLSA_NS {

std::unique_ptr<Searcher> make_searcher(const Postings& postings, const Model* model, const ReverseRows* reverse,
                                        Buffers& buffers) {
    return std::make_unique<State>(postings, model, reverse, buffers);
}

}  // namespace klsa::KLSA_NS
