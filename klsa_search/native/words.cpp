// The words of texts and of queries, by tables of the forms met before.
#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <optional>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "arrays.hpp"
#include "bindings.hpp"
#include "offsets.hpp"
#include "passages.hpp"
#include "texts.hpp"
#include "word_numbers.hpp"

namespace klsa {
namespace {

// The bytes of a str in UTF-8; null if it has a lone surrogate.
std::string_view utf8(nb::handle text) {
    Py_ssize_t size;
    const char* data = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
    if (data) return {data, size_t(size)};
    PyErr_Clear();
    return {};
}

nb::bytes as_bytes(const std::vector<i32>& numbers) {
    return nb::bytes(numbers.data(), numbers.size() * sizeof(i32));
}

class WordNumbers {
  public:
    using OfWord = nb::typed<nb::callable, int(nb::str)>;
    using OfText = nb::typed<nb::callable, nb::typed<nb::iterable, int>(nb::str)>;

    // Longer forms are not kept.
    static constexpr size_t LONGEST_WORD = 255;

    WordNumbers(i64 capacity, bool names) : forms_(checked(capacity)), names_(names) {}

    std::pair<nb::bytes, nb::bytes> number(nb::typed<nb::list, nb::str> texts, OfWord of_word, OfText of_text) {
        std::vector<i32> numbers, lengths;
        auto number_of = [](nb::handle object) {
            i32 number;
            if (!nb::try_cast<i32>(object, number)) throw nb::type_error("of_word and of_text: not an int32");
            return number;
        };
        auto resolve = [&](std::string_view form) { return number_of(of_word(nb::str(form.data(), form.size()))); };
        for (nb::handle each : texts) {
            const size_t before = numbers.size();
            if (!nb::isinstance<nb::str>(each)) throw nb::type_error("texts: one is no str");
            const auto text = ascii(each);
            if (text.data() && !(names_ && may_have_names(text))) {
                for_each_ascii_word(text, [&](std::string_view word) {
                    numbers.push_back(word.size() > LONGEST_WORD ? resolve(word) : forms_.number(word, resolve));
                });
            } else {
                for (nb::handle number : nb::iter(of_text(each))) numbers.push_back(number_of(number));
            }
            lengths.push_back(i32(numbers.size() - before));
        }
        return {as_bytes(numbers), as_bytes(lengths)};
    }

  private:
    static size_t checked(i64 capacity) {
        require(capacity > 0 && capacity <= i64(1) << 24, "capacity: give 1 to 2^24");
        return size_t(capacity);
    }

    // The characters of a text, or null if one is not ASCII: only then it has more bytes than characters.
    static std::string_view ascii(nb::handle text) {
        const std::string_view bytes = utf8(text);
        return Py_ssize_t(bytes.size()) == PyUnicode_GetLength(text.ptr()) ? bytes : std::string_view();
    }

    FormTable forms_;
    bool names_;
};

constexpr i32 MISSING = -1;  // number of a form or term

// Call `visit(word, start, end, is_pair)` for each word of a text in NFKC, with its offsets.
//
// Returns false for rare sequences: see `locate_words`.
template <class Visit>
bool for_each_word(const Encoded& text, const CharacterTables& characters, Visit visit) {
    const std::string_view bytes = text.view();
    if (text.is_ascii()) {
        for_each_ascii_word(bytes, [&](std::string_view word) {
            const i64 start = word.data() - bytes.data();
            visit(word, start, start + i64(word.size()), false);
        });
        return true;
    }
    require(!characters.is_ascii(), "characters: the text is not ASCII");
    std::vector<u32> line;
    std::vector<size_t> begins;
    for (Utf8Reader reader{text.bytes()}; reader.has_more(); line.push_back(reader.read())) begins.push_back(reader.at);
    begins.push_back(bytes.size());
    std::vector<i32> wanted(line.size());
    std::iota(wanted.begin(), wanted.end(), 0);
    WordOffsets places;
    if (!WordLocator(characters).locate(Line(line), wanted, places)) return false;
    for (i64 i = 0; i < places.size(); i++) {
        const i64 start = places.starts[size_t(i)], end = places.ends[size_t(i)];
        const size_t begin = begins[size_t(start)];
        const bool is_pair = characters.class_of(line[size_t(start)]) == UNSPACED;
        visit(bytes.substr(begin, begins[size_t(end)] - begin), start, end, is_pair);
    }
    return true;
}

using Terms = std::vector<i32>;

class TermFinder {
  public:
    using OfWord = nb::typed<nb::callable, nb::object(nb::str)>;
    using Occurrences = nb::typed<nb::list, nb::typed<nb::tuple, nb::str, int, int>>;

