// Bindings of offsets.hpp and passages.hpp: snippets of texts.
#include <cstring>
#include <optional>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include "arrays.hpp"
#include "bindings.hpp"
#include "document_bytes.hpp"
#include "forward_codes.hpp"
#include "instruction_sets.hpp"
#include "passages.hpp"
#include "texts.hpp"

namespace klsa {
namespace {

using Points = Array1<const u32>;

std::optional<std::pair<Owned<i32>, Owned<i32>>> locate_words(Points line, const Characters& characters,
                                                              Array1<const i32> wanted) {
    WordOffsets places;
    if (!WordLocator(characters.tables()).locate(Line(span_of(line)), span_of(wanted), places)) return {};
    return std::pair(owned(std::move(places.starts)), owned(std::move(places.ends)));
}

struct PointReader {
    Line line;
    size_t at = 0;
    bool has_more() const { return at < line.size(); }
    size_t left() const { return line.size() - at; }
    u32 read() { return line[at++]; }
};

auto fold_text(Points text, const Characters& characters) {
    std::vector<u32> line;
    require(fold(PointReader{span_of(text)}, characters.tables(), line), "characters: the text is not ASCII");
    return line;
}

// Append a passage of a line to a text by `append`, with "…" at cut ends.
template <class Char, class Append>
void cut_out(LineOf<Char> line, Window window, i64 length, Append append) {
    constexpr u32 CUT[] = {ELLIPSIS};
    const Span span = passage_span(line, window, length);
    if (span.is_cut_before) append(Line(CUT));
    append(line.subspan(size_t(span.start), size_t(span.end - span.start)));
    if (span.is_cut_after) append(Line(CUT));
}

void require_length(i64 passage_length) {
    require(passage_length > 0 && passage_length <= std::numeric_limits<i32>::max(), "length: is not positive");
}

auto best_passage(Points line, Array1<const i32> terms, Array1<const i32> starts, Array1<const i32> ends,
                  Array1<const f64> weights, i64 passage_length) {
    require(length(terms) == length(starts) && length(starts) == length(ends),
            "terms, starts and ends: their lengths differ");
    require_between(terms, 0, length(weights), "terms");
    require_between(starts, 0, length(line) + 1, "starts");
    require_between(ends, 0, length(line) + 1, "ends");
    bool ascend = true;
    for (i64 i = 0; i < length(starts); i++)
        ascend &= starts(i) <= ends(i) && (i == 0 || (starts(i - 1) <= starts(i) && ends(i - 1) <= ends(i)));
    require(ascend, "starts and ends: they do not ascend");
    require_length(passage_length);
    const WordOffsets places{{starts.data(), starts.data() + length(starts)},
                             {ends.data(), ends.data() + length(ends)}};
    const Window window = best_window(span_of(terms), places, span_of(weights), passage_length);
    std::vector<u32> passage;
    cut_out(Line(span_of(line)), window, passage_length,
            [&](Line points) { passage.insert(passage.end(), points.begin(), points.end()); });
    return passage;
}

// Read the first 16 cache lines of the bytes of a document ahead: most documents have fewer.
void read_ahead(std::span<const u8> bytes) {
    for (size_t at = 0; at < std::min<size_t>(bytes.size(), 16 * 64); at += 64) prefetch(bytes.data() + at);
}

// The records of documents: the sizes of ID, title, metadata and text, each in four bytes, then these.
class Records {
  public:
    static constexpr size_t HEAD = 16;

    struct Fields {
        std::span<const u8> id, title, metadata, text;
    };

    explicit Records(const DocumentBytes& records) : records_(records) {}

    i64 size() const { return records_.size(); }

    auto heads(const std::vector<i64>& documents) const {
        nb::typed<nb::list, nb::typed<nb::tuple, nb::str, nb::str, nb::str>> result;
        for (const i64 document : documents) {
            const Fields of = checked_fields(document);
            result.append(nb::make_tuple(decoded(of.id), decoded(of.title), decoded(of.metadata)));
        }
        return result;
    }

    nb::str text(i64 document) const { return decoded(checked_fields(document).text); }

    // Return the fields of a record; none if it is damaged.
    std::optional<Fields> fields(i64 document) const {
        auto rest = records_.of(document);
        if (rest.size() < HEAD) return {};
        u32 sizes[4];
        std::memcpy(sizes, rest.data(), HEAD);
        rest = rest.subspan(HEAD);
        if (u64(sizes[0]) + sizes[1] + sizes[2] + sizes[3] != rest.size()) return {};
        auto take = [&](size_t size) { return std::exchange(rest, rest.subspan(size)).first(size); };
        const auto id = take(sizes[0]), title = take(sizes[1]), metadata = take(sizes[2]);
        return Fields{id, title, metadata, rest};
    }

