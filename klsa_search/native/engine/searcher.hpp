// The functions of the engine of one instruction set that bindings call.
//
// Included once for each instruction set: see `for_each_instruction_set.hpp`.

namespace klsa::KLSA_NS {

std::unique_ptr<Searcher> make_searcher(const Postings& postings, const Model* model, const ReverseRows* reverse,
                                        Buffers& buffers);
WeighedSeeds weigh_merged(const MergedSeeds& merged, const Params& params, Buffers& buffers);

}  // namespace klsa::KLSA_NS
