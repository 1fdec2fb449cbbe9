// Codes of the forward index: reading, writing and searching the words of documents.
//
// `storage/forward_index.py` describes them. Invalid codes never cause a read outside of them.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "byte_block.hpp"
#include "integers.hpp"

namespace klsa {

// Codes from 0 to 67 and from 128 to 2862 are of words without a term, the others of ranks, in order.
constexpr i64 SHORT_STOPS = 68, SHORT_RANKS = 60, SHORT_CODES = 128, ALL_STOPS = 2863;
constexpr int MAX_CODE_BYTES = 5;  // the longest code
constexpr i64 NO_TERM = -2;        // a word of a phrase that stands for any word without a term

// Reads the codes of a document from `at` to `end`.
struct CodeReader {
    const u8* codes;
    i64 at, end;

    explicit CodeReader(std::span<const u8> document) : codes(document.data()), at(0), end(i64(document.size())) {}

    bool has_more() const { return at < end; }
    const u8* next() const { return codes + at; }

    i64 read() {
        i64 code = 0;
        for (int shift = 0; at < end; shift += 7) {
            u8 part = codes[at++];
            code |= i64(part & 0x7F) << shift;
            if (part < 0x80 || shift == 7 * (MAX_CODE_BYTES - 1)) break;
        }
        return code;
    }

    // Read where each part of the document ends, in words; the last one has no limit.
    void read_part_ends(std::span<i64> ends) {
        i64 words = 0;
        for (auto& part_end : ends.first(ends.size() - 1)) part_end = words += read();
        ends.back() = std::numeric_limits<i64>::max();
    }
};

// Write a code below 2^35; return the start of the next one.
inline i64 write_code(u8* codes, i64 at, i64 code) {
    for (; code >= 0x80; code >>= 7) codes[at++] = u8((code & 0x7F) | 0x80);
    codes[at++] = u8(code);
    return at;
}

inline bool is_stop_code(i64 code) {
    return code < SHORT_STOPS || (code >= SHORT_CODES && code < ALL_STOPS);
}

inline i64 code_of_rank(i64 rank) {
    return rank < SHORT_RANKS ? rank + SHORT_STOPS : rank - SHORT_RANKS + ALL_STOPS;
}

// Return the rank of a code, negative for that of a word without a term.
inline i64 rank_of_code(i64 code) {
    if (is_stop_code(code)) return -1;
    return code < SHORT_CODES ? code - SHORT_STOPS : code - ALL_STOPS + SHORT_RANKS;
}

// Return the code of a word: a term number, -1 for none, or -1 - n for the stop word of code n.
inline i64 code_of(i32 word, std::span<const i32> ranks) {
    if (word >= 0) return code_of_rank(ranks[word]);
    const i64 code = -1 - i64(word);
    return is_stop_code(code) ? code : 0;
}

// Write documents of equally many parts, and the size of each; return the total.
inline i64 write_documents(std::span<const i32> words, std::span<const i32> lengths, std::span<const i32> ranks,
                           u8* codes, std::span<i64> sizes) {
    i64 at = 0, word = 0;
    const i64 parts = sizes.empty() ? 0 : i64(lengths.size() / sizes.size());
    for (size_t document = 0; document < sizes.size(); document++) {
        const i64 begin = at;
        auto of_parts = lengths.subspan(document * parts, parts);
        i64 total = 0;
        for (i64 part = 0; part < parts; part++) {
            total += of_parts[part];
            if (part < parts - 1) at = write_code(codes, at, of_parts[part]);
        }
        for (const i64 end = word + total; word < end; word++) at = write_code(codes, at, code_of(words[word], ranks));
        sizes[document] = at - begin;
    }
    return at;
}

// Reads the words of a document, and the part of each; `part_ends` is a buffer, as long as there are parts.
class WordReader {
  public:
    WordReader(CodeReader reader, std::vector<i64>& part_ends) : reader_(reader), part_ends_(part_ends) {
        reader_.read_part_ends(part_ends_);
    }

