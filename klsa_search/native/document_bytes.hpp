// Bytes of each document: records, or codes of the forward index.
#pragma once

#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include "arrays.hpp"
#include "parts.hpp"

namespace klsa {

// The bytes of documents, in parts that follow one another; a document of damaged starts has none.
class DocumentBytes {
  public:
    using Arrays = std::vector<std::pair<Array1<const u8>, Array1<const i64>>>;

    explicit DocumentBytes(const Arrays& arrays) {
        require(!arrays.empty(), "parts: there is none");
        for (const auto& [content, starts] : arrays) {
            require(length(starts) > 0, "starts: give the end of the last document, too");
            parts_.push_back({size_, content, starts});
            size_ += length(starts) - 1;
        }
    }

    i64 size() const { return size_; }

    // Raise IndexError for an unknown document.
    void check(i64 document) const {
        if (document < 0 || document >= size_) throw std::out_of_range("there is no document of this doc id");
    }

    std::span<const u8> of(i64 document) const {
        const Part& part = part_of(parts_, document);
        const i64 begin = part.starts(document - part.first), end = part.starts(document - part.first + 1);
        if (begin < 0 || end < begin || end > length(part.content)) return {};
        return {part.content.data() + begin, size_t(end - begin)};
    }

  private:
    struct Part {
        i64 first;
        Kept<Array1<const u8>> content;
        Kept<Array1<const i64>> starts;
    };

    std::vector<Part> parts_;
    i64 size_ = 0;
};

}  // namespace klsa
