// Bindings of offsets.hpp and passages.hpp: snippets of texts.
#include <cstring>
#include <optional>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include "arrays.hpp"
#include "bindings.hpp"
#include "forward_codes.hpp"
#include "passages.hpp"

namespace klsa {
namespace {

// The tables with the arrays that hold them.
class Characters {
  public:
    Characters(Array1<const u8> classes, Array1<const u32> changed, Array1<const i32> starts, Array1<const u32> forms)
        : classes_(classes), changed_(changed), starts_(starts), forms_(forms) {
        require(length(starts) == length(changed) + 1, "starts: give the start of each form, and the end of the last");
        require_offsets(starts.data(), length(starts), length(forms), "starts");
    }

    CharacterTables tables() const {
        return {{classes_.data(), classes_.shape(0)},
                {changed_.data(), changed_.shape(0)},
                {starts_.data(), starts_.shape(0)},
                {forms_.data(), forms_.shape(0)}};
    }

    Array1<const u8> classes_;
    Array1<const u32> changed_;
    Array1<const i32> starts_;
    Array1<const u32> forms_;
};

using Points = Array1<const u32>;

Line line_of(const Points& points) {
    return {points.data(), points.shape(0)};
}

std::optional<std::pair<Owned<i32>, Owned<i32>>> locate_words(Points line, const Characters& characters,
                                                              Array1<const i32> wanted) {
    WordOffsets places;
    if (!WordLocator(characters.tables()).locate(line_of(line), {wanted.data(), wanted.shape(0)}, places)) return {};
    return std::pair(owned(std::move(places.starts)), owned(std::move(places.ends)));
}

struct PointReader {
    Line line;
    size_t at = 0;
    bool has_more() const { return at < line.size(); }
    size_t left() const { return line.size() - at; }
    u32 read() { return line[at++]; }
};

Owned<u32> fold_text(Points text, const Characters& characters) {
    std::vector<u32> line;
    require(fold(PointReader{line_of(text)}, characters.tables(), line), "characters: the text is not ASCII");
    return owned(std::move(line));
}

// Append a passage of a line to a text by `append`, with "…" at cut ends.
template <class Append>
void cut_out(Line line, Window window, i64 length, Append append) {
    const Span span = passage_span(line, window, length);
    if (span.is_cut_before) append(ELLIPSIS);
    for (i64 i = span.start; i < span.end; i++) append(line[i]);
    if (span.is_cut_after) append(ELLIPSIS);
}

void require_length(i64 passage_length) {
    require(passage_length > 0 && passage_length <= std::numeric_limits<i32>::max(), "length: is not positive");
}

Owned<u32> best_passage(Points line, Array1<const i32> terms, Array1<const i32> starts, Array1<const i32> ends,
                        Array1<const f64> weights, i64 passage_length) {
    require(length(terms) == length(starts) && length(starts) == length(ends),
            "terms, starts and ends: their lengths differ");
    require_between(terms.data(), length(terms), 0, length(weights), "terms");
    require_between(starts.data(), length(starts), 0, length(line) + 1, "starts");
    require_between(ends.data(), length(ends), 0, length(line) + 1, "ends");
    bool ascend = true;
    for (i64 i = 0; i < length(starts); i++)
        ascend &= starts(i) <= ends(i) && (i == 0 || (starts(i - 1) <= starts(i) && ends(i - 1) <= ends(i)));
    require(ascend, "starts and ends: they do not ascend");
    require_length(passage_length);
    const WordOffsets places{{starts.data(), starts.data() + length(starts)},
                             {ends.data(), ends.data() + length(ends)}};
    const Window window =
        best_window({terms.data(), terms.shape(0)}, places, {weights.data(), weights.shape(0)}, passage_length);
    std::vector<u32> passage;
    cut_out(line_of(line), window, passage_length, [&](u32 point) { passage.push_back(point); });
    return owned(std::move(passage));
}

// Selects passages of stored documents by their forward index, without analysing a text.
class PassageFinder {
  public:
    // The sizes of ID, title and metadata, each in four bytes, begin a record.
    static constexpr i64 HEAD = 12;

    PassageFinder(Array1<const u8> records, Array1<const i64> starts, Array1<const u8> codes,
                  Array1<const i64> code_starts, i64 parts)
        : records_(records), starts_(starts), codes_(codes), code_starts_(code_starts), parts_(parts) {
        require(length(starts) > 0 && length(starts) == length(code_starts),
                "starts and code_starts: they have different numbers of documents");
    }