    // Read the next word, if there is one.
    bool read() {
        if (!reader_.has_more()) return false;
        code_ = reader_.read();
        while (word_ >= part_ends_[part_]) part_++;
        word_++;
        return true;
    }

    i64 code() const { return code_; }
    size_t part() const { return part_; }

  private:
    CodeReader reader_;
    std::vector<i64>& part_ends_;
    i64 code_ = 0, word_ = 0;
    size_t part_ = 0;
};

// Call `visit(code, part)` for each word with a term, and its part.
template <class Visit>
void for_each_term(CodeReader codes, std::vector<i64>& part_ends, Visit visit) {
    WordReader words(codes, part_ends);
    while (words.read())
        if (!is_stop_code(words.code())) visit(words.code(), words.part());
}

// Count a code in each part of a document; in its text, the last part, only if another part has it.
inline void count_parts(CodeReader codes, std::vector<i64>& part_ends, i64 wanted, std::span<i64> counts) {
    WordReader words(codes, part_ends);
    bool is_found = false;
    while (words.read()) {
        if (words.part() + 1 == counts.size() && !is_found) return;
        if (words.code() == wanted) counts[words.part()]++, is_found = true;
    }
}

// How words without a term match those of a phrase: all alike, by word, or by word and capitals.
enum class Stops { ALIKE, BY_WORD, AS_WRITTEN };

// The words of a phrase as codes, matched by Knuth, Morris and Pratt.
class Phrase {
  public:
    Phrase(std::span<const i64> written, Stops stops)
        : codes_(written.begin(), written.end()), borders_(written.size(), 0), stops_(stops) {
        for (auto& code : codes_) code = comparable(code);
        const auto& codes = codes_;
        i64 length = 0;
        for (size_t end = 1; end < codes.size(); end++) {
            while (length && codes[end] != codes[length]) length = borders_[length - 1];
            length += codes[end] == codes[length];
            borders_[end] = length;
        }
    }

    i64 size() const { return i64(codes_.size()); }

    // Return what equals that of another code if the words match; a stop word in capitals has the code
    // after that of other letters, which is odd.
    i64 comparable(i64 code) const {
        if (!is_stop_code(code) || code <= 0) return code == 0 ? NO_TERM : code;
        if (stops_ == Stops::ALIKE) return NO_TERM;
        return stops_ == Stops::BY_WORD ? (code - 1) | 1 : code;
    }

    // The length of the match after `code`, from the length before it, which is below size().
    i64 advance(i64 matched, i64 code) const {
        while (matched > 0 && codes_[matched] != code) matched = borders_[matched - 1];
        return matched + (codes_[matched] == code);
    }

    // The longest shorter match that a complete or incomplete one contains at its end.
    i64 border(i64 matched) const { return matched > 0 ? borders_[matched - 1] : 0; }

  private:
    std::vector<i64> codes_;
    std::vector<i64> borders_;
    Stops stops_;
};

// The words of a document, matched with a phrase one after the other.
class PhraseReader : public WordReader {
  public:
    PhraseReader(CodeReader codes, std::vector<i64>& part_ends, const Phrase& phrase)
        : WordReader(codes, part_ends), phrase_(phrase) {}

    // Read the next word, if there is one; no match crosses parts.
    bool read() {
        const size_t before = part();
        const bool has_read = WordReader::read();
        if (part() != before) matched_ = 0;
        return has_read;
    }

    // Match the word that was read; a complete match is left before.
    void match() { matched_ = phrase_.advance(matched_, phrase_.comparable(code())); }
    bool is_complete() const { return matched_ == phrase_.size(); }
    void leave() { matched_ = phrase_.border(matched_); }

