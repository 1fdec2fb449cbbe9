// Words of ASCII texts and their numbers, by a table of the forms met before.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "characters.hpp"

namespace klsa {

// Return the end of the English ending at `at`, or `at`.
inline size_t after_english_ending(std::string_view text, size_t at) {
    if (at >= text.size() || text[at] != '\'') return at;
    const size_t after = after_ending_letters(text, at);
    return after < text.size() && is_ascii_word_character(text[after]) ? at : after;
}

// Call `visit(word)` for each word of an ASCII text, as `segmentation.words` finds them.
template <class Visit>
void for_each_ascii_word(std::string_view text, Visit visit) {
    for (size_t at = 0; at < text.size();) {
        if (!is_ascii_word_character(text[at])) {
            at++;
            continue;
        }
        const size_t begin = at;
        while (at < text.size() && is_ascii_word_character(text[at])) at++;
        at = after_english_ending(text, at);
        visit(text.substr(begin, at - begin));
    }
}

// Return whether an ASCII text may contain a name with signs, such as C++, C# or .NET.
inline bool may_have_names(std::string_view text) {
    for (std::string_view sign : {"++", "#", ".net", ".NET", ".Net"})
        if (text.find(sign) != std::string_view::npos) return true;
    return false;
}

// A hash table from forms of words to numbers: linear probing, emptied when it is full.
class FormTable {
  public:
    explicit FormTable(size_t capacity) : capacity_(capacity) { clear(); }

    // Return the number of a form, or that of `resolve(form)`, which is kept.
    template <class Resolve>
    i32 number(std::string_view form, Resolve resolve) {
        if (const i32* kept = find(form)) return *kept;
        const i32 number = resolve(form);
        keep(form, number);
        return number;
    }

    // Return the number of a form, which is not empty; null if it is not kept.
    const i32* find(std::string_view form) const {
        const u32 hash = hash_of(form);
        const size_t last = slots_.size() - 1;
        for (size_t slot = hash & last;; slot = (slot + 1) & last) {
            const Slot& at = slots_[slot];
            if (at.length == 0) return nullptr;
            if (at.hash == hash && std::string_view(characters_).substr(at.begin, at.length) == form) return &at.number;
        }
    }

    void keep(std::string_view form, i32 number) {
        if (size_ >= capacity_) clear();
        if (2 * ++size_ > slots_.size()) grow();
        place({u32(characters_.size()), u32(form.size()), hash_of(form), number});
        characters_ += form;
    }

    size_t size() const { return size_; }
    size_t characters() const { return characters_.size(); }

    void clear() {
        size_ = 0;
        characters_.clear();
        slots_.assign(1024, {});
    }

  private:
    struct Slot {
        u32 begin = 0, length = 0, hash = 0;  // a length of 0 for none
        i32 number = 0;
    };

    static u32 hash_of(std::string_view form) {
        u64 hash = 0xcbf29ce484222325;  // FNV-1a
        for (const char c : form) hash = (hash ^ u8(c)) * 0x100000001b3;
        return u32(hash ^ hash >> 32);
    }

    void grow() {
        std::vector<Slot> old(2 * slots_.size());
        old.swap(slots_);
        for (const Slot& slot : old)
            if (slot.length) place(slot);
    }

    void place(Slot kept) {
        const size_t last = slots_.size() - 1;
        size_t slot = kept.hash & last;
        while (slots_[slot].length) slot = (slot + 1) & last;
        slots_[slot] = kept;
    }

    size_t capacity_, size_ = 0;
    std::string characters_;
    std::vector<Slot> slots_;
};

}  // namespace klsa
