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
        require(length(weights) == parts_, "weights: their number is not that of the parts");
        require_between(weights.data(), parts_, 0, i64(1) << 31, "weights");
        std::vector<i32> out_terms;
        std::vector<f32> out_counts;
        std::vector<i64> sizes(length(documents), 0);
        {
            WithoutGil released;
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
        }
        return std::tuple(owned(std::move(out_terms)), owned(std::move(out_counts)), owned(std::move(sizes)));
    }

    auto count_term(Documents documents, i64 code, Array1<const i64> weights) const {
        check(documents);
        require(length(weights) == parts_, "weights: their number is not that of the parts");
        require_between(weights.data(), parts_, 0, i64(1) << 31, "weights");
        std::vector<i64> counts(length(documents), 0);
        {
            WithoutGil released;
            std::vector<i64> part_ends(parts_);
            for (i64 i = 0; i < length(documents); i++)
                for_each_term(reader(documents(i)), part_ends,
                              [&](i64 other, size_t part) { counts[i] += other == code ? weights(part) : 0; });
        }
        return owned(std::move(counts));
    }

    auto count_parts(Documents documents, i64 code) const {
        check(documents);
        std::vector<i64> counts(length(documents) * parts_, 0);
        {
            WithoutGil released;
            std::vector<i64> part_ends(parts_);
            for (i64 i = 0; i < length(documents); i++)
                klsa::count_parts(reader(documents(i)), part_ends, code, std::span(counts).subspan(i * parts_, parts_));
        }
        return owned(std::move(counts));
    }

    auto find_phrase(Documents documents, Array1<const i64> codes, i64 part, i64 stops) const {
        check(documents);
        require(length(codes) > 0, "codes: a phrase has at least one word");
        require(part < parts_, "part: documents have fewer");
        const Phrase phrase({codes.data(), codes.shape(0)}, checked_stops(stops));
        std::vector<u8> matches(length(documents), 0);
        {
            WithoutGil released;
            std::vector<i64> part_ends(parts_);
            for (i64 i = 0; i < length(documents); i++)
                matches[i] = has_phrase(reader(documents(i)), part_ends, phrase, part);
        }
        return owned<bool>(std::move(matches));
    }

    auto count_phrase(Documents documents, Array1<const i64> codes, Array1<const i64> weights, i64 stops) const {
        check(documents);
        require(length(codes) > 0, "codes: a phrase has at least one word");
        require(length(weights) == parts_, "weights: their number is not that of the parts");
        require_between(weights.data(), parts_, 0, i64(1) << 31, "weights");
        const Phrase phrase({codes.data(), codes.shape(0)}, checked_stops(stops));
        std::vector<i64> counts(length(documents), 0);
        {
            WithoutGil released;
            std::vector<i64> part_ends(parts_);
            for (i64 i = 0; i < length(documents); i++)
                for_each_phrase(reader(documents(i)), part_ends, phrase, [&](i64 part) {
                    counts[i] += weights(part);
                    return true;
                });
        }
        return owned(std::move(counts));
    }

    auto count_following(Documents documents, Array1<const i64> codes, i64 ranks) const {
        check(documents);
        require(length(codes) > 0, "codes: a phrase has at least one word");
        std::vector<i32> counts(ranks, 0);
        {
            WithoutGil released;
            const Phrase phrase({codes.data(), codes.shape(0)}, Stops::ALIKE);
            std::vector<i64> part_ends(parts_), last(ranks, -1);  // the last document counted
            for (i64 i = 0; i < length(documents); i++)
                for_each_following(reader(documents(i)), part_ends, phrase, [&](i64 rank) {
                    if (rank < ranks && last[rank] != i) last[rank] = i, counts[rank]++;
                });
        }
        return owned(std::move(counts));
    }

    auto find_words(i64 document, Array1<const i64> codes) const {
        require(0 <= document && document < codes_.size(), "document: is outside of the index");
        Occurrences found;
        klsa::find_words(reader(document), parts_, CodeTable({codes.data(), codes.shape(0)}), found);
        return std::pair(owned(std::move(found.positions)), owned(std::move(found.terms)));
    }

  private:
    static Stops checked_stops(i64 stops) {
        require(0 <= stops && stops <= 2, "stops: is 0, 1 or 2");
        return Stops(stops);
    }

    void check(const Documents& documents) const {
        require_between(documents.data(), length(documents), 0, codes_.size(), "documents");
    }

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
    require_between(words.data(), length(words), std::numeric_limits<i32>::min(), length(ranks), "words");
    std::vector<i64> sizes(documents, 0);
    std::vector<u8> codes(MAX_CODE_BYTES * (length(words) + length(lengths)));
    {
        WithoutGil released;
        codes.resize(write_documents({words.data(), words.shape(0)}, {lengths.data(), lengths.shape(0)},
                                     {ranks.data(), ranks.shape(0)}, codes.data(), sizes));
    }
    return std::pair(owned(std::move(codes)), owned(std::move(sizes)));
}

}  // namespace

void bind_forward(nb::module_& module) {
    nb::class_<ForwardCodes>(module, "ForwardCodes")
        .def(nb::init<const DocumentBytes&, i64>(), nb::arg("codes"), nb::arg("parts"))
        .def("counts", &ForwardCodes::counts, exact("documents"), exact("terms"), exact("weights"))
        .def("count_term", &ForwardCodes::count_term, exact("documents"), nb::arg("code"), exact("weights"))
        .def("count_parts", &ForwardCodes::count_parts, exact("documents"), nb::arg("code"))
        .def("find_phrase", &ForwardCodes::find_phrase, exact("documents"), exact("codes"), nb::arg("part"),
             nb::arg("stops"))
        .def("count_phrase", &ForwardCodes::count_phrase, exact("documents"), exact("codes"), exact("weights"),
             nb::arg("stops"))
        .def("count_following", &ForwardCodes::count_following, exact("documents"), exact("codes"), nb::arg("ranks"))
        .def("find_words", &ForwardCodes::find_words, nb::arg("document"), exact("codes"));
    module.def("encode_documents", &encode_documents, exact("words"), exact("lengths"), exact("ranks"),
               nb::arg("documents"));
}

}  // namespace klsa