    TermFinder(i64 capacity, bool names, OfWord of_word, OfWord of_pair)
        : capacity_(size_t(capacity)), names_(names), of_word_(of_word), of_pair_(of_pair), forms_(capacity_) {
        require(capacity > 0 && capacity <= i64(1) << 24, "capacity: give 1 to 2^24");
    }

    std::optional<Occurrences> find(nb::str text, nb::typed<nb::iterable, nb::str> terms,
                                    const Characters& characters) {
        const Encoded encoded(text);
        if (names_ && may_have_names(encoded.view())) return {};
        if (std::max(forms_.size(), terms_.size()) >= capacity_) clear();
        std::vector<nb::object> objects;
        for (nb::handle term : nb::iter(terms)) objects.push_back(nb::borrow(term));
        Terms wanted, of_new;
        u64 cleared = cleared_;
        auto number_wanted = [&] {
            wanted.clear();
            for (const auto& term : objects) wanted.push_back(number_of(term));
        };
        number_wanted();
        Occurrences occurrences;
        auto visit = [&](std::string_view word, i64 start, i64 end, bool is_pair) {
            std::span<const i32> of;
            if (const i32* begin = forms_.find(word)) {
                of = {numbers_.data() + *begin + 1, size_t(numbers_[size_t(*begin)])};
            } else {
                const nb::object terms_of_word = (is_pair ? of_pair_ : of_word_)(nb::str(word.data(), word.size()));
                if (cleared != cleared_) cleared = cleared_, number_wanted();  // another thread was here
                of = of_new = keep(word, terms_of_word);
            }
            for (const i32 number : of)
                for (size_t i = 0; i < wanted.size(); i++)
                    if (number == wanted[i]) occurrences.append(nb::make_tuple(objects[i], start, end));
        };
        if (!for_each_word(encoded, characters.tables(), visit)) return {};
        return occurrences;
    }

  private:
    static constexpr size_t ALL = std::numeric_limits<i32>::max();

    void clear() {
        forms_.clear();
        terms_.clear();
        numbers_.clear();
        cleared_++;
    }

    i32 number_of(nb::handle term) {
        if (!nb::isinstance<nb::str>(term)) throw nb::type_error("terms, of_word and of_pair: one is no str");
        const std::string_view text = utf8(term);
        if (text.empty()) return MISSING;
        return terms_.number(text, [&](std::string_view) { return i32(terms_.size()); });
    }

    // Return the numbers of the terms of a word, which are kept if there is room.
    Terms keep(std::string_view word, nb::handle of_word) {
        Terms numbers;
        auto add = [&](nb::handle term) {
            const i32 number = number_of(term);
            if (number != MISSING) numbers.push_back(number);
        };
        if (nb::isinstance<nb::tuple>(of_word))
            for (const nb::handle term : nb::borrow<nb::tuple>(of_word)) add(term);
        else
            add(of_word);
        if (forms_.size() < capacity_ && word.size() <= WordNumbers::LONGEST_WORD && !forms_.find(word)) {
            forms_.keep(word, i32(numbers_.size()));
            numbers_.push_back(i32(numbers.size()));
            numbers_.insert(numbers_.end(), numbers.begin(), numbers.end());
        }
        return numbers;
    }