    // Return the passages in UTF-8, each followed by a zero, and the ordinals of the documents whose
    // words cannot be located, with an empty passage; none if the tables of characters end at ASCII
    // and a text does not.
    std::optional<std::pair<nb::bytes, std::vector<i64>>> passages(Array1<const i64> documents, Array1<const i64> codes,
                                                                   Array1<const f64> weights, i64 passage_length,
                                                                   const Characters& characters) const {
        require_between(documents.data(), length(documents), 0, length(starts_) - 1, "documents");
        require(length(codes) == length(weights), "codes and weights: their lengths differ");
        require_length(passage_length);
        std::string out;
        std::vector<i64> skipped;
        bool is_complete;
        {
            nb::gil_scoped_release release;
            const CodeTable table({codes.data(), codes.shape(0)});
            is_complete = find({documents.data(), documents.shape(0)}, table, {weights.data(), weights.shape(0)},
                               passage_length, characters.tables(), out, skipped);
        }
        if (!is_complete) return {};
        return std::pair(nb::bytes(out.data(), out.size()), std::move(skipped));
    }

  private:
    bool find(std::span<const i64> documents, const CodeTable& table, std::span<const f64> weights, i64 passage_length,
              const CharacterTables& characters, std::string& out, std::vector<i64>& skipped) const {
        std::vector<u32> line;
        Occurrences found;
        WordOffsets places;
        WordLocator locator(characters);
        auto append = [&](u32 point) { append_utf8(out, point); };
        for (size_t i = 0; i < documents.size(); i++) {
            const auto [begin, end] = text_of(documents[i]);
            const Utf8Reader text{{records_.data() + begin, size_t(end - begin)}};
            if (!fold(text, characters, line)) return false;
            if (i64(line.size()) <= passage_length) {
                for (const u32 point : line) append(point);
            } else {
                find_words(codes_of(documents[i]), parts_, table, found);
                if (locator.locate(line, found.positions, places))
                    cut_out(line, best_window(found.terms, places, weights, passage_length), passage_length, append);
                else
                    skipped.push_back(i64(i));
            }
            out.push_back('\0');
        }
        return true;
    }

    // Return the bounds of the text of a document; both 0 if its record is damaged.
    std::pair<i64, i64> text_of(i64 document) const {
        const i64 begin = starts_(document), end = starts_(document + 1);
        if (begin < 0 || end < begin || end > length(records_) || end - begin < HEAD) return {0, 0};
        i64 text = begin + HEAD;
        for (int i = 0; i < 3; i++) {
            u32 size;
            std::memcpy(&size, records_.data() + begin + 4 * i, 4);
            text += size;
        }
        return text <= end ? std::pair(text, end) : std::pair<i64, i64>(0, 0);
    }

    CodeReader codes_of(i64 document) const {
        const i64 size = length(codes_);
        return {codes_.data(), std::clamp<i64>(code_starts_(document), 0, size),
                std::clamp<i64>(code_starts_(document + 1), 0, size)};
    }

    Array1<const u8> records_;
    Array1<const i64> starts_;
    Array1<const u8> codes_;
    Array1<const i64> code_starts_;
    i64 parts_;
};

}  // namespace

void bind_snippets(nb::module_& module) {
    nb::class_<Characters>(module, "Characters")
        .def(nb::init<Array1<const u8>, Points, Array1<const i32>, Points>(), exact("classes"), exact("changed"),
             exact("starts"), exact("forms"))
        .def_prop_ro("classes", [](const Characters& of) { return Owned<const u8>(of.classes_); })
        .def_prop_ro("changed", [](const Characters& of) { return Owned<const u32>(of.changed_); })
        .def_prop_ro("starts", [](const Characters& of) { return Owned<const i32>(of.starts_); })
        .def_prop_ro("forms", [](const Characters& of) { return Owned<const u32>(of.forms_); });
    module.def("locate_words", &locate_words, exact("line"), nb::arg("characters"), exact("wanted"));
    module.def("fold_text", &fold_text, exact("text"), nb::arg("characters"));
    module.def("best_passage", &best_passage, exact("line"), exact("terms"), exact("starts"), exact("ends"),
               exact("weights"), nb::arg("length"));
    nb::class_<PassageFinder>(module, "PassageFinder")
        .def(nb::init<Array1<const u8>, Array1<const i64>, Array1<const u8>, Array1<const i64>, i64>(),
             exact("records"), exact("starts"), exact("codes"), exact("code_starts"), nb::arg("parts"))
        .def("passages", &PassageFinder::passages, exact("documents"), exact("codes"), exact("weights"),
             nb::arg("length"), nb::arg("characters"));
}

}  // namespace klsa
