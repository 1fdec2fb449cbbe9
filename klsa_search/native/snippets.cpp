// Bindings of offsets.hpp and passages.hpp: snippets of texts.
#include <cstring>
#include <optional>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "arrays.hpp"
#include "bindings.hpp"
#include "forward_codes.hpp"
#include "instruction_sets.hpp"
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
    cut_out(line_of(line), window, passage_length,
            [&](Line points) { passage.insert(passage.end(), points.begin(), points.end()); });
    return owned(std::move(passage));
}

// Returns text in UTF-8 as a Python string; raises UnicodeDecodeError.
nb::object decoded(const char* text, size_t size) {
    nb::object result = nb::steal(PyUnicode_DecodeUTF8(text, Py_ssize_t(size), nullptr));
    if (!result.is_valid()) throw nb::python_error();
    return result;
}

// The records of documents: the sizes of ID, title and metadata, each in four bytes, then these and
// the text.
class Records {
  public:
    static constexpr i64 HEAD = 12;

    struct Bounds {
        i64 id, title, metadata, text, end;
    };

    Records(Array1<const u8> content, Array1<const i64> starts) : content_(content), starts_(starts) {
        require(length(starts) > 0, "starts: give the end of the last record");
    }

    i64 size() const { return length(starts_) - 1; }

    // Return ID, title, metadata, and the bounds of the text of each document.
    nb::list heads(const std::vector<i64>& documents, nb::handle decode) const {
        nb::list result;
        for (const i64 document : documents) {
            const Bounds of = bounds(document);
            require(of.text > 0, "a record is longer than its slot");
            nb::object metadata = nb::dict();
            if (of.metadata < of.text) metadata = decode(string(of.metadata, of.text));
            result.append(
                nb::make_tuple(string(of.id, of.title), string(of.title, of.metadata), metadata, of.text, of.end));
        }
        return result;
    }

    // Return where the fields of a record begin; all 0 if it is damaged.
    Bounds bounds(i64 document) const {
        if (document < 0 || document >= size()) throw std::out_of_range("there is no document of this doc id");
        const i64 begin = starts_(document), end = starts_(document + 1);
        if (begin < 0 || end < begin || end > length(content_) || end - begin < HEAD) return {};
        u32 sizes[3];
        std::memcpy(sizes, content_.data() + begin, HEAD);
        const i64 id = begin + HEAD, title = id + sizes[0], metadata = title + sizes[1], text = metadata + sizes[2];
        return text <= end ? Bounds{id, title, metadata, text, end} : Bounds{};
    }

    std::span<const u8> text(i64 document) const {
        const Bounds of = bounds(document);
        return {content_.data() + of.text, size_t(of.end - of.text)};
    }

    void read_ahead(i64 document) const {
        const u8* record = content_.data() + std::clamp<i64>(starts_(document), 0, length(content_));
        for (int line = 0; line < 4; line++) prefetch(record + 64 * line);
    }

  private:
    nb::object string(i64 begin, i64 end) const {
        return decoded(reinterpret_cast<const char*>(content_.data()) + begin, size_t(end - begin));
    }

    Array1<const u8> content_;
    Array1<const i64> starts_;
};

// Selects passages of stored documents by their forward index, without analysing a text.
class PassageFinder {
  public:
    PassageFinder(const Records& records, Array1<const u8> codes, Array1<const i64> code_starts,
                  Array1<const i32> ranks, i64 parts)
        : records_(records), codes_(codes), code_starts_(code_starts), ranks_(ranks), parts_(parts) {
        require(records.size() == length(code_starts) - 1,
                "records and code_starts: they have different numbers of documents");
        require(parts > 0, "parts: a document has at least one");
    }

    // Return the passages, the ordinals of those that may contain marks, and of the documents whose
    // words cannot be located, with an empty passage; none if the tables of characters end at ASCII
    // and a text does not.
    std::optional<std::tuple<nb::list, std::vector<i64>, std::vector<i64>>> passages(
        const std::vector<i64>& documents, const std::vector<i64>& terms, std::vector<f64> weights, i64 passage_length,
        const Characters& characters) const {
        require_between(documents.data(), i64(documents.size()), 0, records_.size(), "documents");
        require_between(terms.data(), i64(terms.size()), 0, length(ranks_), "terms");
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
        nb::list result;
        size_t begin = 0;
        for (const size_t end : page.ends) {
            result.append(decoded(page.text.data() + begin, end - begin));
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
            const std::span passage(text.data() + begin, text.size() - begin);
            u8 marks = 0, zeros = 0;  // bytes, so that many are compared at once
            for (const char of : passage) {
                marks |= u8(of == '*') | u8(of == '#') | u8(of == '`') | u8(of == '|') | u8(of == '[');
                zeros |= u8(of == 0);
            }
            require(!zeros, "a text contains a zero byte");
            if (marks) marked.push_back(i64(ends.size()));
            for (char& of : passage.first(marks ? 0 : passage.size()))
                of = of == LINE_END || of == PARAGRAPH_END ? char(BLANK) : of;
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
            if (!fold(Utf8Reader{text}, characters, line)) return page.is_complete = false;
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
            prefetch(codes_of(document).next());
        }
        for (const i64 document : documents) {
            const auto text = records_.text(document);
            if (!(is_ascii(text) ? add(ascii, text, document) : add(points, text, document))) return;
        }
    }

    CodeReader codes_of(i64 document) const {
        const i64 size = length(codes_);
        return {codes_.data(), std::clamp<i64>(code_starts_(document), 0, size),
                std::clamp<i64>(code_starts_(document + 1), 0, size)};
    }

    Records records_;
    Array1<const u8> codes_;
    Array1<const i64> code_starts_;
    Array1<const i32> ranks_;
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
    nb::class_<Records>(module, "Records")
        .def(nb::init<Array1<const u8>, Array1<const i64>>(), exact("content"), exact("starts"))
        .def("heads", &Records::heads, nb::arg("documents"), nb::arg("decode"));
    nb::class_<PassageFinder>(module, "PassageFinder")
        .def(nb::init<const Records&, Array1<const u8>, Array1<const i64>, Array1<const i32>, i64>(),
             nb::arg("records"), exact("codes"), exact("code_starts"), exact("ranks"), nb::arg("parts"))
        .def("passages", &PassageFinder::passages, nb::arg("documents"), nb::arg("terms"), nb::arg("weights"),
             nb::arg("length"), nb::arg("characters"));
}

}  // namespace klsa