    size_t capacity_;
    bool names_;
    OfWord of_word_, of_pair_;
    FormTable forms_, terms_{ALL};
    Terms numbers_;  // of the terms of each form, after how many there are
    u64 cleared_ = 0;
};

// Replace offsets in code points, which ascend, by those in bytes.
void to_bytes(std::vector<i64>& offsets, std::string_view text) {
    size_t at = 0;
    i64 points = 0;
    for (i64& offset : offsets) {
        for (; points < offset; points++)
            while (++at < text.size() && (text[at] & 0xC0) == 0x80) {
            }
        offset = i64(at);
    }
}

nb::str marked_html(nb::str text, const std::vector<std::pair<i64, i64>>& marks) {
    const Encoded encoded(text);
    const std::string_view bytes = encoded.view();
    std::vector<i64> bounds;
    for (const auto& [start, end] : marks) bounds.insert(bounds.end(), {start, end});
    require_offsets(bounds, encoded.length(), "marks");
    if (!encoded.is_ascii()) to_bytes(bounds, bytes);
    std::string html;
    html.reserve(bytes.size() + bytes.size() / 8 + 13 * marks.size());
    size_t written = 0, next = 0;  // bytes of the text, and bounds
    auto write = [&](size_t end, std::string_view then) {
        html.append(bytes.substr(written, end - written)).append(then);
        written = end;
    };
    auto write_tags = [&](size_t last) {
        for (; next < bounds.size() && size_t(bounds[next]) <= last; next++)
            write(size_t(bounds[next]), next % 2 ? "</mark>" : "<mark>");
    };
    for (size_t begin = 0; begin < bytes.size(); begin += ByteBlock::SIZE) {
        const ByteBlock block(encoded.bytes().subspan(begin));
        u64 signs = 0;
        for (const char sign : {'&', '<', '>', '"', '\''}) signs |= block.equal_to(u8(sign));
        for (; signs; signs &= signs - 1) {
            const size_t at = begin + size_t(std::countr_zero(signs));
            const char sign = bytes[at];
            write_tags(at);
            write(at, sign == '&'   ? "&amp;"
                      : sign == '<' ? "&lt;"
                      : sign == '>' ? "&gt;"
                      : sign == '"' ? "&quot;"
                                    : "&#x27;");
            written++;
        }
    }
    write_tags(bytes.size());
    write(bytes.size(), "");
    return decoded({reinterpret_cast<const u8*>(html.data()), html.size()}, SURROGATES);
}

constexpr int DIGIT = 2, UNKNOWN = 4;        // kinds of an end of a form: see `query/joining.py`
constexpr int BOOLEAN = 2, HAS_UNKNOWN = 4;  // flags: see `query/pieces.py`
constexpr i32 SEPARATE = -2;                 // number of forms
constexpr size_t LONGEST = 1 << 12;          // bytes of a form, which has fewer words
constexpr size_t MEAN_LENGTH = 32;           // of forms for which the table has room

// Whether the words on both sides of a blank are read as one form, by the kinds there.
bool belong(int left, int right) {
    return left && right && ((left | right) & UNKNOWN || left != right || (left & right & DIGIT));
}

void add_new(Terms& terms, std::span<const i32> others) {
    for (const i32 term : others)
        if (std::find(terms.begin(), terms.end(), term) == terms.end()) terms.push_back(term);
}

class QueryForms {
  public:
    QueryForms(i64 capacity, i64 max_checked, i64 max_variants)
        : capacity_(size_t(capacity)),
          max_checked_(size_t(max_checked)),
          max_variants_(size_t(max_variants)),
          table_(capacity_),
          words_(capacity_ + LONGEST) {
        require(capacity > 0 && capacity <= i64(1) << 24, "capacity: give 1 to 2^24");
        require(max_checked >= 0 && max_variants >= 0, "max_checked and max_variants: give 0 or more");
    }