    void read_ahead(i64 document) const { klsa::read_ahead(records_.of(document)); }

  private:
    Fields checked_fields(i64 document) const {
        records_.check(document);
        const auto of = fields(document);
        require(of.has_value(), "a record does not fit its slot");
        return *of;
    }

    DocumentBytes records_;
};

// Selects passages of stored documents by their forward index, without analysing a text.
class PassageFinder {
  public:
    PassageFinder(const Records& records, const DocumentBytes& codes, Array1<const i32> ranks, i64 parts)
        : records_(records), codes_(codes), ranks_(ranks), parts_(parts) {
        require(records.size() == codes.size(), "records and codes: they have different numbers of documents");
        require(parts > 0, "parts: a document has at least one");
    }

    std::optional<std::tuple<nb::typed<nb::list, nb::str>, std::vector<i64>, std::vector<i64>>> passages(
        const std::vector<i64>& documents, const std::vector<i64>& terms, std::vector<f64> weights, i64 passage_length,
        const Characters& characters) const {
        require_between(documents, 0, records_.size(), "documents");
        require_between(terms, 0, length(ranks_), "terms");
        require_length(passage_length);
        weights.resize(terms.size(), 1.0);
        Page page;
        {
            WithoutGil released;
            std::vector<i64> codes;
            for (const i64 term : terms) codes.push_back(code_of_rank(ranks_(term)));
            find(documents, CodeTable(codes), weights, passage_length, characters.tables(), page);
        }
        if (!page.is_complete) return {};
        nb::typed<nb::list, nb::str> result;
        size_t begin = 0;
        for (const size_t end : page.ends) {
            result.append(decoded({reinterpret_cast<const u8*>(page.text.data()) + begin, end - begin}));
            begin = end;
        }
        return std::tuple(std::move(result), std::move(page.marked), std::move(page.skipped));
    }

  private:
    struct Page {
        std::string text;
        std::vector<size_t> ends;
        std::vector<i64> marked, skipped;
        bool is_complete = true;

        void operator()(LineOf<u8> characters) {
            text.append(reinterpret_cast<const char*>(characters.data()), characters.size());
        }
        void operator()(Line points) {
            for (const u32 point : points) append_utf8(text, point);
        }

        // End a passage; as one line, if no character may have a meaning in Markdown.
        void end_passage() {
            const size_t begin = ends.empty() ? 0 : ends.back();
            const std::span passage(reinterpret_cast<u8*>(text.data()) + begin, text.size() - begin);
            require(!std::memchr(passage.data(), 0, passage.size()), "a text contains a zero byte");
            u64 marks = 0;
            for (size_t at = 0; at < passage.size(); at += ByteBlock::SIZE) {
                const ByteBlock block(passage.subspan(at));
                for (const char mark : {'*', '#', '`', '|', '['}) marks |= block.equal_to(u8(mark));
            }
            if (marks) marked.push_back(i64(ends.size()));
            for (u8& of : passage.first(marks ? 0 : passage.size()))
                of = (of == LINE_END) | (of == PARAGRAPH_END) ? u8(BLANK) : of;
            ends.push_back(text.size());
        }
    };

    void find(const std::vector<i64>& documents, const CodeTable& table, const std::vector<f64>& weights,
              i64 passage_length, const CharacterTables& characters, Page& page) const {
        std::vector<u8> ascii;
        std::vector<u32> points;
        Occurrences found;
        WordOffsets places;
        WordLocator locator(characters);
        auto add = [&](auto& line, std::span<const u8> text, i64 document) {
            if (!fold(Utf8Reader{text}, characters, line)) return false;
            const std::span of(std::as_const(line));
            if (i64(of.size()) <= passage_length) {
                page(of);
            } else {
                find_words(codes_of(document), parts_, table, found);
                if (locator.locate(of, found.positions, places))
                    cut_out(of, best_window(found.terms, places, weights, passage_length), passage_length,
                            [&](auto cut) { page(cut); });
                else
                    page.skipped.push_back(i64(page.ends.size()));
            }
            page.end_passage();
            return true;
        };
        for (const i64 document : documents) {
            records_.read_ahead(document);
            klsa::read_ahead(codes_.of(document));
        }
        for (const i64 document : documents) {
            const auto text = records_.fields(document).value_or(Records::Fields{}).text;
            page.is_complete = add(ascii, text, document) || add(points, text, document);
            if (!page.is_complete) return;
        }
    }

    CodeReader codes_of(i64 document) const { return CodeReader(codes_.of(document)); }

