// The offsets of words in a line of code points, equal to the spans of `analysis/segmentation.py`.
#pragma once

#include <bit>
#include <optional>
#include <span>
#include <vector>

#include "byte_block.hpp"
#include "characters.hpp"

namespace klsa {

// A line of code points, or of bytes if it is ASCII.
template <class Char>
using LineOf = std::span<const Char>;
using Line = LineOf<u32>;

struct WordOffsets {
    std::vector<i32> starts, ends;

    void clear() { starts.clear(), ends.clear(); }
    void add(i64 start, i64 end) { starts.push_back(i32(start)), ends.push_back(i32(end)); }
    i64 size() const { return i64(starts.size()); }
};

// Finds words by their positions. `locate` returns false for rare sequences that only
// `Analyzer.tokens` handles, such as a mark after a fraction.
//
// Cost: 0.3 ns a character of ASCII up to the last word that is wanted, else 3 ns, 10 ns in scripts
// without spaces.
class WordLocator {
  public:
    WordLocator(const CharacterTables& characters) : characters_(characters) {}

    // Find words of a line: `wanted` are their positions, ascending from 0.
    bool locate(LineOf<u8> line, std::span<const i32> wanted, WordOffsets& out) const {
        out.clear();
        size_t next = 0;
        i64 number = 0, start = 0, ending = -1;  // of the next word; of a wanted one; last English one
        u64 inside = 0;                          // whether a word goes on from the block before
        bool taken = false;
        for (size_t at = 0; at < line.size() && next < wanted.size(); at += ByteBlock::SIZE) {
            const ByteBlock block(line.subspan(at));
            u64 letters = block.letters();
            for (u64 left = block.equal_to('\''); left; left &= left - 1) {
                const i64 apostrophe = i64(at) + std::countr_zero(left);
                const bool is_after_word = apostrophe > 0 && is_ascii_word_character(line[apostrophe - 1]);
                if (!is_after_word || apostrophe == ending) continue;
                ending = after_ending(line, apostrophe);
                if (ending > apostrophe) letters |= left & (~left + 1);
            }
            const u64 after = letters << 1 | inside, ends = after & ~letters;
            u64 starts = letters & ~after;
            const i64 words = number + std::popcount(starts);
            if (taken && ends) {
                out.add(start, i64(at) + std::countr_zero(ends));
                taken = false;
                next++;
            }
            for (; !taken && next < wanted.size() && wanted[next] < words; starts &= starts - 1, number++) {
                if (number < wanted[next]) continue;
                start = std::countr_zero(starts);
                const u64 ends_after = ends >> start;
                if (ends_after) {
                    out.add(i64(at) + start, i64(at) + start + std::countr_zero(ends_after));
                    next++;
                }
                start += i64(at);
                taken = !ends_after;
            }
            number = words;
            inside = letters >> 63;
        }
        if (taken) out.add(start, i64(line.size()));
        return true;
    }

    bool locate(Line line, std::span<const i32> wanted, WordOffsets& out) {
        out.clear();
        if (locate_letters(line, wanted, out)) return true;
        out.clear();
        if (has_joiner_after_mark(line)) return false;
        if (!changes(line)) return locate_any(line, wanted, out);
        if (!normalise(line)) return false;
        if (!locate_any(normal_, wanted, out)) return false;
        for (i64 i = 0; i < out.size(); i++) {
            out.starts[i] = origin_[out.starts[i]];
            out.ends[i] = origin_[out.ends[i] - 1] + 1;
        }
        return true;
    }

  private:
    static constexpr i64 UNCLEAR = -1;
    static constexpr i64 BLOCK = 64;

    u8 kind(u32 point) const { return characters_.class_of(point); }

    // Do `locate_any` for words of letters and marks, three times as fast; false for others.
    bool locate_letters(Line line, std::span<const i32> wanted, WordOffsets& out) const {
        const i64 size = i64(line.size());
        i64 at = 0, number = 0, start = 0;
        size_t next = 0;
        bool inside = false, taken = false;  // a word, a wanted one
        if (wanted.empty() || wanted[0] < 0) return true;
        while (at < size) {
            u8 of = SEPARATOR;
            if (!taken) at = after_blocks(line, at, wanted[next], number, inside);
            const i64 stop = std::min<i64>(size, at + BLOCK);
            for (; at < stop; at++) {
                of = kind(line[at]) & u8(~REORDERED);
                if (of > SPACE) break;
                const bool letter = of == LETTER;
                const bool begins = letter && !inside;
                if (begins && number == wanted[next]) start = at, taken = true;
                number += begins;
                inside = letter || (of == MARK && inside);
                if (taken && !inside) {
                    out.add(start, at);
                    taken = false;
                    if (++next == wanted.size()) return true;
                }
            }
            if (of <= SPACE) continue;
            if (of == JOINER) {
                if (inside && kind(line[at - 1]) & REORDERED) return false;
                inside = inside && !is_arabic(line[at - 1]);
                if (taken && !inside) {
                    out.add(start, at);
                    taken = false;
                    if (++next == wanted.size()) return true;
                }
                at++;
                continue;
            }
            if (of != APOSTROPHE && of != QUOTE) return false;
            for (i64 i = at + 1; inside && i < std::min(size, at + 3); i++)
                if (kind(line[i]) & CHANGED) return false;
            if (const i64 quotes = inside ? quotes_in_hebrew(line, at) : 0; quotes) {
                at += quotes;
                continue;
            }
            i64 end = at;
            if (inside && (end = after_ending(line, at)) == UNCLEAR) return false;
            if (taken) {
                out.add(start, end);
                taken = false;
                if (++next == wanted.size()) return true;
            }
            inside = false;
            at = std::max(at + 1, end);
        }
        if (taken) out.add(start, at);
        return true;
    }