    nb::object read(nb::str query) const {
        const std::string_view text = utf8(query);
        if (!text.data()) return nb::make_tuple(nb::list(), -1);
        std::vector<std::string_view> missing;
        const auto forms = forms_of(text, missing);
        if (!missing.empty()) {
            nb::list texts;
            for (auto form : missing) texts.append(nb::str(form.data(), form.size()));
            return texts;
        }
        int flags = 0;
        Terms terms;
        const bool is_alone = add_words(forms, terms, flags);
        nb::list result;
        i32 largest = -1;
        for (const i32 term : terms) {
            result.append(term);
            largest = std::max(largest, term);
        }
        return nb::make_tuple(result, is_alone && largest >= 0 ? flags : -1);
    }

    nb::object variants(std::string_view query) const {
        std::vector<std::string_view> missing;
        const auto forms = forms_of(query, missing);
        nb::dict result;
        size_t checked = 0;
        for (const i32 number : forms) {
            if (number < 0) return nb::none();
            const Form& f = form(number);
            checked += f.checked;
            if (f.flags & (BOOLEAN | HAS_UNKNOWN) || checked >= max_checked_) return nb::none();
            result.update(f.variants);
        }
        return result;
    }

    void add_separate(std::string_view text) {
        make_room(text);
        table_.keep(text, SEPARATE);
    }

    void add(std::string_view text, int first, int last, bool begins, bool ends, int flags, bool covers_unknown,
             const Terms& words, const Terms& joined, const std::vector<std::string_view>& corrected,
             const std::vector<std::pair<std::string_view, Terms>>& divided,
             nb::typed<nb::dict, nb::str, nb::str> variants) {
        make_room(text);
        const size_t checked = corrected.size() + divided.size();
        Form form{variants, first, last, flags, begins, ends, covers_unknown, checked, numbers_.size()};
        auto append = [&](const Terms& terms) {
            numbers_.insert(numbers_.end(), terms.begin(), terms.end());
            return numbers_.size();
        };
        form.joined = append(words);
        form.corrected = append(joined);
        for (auto word : corrected) numbers_.push_back(number_of(word));
        form.divided = numbers_.size();
        for (const auto& [word, parts] : divided) {
            numbers_.insert(numbers_.end(), {number_of(word), i32(parts.size())});
            append(parts);
        }
        form.end = numbers_.size();
        table_.keep(text, i32(forms_.size()));
        forms_.push_back(form);
    }

  private:
    struct Form {
        nb::dict variants;
        int first, last, flags;
        bool begins, ends, covers_unknown;
        size_t checked;                                                 // words that may be corrected or divided
        size_t words, joined = 0, corrected = 0, divided = 0, end = 0;  // where they begin in `numbers_`
    };

    void make_room(std::string_view text) {
        require(!text.empty() && text.size() <= LONGEST, "text: give 1 to 4,096 bytes");
        const bool has_room = std::max(table_.size(), words_.size()) < capacity_;
        if (has_room && table_.characters() <= MEAN_LENGTH * capacity_) return;
        table_.clear();
        words_.clear();
        forms_.clear();
        numbers_.clear();
    }

    const Form& form(i32 number) const { return forms_[size_t(number)]; }
    std::span<const i32> numbers(size_t begin, size_t end) const { return {numbers_.data() + begin, end - begin}; }

    // The number of a word that may be corrected or divided.
    i32 number_of(std::string_view word) {
        return words_.number(word, [&](std::string_view) { return i32(words_.size()); });
    }

