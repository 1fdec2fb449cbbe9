// Bindings of forward_codes.hpp.
#include "forward_codes.hpp"

#include <nanobind/stl/tuple.h>

#include "arrays.hpp"
#include "bindings.hpp"
#include "document_bytes.hpp"

namespace klsa {
namespace {

// Reads the words of documents.
class ForwardCodes {
  public:
    using Documents = Array1<const i64>;

    ForwardCodes(const DocumentBytes& codes, i64 parts) : codes_(codes), parts_(parts) {
        require(parts > 0, "parts: a document has at least one");
    }

    CodeReader reader(i64 document) const { return CodeReader(codes_.of(document)); }

    auto counts(Documents documents, Array1<const i32> terms, Array1<const i64> weights) const {
        check(documents);
        check_weights(weights);
        std::vector<i32> out_terms;
        std::vector<f32> out_counts;
        std::vector<i64> sizes(length(documents), 0);
        std::vector<i64> part_ends(parts_);
        std::vector<std::pair<i32, i64>> words;  // term, weight of its part
        for (i64 i = 0; i < length(documents); i++) {
            words.clear();
            for_each_term(reader(documents(i)), part_ends, [&](i64 code, size_t part) {
                const i64 rank = rank_of_code(code);
                if (rank < length(terms) && weights(part) > 0) words.emplace_back(terms(rank), weights(part));
            });
            std::sort(words.begin(), words.end());
            for (size_t first = 0; first < words.size();) {
                i64 total = 0;
                const i32 term = words[first].first;
                for (; first < words.size() && words[first].first == term; first++) total += words[first].second;
                out_terms.push_back(term);
                out_counts.push_back(f32(total));
                sizes[i]++;
            }
        }
        return std::tuple(std::move(out_terms), std::move(out_counts), std::move(sizes));
    }

    auto count_term(Documents documents, i64 code, Array1<const i64> weights) const {
        check(documents);
        check_weights(weights);
        std::vector<i64> counts(length(documents), 0);
        std::vector<i64> part_ends(parts_);
        for (i64 i = 0; i < length(documents); i++)
            for_each_term(reader(documents(i)), part_ends,
                          [&](i64 other, size_t part) { counts[i] += other == code ? weights(part) : 0; });
        return counts;
    }

    auto count_parts(Documents documents, i64 code) const {
        check(documents);
        std::vector<i64> counts(length(documents) * parts_, 0);
        std::vector<i64> part_ends(parts_);
        for (i64 i = 0; i < length(documents); i++)
            klsa::count_parts(reader(documents(i)), part_ends, code, std::span(counts).subspan(i * parts_, parts_));
        return counts;
    }

    auto find_phrase(Documents documents, Array1<const i64> codes, i64 part, i64 stops) const {
        check(documents);
        require(length(codes) > 0, "codes: a phrase has at least one word");
        require(part < parts_, "part: documents have fewer");
        const Phrase phrase(span_of(codes), checked_stops(stops));
        Flags matches{std::vector<u8>(length(documents), 0)};
        std::vector<i64> part_ends(parts_);
        for (i64 i = 0; i < length(documents); i++)
            matches.values[i] = has_phrase(reader(documents(i)), part_ends, phrase, part);
        return matches;
    }

    auto count_phrase(Documents documents, Array1<const i64> codes, Array1<const i64> weights, i64 stops) const {
        check(documents);
        require(length(codes) > 0, "codes: a phrase has at least one word");
        check_weights(weights);
        const Phrase phrase(span_of(codes), checked_stops(stops));
        std::vector<i64> counts(length(documents), 0);
        std::vector<i64> part_ends(parts_);
        for (i64 i = 0; i < length(documents); i++)
            for_each_phrase(reader(documents(i)), part_ends, phrase, [&](i64 part) {
                counts[i] += weights(part);
                return true;
            });
        return counts;
    }

    auto count_following(Documents documents, Array1<const i64> codes, i64 ranks) const {
        check(documents);
        require(length(codes) > 0, "codes: a phrase has at least one word");
        std::vector<i32> counts(ranks, 0);
        const Phrase phrase(span_of(codes), Stops::ALIKE);
        std::vector<i64> part_ends(parts_), last(ranks, -1);  // the last document counted
        for (i64 i = 0; i < length(documents); i++)
            for_each_following(reader(documents(i)), part_ends, phrase, [&](i64 rank) {
                if (rank < ranks && last[rank] != i) last[rank] = i, counts[rank]++;
            });
        return counts;
    }