    // Return the end of whole blocks of letters and separators with words that are not wanted.
    i64 after_blocks(Line line, i64 at, i64 wanted, i64& number, bool& inside) const {
        for (; at + BLOCK <= i64(line.size()); at += BLOCK) {
            u64 letters = 0;
            u8 others = 0;
            for (i64 i = 0; i < BLOCK; i++) {
                const u8 of = kind(line[at + i]);
                letters |= u64(of == LETTER) << i;
                others |= u8(of & ~(LETTER | SPACE)) | u8(of == MARK);
            }
            const i64 words = std::popcount(letters & ~(letters << 1 | u64(inside)));
            if (others || number + words > wanted) break;
            number += words;
            inside = letters >> 63;
        }
        return at;
    }

    bool locate_any(Line text, std::span<const i32> wanted, WordOffsets& out) const {
        const i64 size = i64(text.size());
        i64 number = 0, at = 0;
        size_t next = 0;
        auto note = [&](i64 begin, i64 end) {
            if (next < wanted.size() && wanted[next] == number) out.add(begin, end), next++;
            number++;
        };
        while (at < size && next < wanted.size()) {
            const u8 of = kind(text[at]);
            i64 begin = at++;
            if (of == LETTER) {
                at = after_marks(text, at, LETTER);
                while (const i64 quotes = quotes_in_hebrew(text, at)) at = after_marks(text, at + quotes, LETTER);
                at = after_ending(text, at);
                if (at == UNCLEAR) return false;
            } else if ((of & ~REORDERED) == UNSPACED_MARK || (of & ~REORDERED) == JAMO) {
                return false;
            } else if (of == EMOJI || of == FLAG) {
                if (of == FLAG && at < size && kind(text[at]) == FLAG) at++;
                at = after_marks(text, at, MARK);
            } else if (of == UNSPACED) {
                at = after_marks(text, at, MARK);
                bool is_single = true;
                while (at < size && kind(text[at]) == UNSPACED) {
                    const i64 second = at;
                    at = after_marks(text, at + 1, MARK);
                    note(begin, at);
                    begin = second;
                    is_single = false;
                }
                if (!is_single) continue;
            } else {
                continue;
            }
            note(begin, at);
        }
        return true;
    }

    // Return the first index from `at` on that is neither a mark nor of the class `also`.
    i64 after_marks(Line text, i64 at, u8 also) const {
        for (; at < i64(text.size()); at++) {
            const u8 of = kind(text[at]) & u8(~REORDERED);
            if (of == JOINER && at > 0 && !is_arabic(text[at - 1])) continue;
            if (of != MARK && of != UNSPACED_MARK && of != also) break;
        }
        return at;
    }

    // Return the length of the gershayim or geresh within a Hebrew word at `at`, which follows a letter.
    i64 quotes_in_hebrew(Line text, i64 at) const {
        const i64 size = i64(text.size());
        if (at + 1 >= size || !is_hebrew(text[at - 1])) return 0;
        const u8 of = kind(text[at]);
        if (of != APOSTROPHE && of != QUOTE) return 0;
        if (is_hebrew(text[at + 1])) return 1;
        const bool is_double = of == APOSTROPHE && kind(text[at + 1]) == APOSTROPHE;
        return is_double && at + 2 < size && is_hebrew(text[at + 2]) ? 2 : 0;
    }

    // Whether NFKC may exchange the mark before a joiner, or compose it with a letter.
    bool has_joiner_after_mark(Line line) const {
        for (size_t i = 1; i < line.size(); i++)
            if (kind(line[i]) == JOINER && kind(line[i - 1]) & REORDERED) return true;
        return false;
    }

    static bool is_arabic(u32 point) { return 0x600 <= point && point <= 0x6FF; }

    static bool is_hebrew(u32 point) {
        return (0x591 <= point && point <= 0x5C7) || (0x5D0 <= point && point <= 0x5F2);
    }

    // Return the end of a word whose last letter is before `at`, including an English ending that no
    // letter follows.
    //
    // UNCLEAR if a mark follows, which may change the letter, or a character of a script without
    // spaces, which may be a letter or a sign.
    template <class Char>
    i64 after_ending(LineOf<Char> text, i64 at) const {
        const i64 size = i64(text.size());
        if (at >= size || kind(text[at]) != APOSTROPHE) return at;
        const i64 after = i64(after_ending_letters(text, size_t(at)));
        if (after == at || after == size) return after;
        const u8 following = kind(text[after]);
        if (following & REORDERED || following == UNSPACED) return UNCLEAR;
        return following == LETTER ? at : after;
    }

    bool changes(Line line) const {
        return std::any_of(line.begin(), line.end(), [&](u32 point) { return kind(point) & CHANGED; });
    }

    // Keep the forms of all characters and their origins. Composition and order of marks do not
    // matter for the bounds of words.
    bool normalise(Line line) {
        normal_.clear();
        origin_.clear();
        for (size_t i = 0; i < line.size(); i++) {
            if (!(kind(line[i]) & CHANGED)) {
                normal_.push_back(line[i]);
                origin_.push_back(i32(i));
                continue;
            }
            const auto form = characters_.form_of(line[i]);
            const u8 following = i + 1 < line.size() ? kind(line[i + 1]) : u8(0);
            if (form.size() > 1 && following & REORDERED) return false;
            normal_.insert(normal_.end(), form.begin(), form.end());
            origin_.insert(origin_.end(), form.size(), i32(i));
        }
        return true;
    }

    CharacterTables characters_;
    std::vector<u32> normal_;
    std::vector<i32> origin_;
};

}  // namespace klsa