    // The numbers of the forms of a text, or what is not in the table.
    std::vector<i32> forms_of(std::string_view text, std::vector<std::string_view>& missing) const {
        std::vector<i32> forms;
        auto find = [&](size_t begin, size_t end) {
            const i32* number = table_.find(text.substr(begin, end - begin));
            if (!number) missing.push_back(text.substr(begin, end - begin));
            return number ? *number : MISSING;
        };
        size_t begin = 0, previous = 0, end = 0;  // of the form so far, and of its last piece
        i32 piece = MISSING;                      // its last piece
        int pieces = 0;
        auto finish = [&] {
            if (pieces > 0) forms.push_back(pieces == 1 ? piece : find(begin, end));
            pieces = 0;
        };
        auto belongs = [&](i32 next, size_t after) {
            if (pieces == 0 || piece < 0 || next < 0) return false;
            const Form &left = form(piece), &right = form(next);
            return belong(left.last, right.first) || (left.ends && right.begins && find(previous, after) != SEPARATE);
        };
        for (size_t at = 0; at <= text.size();) {
            const size_t after = std::min(text.find(' ', at), text.size());
            if (after == at) {
                finish();
            } else {
                const i32 next = find(at, after);
                if (!belongs(next, after)) {
                    finish();
                    begin = at;
                }
                pieces++;
                previous = at;
                piece = next;
                end = after;
            }
            at = after + 1;
        }
        finish();
        return forms;
    }

    // Add the terms of forms; return whether each could be read without the others.
    bool add_words(const std::vector<i32>& forms, Terms& terms, int& flags) const {
        Terms checked, divided;
        size_t unknown = 0, variants = 0;
        bool covers_unknown = false;
        for (const i32 number : forms) {
            const Form& f = form(number);
            flags |= f.flags;
            unknown += (f.flags & HAS_UNKNOWN) > 0;
            covers_unknown |= f.covers_unknown;
            variants += f.corrected - f.joined;
            const auto words = numbers(f.words, f.joined);
            terms.insert(terms.end(), words.begin(), words.end());
            add_new(checked, numbers(f.corrected, f.divided));
        }
        if (checked.size() > max_checked_ || (covers_unknown && unknown > 1)) return false;
        for (const i32 number : forms) add_new(terms, numbers(form(number).joined, form(number).corrected));
        for (const i32 number : forms)
            for (size_t at = form(number).divided; at < form(number).end;) {
                const i32 word = numbers_[at];
                const auto parts = numbers(at + 2, at + 2 + size_t(numbers_[at + 1]));
                at += 2 + parts.size();
                if (std::find(divided.begin(), divided.end(), word) != divided.end()) continue;
                if (checked.size() >= max_checked_) return variants <= max_variants_;
                divided.push_back(word);
                add_new(checked, {&word, 1});
                variants += !parts.empty();
                add_new(terms, parts);
            }
        return variants <= max_variants_;
    }

    size_t capacity_, max_checked_, max_variants_;
    FormTable table_, words_;
    std::vector<Form> forms_;
    Terms numbers_;
};

// Distances of a text of at most 64 letters by optimal string alignment, of all its letters at once [Hyyrö 2003].
class Alignment {
  public:
    explicit Alignment(std::span<const u32> text) : text_(text) {
        for (size_t at = 0; at < text.size(); at++)
            if (text[at] < masks_.size()) masks_[text[at]] |= u64(1) << at;
    }

    // The distance of its first letters from other ones.
    i64 distance(size_t size, std::span<const u32> letters) const {
        if (size == 0) return i64(letters.size());
        u64 more = ~u64(0), less = 0, same = 0, before = 0;  // of two numbers below each other, and of diagonals
        i64 distance = i64(size);
        for (const u32 letter : letters) {
            const u64 mask = mask_of(letter), swapped = ((~same & mask) << 1) & before;
            same = (((mask & more) + more) ^ more) | mask | less | swapped;
            const u64 right = less | ~(same | more), left = same & more;
            distance += i64(right >> (size - 1) & 1) - i64(left >> (size - 1) & 1);
            more = left << 1 | ~(same | (right << 1 | 1));
            less = (right << 1 | 1) & same;
            before = mask;
        }
        return distance;
    }

  private:
    u64 mask_of(u32 letter) const {
        if (letter < masks_.size()) return masks_[letter];
        u64 mask = 0;
        for (size_t at = 0; at < text_.size(); at++) mask |= u64(text_[at] == letter) << at;
        return mask;
    }

