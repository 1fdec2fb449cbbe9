// Classes of characters, and their forms under NFKC: the tables of `analysis/segmentation.py`.
#pragma once

#include <algorithm>
#include <span>
#include <string_view>

#include "integers.hpp"

namespace klsa {

enum : u8 {
    SEPARATOR = 0,
    LETTER = 1,         // or digit, of a script with spaces
    MARK = 2,           // belongs to the preceding character
    SPACE = 3,          // separates; runs are folded to one blank
    UNSPACED = 4,       // letter of a script without spaces
    UNSPACED_MARK = 5,  // belongs to the preceding character, or begins one
    APOSTROPHE = 6,     // separates, unless an English ending follows or within a Hebrew word
    EMOJI = 7,          // a word
    FLAG = 8,           // half of an emoji
    JAMO = 9,           // NFKC may compose it and its neighbours to a letter of a script without spaces
    QUOTE = 10,         // separates, unless within a Hebrew word
    JOINER = 11,        // a mark that separates after Arabic
    CHANGED = 16,       // flag: NFKC replaces it
    REORDERED = 32,     // flag: a mark that NFKC may move to the left
};

// Whether an ASCII character is a letter or digit.
inline bool is_ascii_word_character(u32 point) {
    return ('a' <= (point | 32) && (point | 32) <= 'z') || ('0' <= point && point <= '9');
}

inline bool is_among(u32 point, std::u32string_view points) {
    return points.find(char32_t(point)) != std::u32string_view::npos;
}

// Return the end of the letters of an English ending ('s, 't, 'm, 'd, 'll, 're or 've, in lower or
// upper case) whose apostrophe is at `at`; `at` if there are none.
template <class Text>
size_t after_ending_letters(const Text& text, size_t at) {
    const auto left = text.size() - at;
    if (left >= 2 && is_among(u32(text[at + 1]), U"sStTmMdD")) return at + 2;
    if (left >= 3)
        for (std::u32string_view ending : {U"ll", U"LL", U"re", U"RE", U"ve", U"VE"})
            if (u32(text[at + 1]) == ending[0] && u32(text[at + 2]) == ending[1]) return at + 3;
    return at;
}

struct CharacterTables {
    std::span<const u8> classes;   // by code point; those beyond are separators
    std::span<const u32> changed;  // code points that NFKC replaces, ascending
    std::span<const i32> starts;   // of the form of each, and the end of the last
    std::span<const u32> forms;    // code points

    u8 class_of(u32 point) const { return point < classes.size() ? classes[point] : u8(SEPARATOR); }

    bool is_ascii() const { return classes.size() == 128; }

    // The form of a code point that is marked as CHANGED.
    std::span<const u32> form_of(u32 point) const {
        const size_t place = std::lower_bound(changed.begin(), changed.end(), point) - changed.begin();
        if (place == changed.size()) return {};
        return forms.subspan(starts[place], starts[place + 1] - starts[place]);
    }
};

}  // namespace klsa