    auto find_words(i64 document, Array1<const i64> codes) const {
        require(0 <= document && document < codes_.size(), "document: is outside of the index");
        Occurrences found;
        klsa::find_words(reader(document), parts_, CodeTable(span_of(codes)), found);
        return std::tuple(std::move(found.positions), std::move(found.terms));
    }

  private:
    static Stops checked_stops(i64 stops) {
        require(0 <= stops && stops <= 2, "stops: is 0, 1 or 2");
        return Stops(stops);
    }

    void check_weights(const Array1<const i64>& weights) const {
        require(length(weights) == parts_, "weights: their number is not that of the parts");
        require_between(weights, 0, i64(1) << 31, "weights");
    }

    void check(const Documents& documents) const { require_between(documents, 0, codes_.size(), "documents"); }

    DocumentBytes codes_;
    i64 parts_;
};

auto encode_documents(Array1<const i32> words, Array1<const i32> lengths, Array1<const i32> ranks, i64 documents) {
    require(documents >= 0 && length(lengths) % std::max<i64>(documents, 1) == 0,
            "lengths: documents have different numbers of parts");
    i64 total = 0;
    for (i64 i = 0; i < length(lengths); i++) {
        require(lengths(i) >= 0, "lengths: a part has fewer than no words");
        total += lengths(i);
    }
    require(documents == 0 || total == length(words), "words: their number is not the sum of the lengths");
    require_between(words, std::numeric_limits<i32>::min(), length(ranks), "words");
    std::vector<i64> sizes(documents, 0);
    std::vector<u8> codes(MAX_CODE_BYTES * (length(words) + length(lengths)));
    codes.resize(write_documents(span_of(words), span_of(lengths), span_of(ranks), codes.data(), sizes));
    return std::tuple(std::move(codes), std::move(sizes));
}

}  // namespace

void bind_forward(nb::module_& module) {
    nb::class_<ForwardCodes>(module, "ForwardCodes", R"(
        Reads the words of documents from the forward index; `storage.forward_index` has its codes.

        codes   of all documents
        parts   number of parts of a document: title, other searched fields, text

        `documents` are document numbers, `codes` of words those of the forward index, or -2 for a word
        without a term. Methods that read take 3 ns a word.
    )")
        .def(nb::init<const DocumentBytes&, i64>(), nb::arg("codes"), nb::arg("parts"))
        .def("counts", without_gil(&ForwardCodes::counts), nb::arg("documents"), nb::arg("terms"), nb::arg("weights"),
             R"(
            Return terms, counts and the number of terms of each document, terms ascending.

            terms    (V,) the term of each rank
            weights  (parts,) how often a word of each part counts
            Cost: 30 ns a word.
        )")
        .def("count_term", without_gil(&ForwardCodes::count_term), nb::arg("documents"), nb::arg("code"),
             nb::arg("weights"), "Return how often each document has a term, by the weights of its parts.")
        .def("count_parts", without_gil(&ForwardCodes::count_parts), nb::arg("documents"), nb::arg("code"), R"(
            Return how often each part of each document has a term: (d · parts,), by document.

            In the text, the last part, only if another part has it.
        )")
        .def("find_phrase", without_gil(&ForwardCodes::find_phrase), nb::arg("documents"), nb::arg("codes"),
             nb::arg("part"), nb::arg("stops"), R"(
            Return which documents have words in sequence in a part; in any if it is negative.

            stops  0 if all words without a term match each other, 1 if stop words match the same word,
                   2 if also in capitals or not
        )")
        .def("count_phrase", without_gil(&ForwardCodes::count_phrase), nb::arg("documents"), nb::arg("codes"),
             nb::arg("weights"), nb::arg("stops"), R"(
            Return how often documents have words in sequence, by the weights of their parts.

            stops  as in `find_phrase`
        )")
        .def("count_following", without_gil(&ForwardCodes::count_following), nb::arg("documents"), nb::arg("codes"),
             nb::arg("ranks"), R"(
            Return, by rank of a term, in how many documents it follows words in sequence.

            All words without a term match each other.

            ranks  number of terms
        )")
        .def("find_words", without_gil(&ForwardCodes::find_words), nb::arg("document"), nb::arg("codes"), R"(
            Return the positions of words in the text of a document, and which of `codes` each is.

            Positions ascend; words without a term are counted.
        )");
    module.def("encode_documents", without_gil(&encode_documents), nb::arg("words"), nb::arg("lengths"),
               nb::arg("ranks"), nb::arg("documents"), R"(
        Return the codes of the forward index of documents of equally many parts, and their sizes.

        words      terms of all words, negative for a word without a term
        lengths    words of each part of each document
        ranks      (V,) rank of each term, the most frequent first
        Cost: 3 ns a word.
    )");
}

}  // namespace klsa