    std::span<const u32> text_;
    std::array<u64, 128> masks_{};
};

// The letters of terms in order. A set of letters has 32 bits.
class TermLetters {
  public:
    TermLetters(Array1<const u32> letters, Array1<const i64> starts) : letters_(letters), starts_(starts) {
        require(length(starts) > 0, "starts: is empty");
        require_offsets(starts, length(letters), "starts");
        sets_.resize(size_t(length(starts) - 1));
        for (size_t term = 0; term < sets_.size(); term++)
            for (const u32 letter : of(i64(term))) sets_[term] |= bit(letter);
    }

    auto near(i64 first, i64 last, Array1<const u32> text, std::pair<i64, i64> lengths, i64 edits,
              std::optional<i64> fewer, std::optional<i64> beginning) const {
        require(0 <= first && first <= last && last <= i64(sets_.size()), "first and last: there are no such terms");
        std::vector<i64> positions, distances;
        if (length(text) > 64) return std::tuple(std::move(positions), std::move(distances));
        const Alignment alignment(span_of(text));
        const std::vector<u32> sets = sets_of(span_of(text));
        for (i64 term = first; term < last; term++) {
            auto letters = of(term);
            const i64 size = i64(letters.size());
            if (size < lengths.first || size > lengths.second) continue;
            const i64 typed =
                fewer ? std::clamp(size - std::clamp<i64>(*fewer, 0, size), i64(0), length(text)) : length(text);
            if (std::popcount(sets[typed] & ~sets_[term]) > edits) continue;  // an edit removes one letter at most
            if (beginning && *beginning < size)
                letters = letters.first(size_t(std::max<i64>(*beginning, 0)));
            else if (std::popcount(sets_[term] & ~sets[typed]) > edits)
                continue;
            const i64 distance = alignment.distance(size_t(typed), letters);
            if (distance > edits) continue;
            positions.push_back(term);
            distances.push_back(distance);
        }
        return std::tuple(std::move(positions), std::move(distances));
    }

  private:
    std::span<const u32> of(i64 term) const {
        return span_of(letters_).subspan(size_t(starts_(term)), size_t(starts_(term + 1) - starts_(term)));
    }

    static u32 bit(u32 letter) { return u32(1) << letter % 32; }

    // The sets of the first letters of a text, of none to all.
    static std::vector<u32> sets_of(std::span<const u32> text) {
        std::vector<u32> sets{0};
        for (const u32 letter : text) sets.push_back(sets.back() | bit(letter));
        return sets;
    }