  private:
    const Phrase& phrase_;
    i64 matched_ = 0;
};

// Call `visit(part)` where a phrase ends, until it returns false.
template <class Visit>
void for_each_phrase(CodeReader codes, std::vector<i64>& part_ends, const Phrase& phrase, Visit visit) {
    PhraseReader reader(codes, part_ends, phrase);
    while (reader.read()) {
        reader.match();
        if (!reader.is_complete()) continue;
        if (!visit(i64(reader.part()))) return;
        reader.leave();
    }
}

// Return whether a document has a phrase in a part, in any if `wanted` is negative.
inline bool has_phrase(CodeReader reader, std::vector<i64>& part_ends, const Phrase& phrase, i64 wanted) {
    bool is_found = false;
    for_each_phrase(reader, part_ends, phrase, [&](i64 part) {
        is_found = wanted < 0 || part == wanted;
        return !is_found && part <= wanted;
    });
    return is_found;
}

// Call `visit(rank)` for each word with a term that follows a phrase in its part.
template <class Visit>
void for_each_following(CodeReader codes, std::vector<i64>& part_ends, const Phrase& phrase, Visit visit) {
    PhraseReader reader(codes, part_ends, phrase);
    while (reader.read()) {
        if (reader.is_complete()) {
            if (const i64 rank = rank_of_code(reader.code()); rank >= 0) visit(rank);
            reader.leave();
        }
        reader.match();
    }
}

// A hash table of the codes of some terms: linear probing from the code modulo the size.
//
// At most one slot in eight is used, so that one look-up decides for most words.
class CodeTable {
  public:
    explicit CodeTable(std::span<const i64> codes) {
        size_t size = 64;
        while (size < 8 * codes.size()) size *= 2;
        codes_.assign(size, 0);
        numbers_.assign(size, 0);
        for (size_t number = 0; number < codes.size(); number++) {
            size_t slot = codes[number] & (size - 1);
            while (codes_[slot]) slot = (slot + 1) & (size - 1);
            codes_[slot] = codes[number];
            numbers_[slot] = i32(number);
            begins_[u8(codes[number] < 0x80 ? codes[number] : codes[number] | 0x80)] = true;
        }
    }

    // Whether a code may begin with a byte.
    bool may_begin(u8 first) const { return begins_[first]; }

    // Return the number of a code, or -1.
    i32 find(i64 code) const {
        const size_t last = codes_.size() - 1;
        for (size_t slot = code & last; codes_[slot]; slot = (slot + 1) & last)
            if (codes_[slot] == code) return numbers_[slot];
        return -1;
    }

  private:
    std::vector<i64> codes_;  // 0 for none
    std::vector<i32> numbers_;
    std::array<bool, 256> begins_{};
};

// Words of a text that are terms of a query.
struct Occurrences {
    std::vector<i32> positions;  // in the text, ascending, gaps counted
    std::vector<i32> terms;      // numbers in the query
};

// Find the words of a document's text, its last part, that are in a table. Cost: 1 ns a word.
inline void find_words(CodeReader reader, i64 parts, const CodeTable& table, Occurrences& out) {
    out.positions.clear();
    out.terms.clear();
    i64 position = 0;
    for (i64 part = 0; part < parts - 1; part++) position -= reader.read();
    const std::span codes(reader.next(), size_t(reader.end - reader.at));
    u64 is_start = 1;  // whether a code ends with the block before
    for (size_t at = 0; at < codes.size(); at += ByteBlock::SIZE) {
        const ByteBlock block(codes.subspan(at));
        const u64 ends = block.below(128);
        for (u64 starts = ends << 1 | is_start; starts; starts &= starts - 1, position++) {
            const size_t start = at + size_t(std::countr_zero(starts));
            if (start >= codes.size()) return;
            if (!table.may_begin(codes[start])) continue;  // nearly all
            const i32 number = table.find(CodeReader(codes.subspan(start)).read());
            if (number < 0 || position < 0) continue;
            out.positions.push_back(i32(position));
            out.terms.push_back(number);
        }
        is_start = ends >> 63;
    }
}

}  // namespace klsa