    Records records_;
    DocumentBytes codes_;
    Kept<Array1<const i32>> ranks_;
    i64 parts_;
};

}  // namespace

void bind_snippets(nb::module_& module) {
    nb::class_<Characters>(module, "Characters", R"(
        Classes of the first n code points, and the forms of those that NFKC changes.

        classes  (n,) by code point; those beyond are separators
        changed  (m,) code points that change, ascending
        starts   (m + 1,) start of each form
        forms    code points of all forms
    )")
        .def(nb::init<Array1<const u8>, Points, Array1<const i32>, Points>(), nb::arg("classes"), nb::arg("changed"),
             nb::arg("starts"), nb::arg("forms"))
        .def_prop_ro("classes", [](const Characters& of) { return kept_array(of.classes_); })
        .def_prop_ro("changed", [](const Characters& of) { return kept_array(of.changed_); })
        .def_prop_ro("starts", [](const Characters& of) { return kept_array(of.starts_); })
        .def_prop_ro("forms", [](const Characters& of) { return kept_array(of.forms_); });
    module.def("locate_words", &locate_words, nb::arg("line"), nb::arg("characters"), nb::arg("wanted"), R"(
        Return start and end of some words of a line of code points, as in `Analyzer.tokens`.

        wanted  positions of words, ascending
        None for rare sequences that only `Analyzer.tokens` handles, such as a mark after a fraction.
        Cost: 3 ns a character up to the last word, 10 ns in scripts without spaces.
    )");
    module.def("fold_text", without_gil(&fold_text), nb::arg("text"), nb::arg("characters"), R"(
        Return a text with each run of blank space as one character, without those at its ends.

        It is a line feed if it contains one, a form feed if it contains several or a form feed, and
        otherwise a blank. The characters must be those of Unicode unless the text is ASCII.
    )");
    module.def("best_passage", without_gil(&best_passage), nb::arg("line"), nb::arg("terms"), nb::arg("starts"),
               nb::arg("ends"), nb::arg("weights"), nb::arg("length"), R"(
        Return the passage of a folded line around the window of tokens of highest weight.

        terms         of each token, as an index of weights
        starts, ends  of each token, ascending
        weights       of the terms; repeated ones count a tenth in a window
        length        characters of the passage, at most, without "…" at cut ends
    )");
    nb::class_<DocumentBytes>(module, "DocumentBytes", R"(
        Bytes of each document: records, or codes of the forward index.

        parts  content of consecutive documents, and (n + 1,) the start of each; one after the other
        Nothing outside of the content is read: a document whose starts are damaged has no bytes.
    )")
        .def(nb::init<const DocumentBytes::Arrays&>(), nb::arg("parts"))
        .def("__len__", &DocumentBytes::size, "Return the number of documents.")
        .def(
            "__getitem__",
            [](const DocumentBytes& bytes, i64 document) {
                bytes.check(document);
                const auto of = bytes.of(document);
                return nb::bytes(of.data(), of.size());
            },
            nb::arg("document"), "Return the bytes of a document; IndexError.");
    nb::class_<Records>(module, "Records", R"(
        Reads the records of stored documents: see `storage/documents.py`.

        IndexError for an unknown doc id, ValueError for a damaged record.
    )")
        .def(nb::init<const DocumentBytes&>(), nb::arg("records"))
        .def("heads", &Records::heads, nb::arg("documents"),
             "Return ID, title and metadata of documents, these as JSON, \"\" for none. Cost: 0.3 µs each.")
        .def("text", &Records::text, nb::arg("document"), "Return the text of a document.");
    nb::class_<PassageFinder>(module, "PassageFinder", R"(
        Selects passages of stored documents by their forward index.

        codes, ranks  of the forward index
        parts         number of parts of a document
    )")
        .def(nb::init<const Records&, const DocumentBytes&, Array1<const i32>, i64>(), nb::arg("records"),
             nb::arg("codes"), nb::arg("ranks"), nb::arg("parts"))
        .def("passages", &PassageFinder::passages, nb::arg("documents"), nb::arg("terms"), nb::arg("weights"),
             nb::arg("length"), nb::arg("characters"), R"(
            Return a passage of each document, as one line; see `best_passage`.

            weights  of the terms, or none if all are 1
            The lists of places are of passages that may contain Markdown, which keep their line ends,
            and of documents whose words cannot be located (`locate_words`), with an empty passage.
            None if the characters are those of ASCII, and a text is not; ValueError for a text that is
            not UTF-8 or contains a zero byte. Cost: 1 µs and 1 ns a character for each, 5 ns if it is
            not ASCII. Memory: 1 byte a byte of the longest text, 4 if it is not ASCII, and 12 if NFKC
            changes any of it.
        )");
}

}  // namespace klsa