    Kept<Array1<const u32>> letters_;
    Kept<Array1<const i64>> starts_;
    std::vector<u32> sets_;
};

}  // namespace

void bind_words(nb::module_& module) {
    nb::class_<WordNumbers>(module, "WordNumbers", R"(
        Numbers of the words of texts, by a table of the forms met before; not thread-safe.

        capacity  forms that are kept; the table is emptied when it is full
        names     whether names with signs, such as C++ and .NET, are words
    )")
        .def(nb::init<i64, bool>(), nb::arg("capacity"), nb::arg("names"))
        .def("number", &WordNumbers::number, nb::arg("texts"), nb::arg("of_word"), nb::arg("of_text"), R"(
            Return the numbers of all words, and the number of words of each text, as int32.

            of_word  returns the number of a word of ASCII; called once for each form that is kept
            of_text  returns those of a text that is not ASCII, or may contain a name with signs
            Cost: some 10 ns a word of ASCII.
        )");
    nb::class_<TermFinder>(module, "TermFinder", R"(
        Finds the words of texts that have some terms, by a table of the forms met before. Thread-safe.

        capacity  forms that are kept; the table is emptied when it is full
        names     whether names with signs, such as C++ and .NET, are words
        of_word   returns the term of a word, or several; "" for none
        of_pair   likewise of a pair of characters in scripts without spaces
    )")
        .def(nb::init<i64, bool, TermFinder::OfWord, TermFinder::OfWord>(), nb::arg("capacity"), nb::arg("names"),
             nb::arg("of_word"), nb::arg("of_pair"),
             nb::sig("def __init__(self, capacity: int, names: bool, "
                     "of_word: collections.abc.Callable[[str], str | tuple[str, ...]], "
                     "of_pair: collections.abc.Callable[[str], str]) -> None"))
        .def("find", &TermFinder::find, nb::arg("text"), nb::arg("terms"), nb::arg("characters"), R"(
            Return term, start and end of the words of a text in NFKC that have one of some terms.

            characters  those of Unicode unless the text is ASCII
            None for a text that may contain a name with signs, and for rare sequences: see
            `locate_words`. Cost: 30 ns a word of ASCII, and for each form that is not kept, the calls.
        )");
    module.def("marked_html", &marked_html, nb::arg("text"), nb::arg("marks"), R"(
        Return a text escaped for HTML, with some parts of it in <mark>.

        marks  start and end of each, ascending
    )");
    nb::class_<TermLetters>(module, "TermLetters", R"(
        Finds the terms that are spelt like a text.

        letters  code points of all terms, one after another
        starts   (n + 1,) where each begins in them, and the end of the last
    )")
        .def(nb::init<Array1<const u32>, Array1<const i64>>(), nb::arg("letters"), nb::arg("starts"))
        .def("near", without_gil(&TermLetters::near), nb::arg("first"), nb::arg("last"), nb::arg("text"),
             nb::arg("lengths"), nb::arg("edits"), nb::arg("fewer").none() = nb::none(),
             nb::arg("beginning").none() = nb::none(), R"(
            Return where terms within some edits of a text are, and their distances.

            By optimal string alignment; of the terms from `first` to `last`.
            text       code points; nothing is near one of more than 64
            lengths    of the terms that are compared, the least and the most
            fewer      compare only as much of the text as a term is long, less this; None: all of it
            beginning  compare only as many letters of the terms; None: all of them
            Cost: 1 ns a term, and 20 ns for each with nearly the same letters.
        )");
    nb::class_<QueryForms>(module, "QueryForms", R"(
        What the words of queries add to their terms, by a table of the forms met before.

        A form is a piece of a query between blanks, or several pieces that are read together.
        Thread-safe.

        capacity      forms that are kept; the table is emptied when it is full
        max_checked   words of a query that may be corrected or divided
        max_variants  other writings of words of a query
    )")
        .def(nb::init<i64, i64, i64>(), nb::arg("capacity"), nb::arg("max_checked"), nb::arg("max_variants"))
        .def("read", &QueryForms::read, nb::arg("query"),
             nb::sig("def read(self, query: str) -> tuple[list[int], int] | list[str]"), R"(
            Return the terms of a query and its flags, or the forms that `add` has to add first.

            The terms of words come first, then those of joined words, then those of their parts, which
            are not repeated. Flags are -1 without a term that documents contain, and if the forms do
            not suffice: see max_checked, max_variants.
        )")
        .def("variants", &QueryForms::variants, nb::arg("query"),
             nb::sig("def variants(self, query: str) -> dict[str, str] | None"), R"(
            Return how documents also write words of a query that `read` returned the terms of.

            None if its interpretation is more than its words and these, or if that is not known.
        )")
        .def("add_separate", &QueryForms::add_separate, nb::arg("text"),
             "Add two pieces that are not read together, although their words might be joined.")
        .def("add", &QueryForms::add, nb::arg("text"), nb::arg("first"), nb::arg("last"), nb::arg("begins"),
             nb::arg("ends"), nb::arg("flags"), nb::arg("covers_unknown"), nb::arg("words"), nb::arg("joined"),
             nb::arg("corrected"), nb::arg("divided"), nb::arg("variants"), R"(
            Add a form.

            first, last     kinds of its ends, as of `query/joining.py`, by which pieces are read together
            begins, ends    whether it begins and ends with a word that may be joined to others
            covers_unknown  whether joined words stand for some that no document contains
            words, joined   terms
            corrected       words that may have been corrected
            divided         words that may be divided, with the terms of their parts
            variants        words, and how documents also write them
        )");
}

}  // namespace klsa
