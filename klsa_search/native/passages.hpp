// Passages of texts for snippets: blank space folded, the best window, whole sentences around it.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "offsets.hpp"

namespace klsa {

// Blank space that contains one line end, and several or a form feed.
constexpr u32 BLANK = 32, LINE_END = 10, PARAGRAPH_END = 12, ELLIPSIS = 0x2026;

constexpr double REPEATED = 0.1;    // factor of the weight of a term that is repeated in a passage
constexpr double TOLERANCE = 1e-9;  // difference of sums that is due to rounding
constexpr i64 WORD_END = 30;        // characters dropped at either end to cut between words, at most

inline bool is_blank(u32 point) {
    return point == BLANK || point == LINE_END || point == PARAGRAPH_END;
}

// Reads UTF-8; invalid bytes give wrong points, and nothing outside is read.
struct Utf8Reader {
    std::span<const u8> content;
    size_t at = 0;

    bool has_more() const { return at < content.size(); }
    size_t left() const { return content.size() - at; }  // characters, at most

    u32 read() {
        const u8 first = content[at++];
        if (first < 0x80) return first;
        const int more = first < 0xE0 ? 1 : first < 0xF0 ? 2 : 3;
        u32 point = first & (0x3F >> more);
        for (int i = 0; i < more && at < content.size(); i++) point = point << 6 | (content[at++] & 0x3F);
        return point;
    }
};

inline void append_utf8(std::string& out, u32 point) {
    if (point < 0x80) {
        out.push_back(char(point));
        return;
    }
    const int more = point < 0x800 ? 1 : point < 0x10000 ? 2 : 3;
    const u8 head = more == 1 ? 0xC0 : more == 2 ? 0xE0 : 0xF0;
    out.push_back(char(u8(head | point >> (6 * more))));
    for (int left = more - 1; left >= 0; left--) out.push_back(char(u8(0x80 | (point >> (6 * left) & 0x3F))));
}

// Write a text with each run of blank space as one character, without those at its ends. It is a
// line feed if it contains one, a form feed if it contains several or a form feed, else a blank.
//
// Returns false if the text goes beyond ASCII, and the tables or the characters of the line do not.
// Cost: 0.3 ns a byte.
template <class Reader, class Char>
bool fold(Reader reader, const CharacterTables& characters, std::vector<Char>& line) {
    line.resize(reader.left() + ByteBlock::SIZE);
    Char* const out = line.data();
    size_t size = 0;
    bool after_space = true;
    while (reader.has_more()) {
        if constexpr (requires { reader.content; }) {
            // Copy what does not change: printable characters of ASCII, single blanks and line ends.
            const auto text = reader.content.subspan(reader.at);
            const ByteBlock block(text);
            const u64 line_ends = block.equal_to(LINE_END), spaces = block.equal_to(BLANK) | line_ends;
            const u64 repeated = spaces & (spaces << 1 | u64(after_space));
            const u64 changes = block.from(128) | (block.below(BLANK) & ~line_ends) | repeated;
            const size_t same = size_t(std::countr_zero(changes));
            if constexpr (sizeof(Char) == 1)
                block.copy_to(out + size);
            else
                std::copy_n(text.begin(), same, out + size);
            size += same;
            reader.at += same;
            if (same > 0) after_space = spaces >> (same - 1) & 1;
            if (!changes || !reader.has_more()) continue;
        }
        do {  // to the end of a run of blank space
            const u32 point = reader.read();
            if (point >= 128 && (sizeof(Char) == 1 || characters.is_ascii())) return false;
            const bool space = (characters.class_of(point) & ~CHANGED) == SPACE;
            const bool is_kept = !space || !after_space;
            if (is_kept) out[size] = Char(space ? BLANK : point);
            size += is_kept;
            after_space = space;
            if (space && (point == LINE_END || point == PARAGRAPH_END) && size > 0) {
                Char& last = out[size - 1];
                last = Char(last == BLANK && point == LINE_END ? LINE_END : PARAGRAPH_END);
            }
        } while (after_space && reader.has_more());
    }
    line.resize(size - (after_space && size > 0));
    return true;
}

struct Window {
    i64 first = 0, after = 0;
};

// Return the run of tokens of highest weight that fits; an empty one at the beginning for none.
//
// terms   of each token, as numbers in the query
// weights of the query's terms; those repeated in a window count a tenth
inline Window best_window(std::span<const i32> terms, const WordOffsets& places, std::span<const f64> weights,
                          i64 length) {
    std::vector<i32> counts(weights.size(), 0);
    Window window;
    double best = 0, score = 0;
    size_t left = 0;
    for (size_t token = 0; token < size_t(places.size()); token++) {
        const i32 term = terms[token];
        score += weights[term] * (counts[term] > 0 ? REPEATED : 1.0);
        counts[term]++;
        while (places.ends[token] - places.starts[left] > length && left < token) {
            const i32 leaving = terms[left++];
            counts[leaving]--;
            score -= weights[leaving] * (counts[leaving] > 0 ? REPEATED : 1.0);
        }
        if (score > best + TOLERANCE) {
            best = score;
            window = {places.starts[left], places.ends[token]};
        }
    }
    return window;
}

// Return whether a sentence, list item or table row of a folded line begins at `i`.
//
// begin  nothing before it is looked at for the end of the last sentence
template <class Char>
bool begins_sentence(LineOf<Char> line, i64 i, i64 begin) {
    constexpr std::u32string_view CLOSING = U"\"'”’»)]*。！？｡」』）";
    if (i == 0 || line[i - 1] == PARAGRAPH_END) return true;
    if (line[i - 1] != BLANK && line[i - 1] != LINE_END)
        return line[i - 1] >= 128 && is_among(line[i - 1], U"。！？｡") && !is_among(line[i], CLOSING);
    if (line[i - 1] == LINE_END && is_among(line[i], U"-*+•|#`>")) return true;
    i64 last = i - 2;
    if (last >= 0 && is_ascii_word_character(line[last])) return false;  // nearly all
    while (last > begin && is_among(line[last], CLOSING)) last--;
    if (last < 0) return false;
    // "J. Smith" and "U.S. Navy" are no ends, nor is a stop before a small letter or digit.
    const bool is_initial = line[last] == '.' && last > 1 && (is_blank(line[last - 2]) || line[last - 2] == '.');
    const bool is_continued = (97 <= line[i] && line[i] <= 122) || (48 <= line[i] && line[i] <= 57);
    return is_among(line[last], U".!?…؟۔。！？") && !is_initial && !is_continued;
}

// Return where sentences begin, from `begin` to `last`.
template <class Char>
std::vector<i64> sentences(LineOf<Char> line, i64 begin, i64 last) {
    std::vector<i64> starts;
    auto add_if_begins = [&](i64 i) {
        if (i <= last && begins_sentence(line, i, begin)) starts.push_back(i);
    };
    i64 at = begin;
    if constexpr (sizeof(Char) == 1) {
        // In ASCII only after blank space, which follows no word unless it ends a line.
        if (begin == 0) add_if_begins(at++);
        u64 inside = at > 1 && is_ascii_word_character(line[at - 2]);
        for (; at <= last; at += ByteBlock::SIZE) {
            const ByteBlock before(line.subspan(size_t(at - 1)));
            const u64 letters = before.letters(), after_words = letters << 1 | inside;
            u64 spaces = (before.equal_to(BLANK) & ~after_words) | before.below(BLANK);
            for (; spaces; spaces &= spaces - 1) add_if_begins(at + std::countr_zero(spaces));
            inside = letters >> 63;
        }
    } else {
        for (; at <= last; at++) add_if_begins(at);
    }
    return starts;
}

struct Span {
    i64 start, end;
    bool is_cut_before, is_cut_after;
};

// Return the ends of a passage of `length` around a window, and whether each cuts a sentence.
//
// It has whole sentences, list items and table rows: that of the window if it fits, then those that
// begin at most a third of the rest before the window, and then those after it. If they leave half
// of `length` or more, or do not fit, it is cut between words.
template <class Char>
Span passage_span(LineOf<Char> line, Window window, i64 length) {
    const i64 size = i64(line.size()), first = window.first, after = window.after;
    const i64 begin = std::max<i64>(0, after - length);
    const std::vector<i64> starts = sentences(line, begin, std::min(size - 1, first + length + 1));
    const i64 spare = std::max<i64>(length - (after - first), 0);
    const i64 earliest = std::max<i64>(0, std::min(first - spare / 3, size - length));
    i64 sentence = -1, sentence_end = size;  // around the window
    for (const i64 start : starts) {
        if (start <= first) {
            sentence = start;
        } else if (start >= after) {
            sentence_end = start - 1;
            break;
        }
    }
    const bool is_whole = sentence >= 0 && sentence_end - sentence <= length;
    i64 start = -1;
    for (const i64 candidate : starts) {
        if (candidate > first) break;
        if (start < earliest || (is_whole && sentence_end - start > length)) start = candidate;
    }
    const bool is_cut_before = start < 0;
    if (is_cut_before) {
        start = earliest;
        if (start > 0 && !is_blank(line[start - 1])) {
            for (i64 i = start; i < std::min(start + WORD_END, first); i++) {
                if (is_blank(line[i])) {
                    start = i + 1;
                    break;
                }
            }
        }
    }
    i64 end = std::min(size, start + length);
    bool is_cut_after = end < size;
    for (auto candidate = starts.rbegin(); candidate != starts.rend(); ++candidate) {
        if (!is_cut_after || *candidate <= std::max(after, start + length / 2)) break;
        if (*candidate <= start + length + is_blank(line[*candidate - 1])) end = *candidate, is_cut_after = false;
    }
    if (is_cut_after && !is_blank(line[end])) {
        for (i64 i = end - 1; i >= std::max({end - WORD_END, after, start + 1}); i--) {
            if (is_blank(line[i])) {
                end = i;
                break;
            }
        }
    }
    while (start < end && is_blank(line[start])) start++;
    while (start < end && is_blank(line[end - 1])) end--;
    return {start, end, is_cut_before, is_cut_after};
}

}  // namespace klsa
