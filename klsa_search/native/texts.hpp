// Python strings in UTF-8, and tables of characters as Python passes them.
#pragma once

#include <string_view>

#include "arrays.hpp"
#include "characters.hpp"
#include "checks.hpp"

namespace klsa {

// The tables with the arrays that hold them.
class Characters {
  public:
    Characters(Array1<const u8> classes, Array1<const u32> changed, Array1<const i32> starts, Array1<const u32> forms)
        : classes_(classes), changed_(changed), starts_(starts), forms_(forms) {
        require(length(starts) == length(changed) + 1, "starts: give the start of each form, and the end of the last");
        require_offsets(starts, length(forms), "starts");
    }

    CharacterTables tables() const { return {span_of(classes_), span_of(changed_), span_of(starts_), span_of(forms_)}; }

    Kept<Array1<const u8>> classes_;
    Kept<Array1<const u32>> changed_;
    Kept<Array1<const i32>> starts_;
    Kept<Array1<const u32>> forms_;
};

// Returns text in UTF-8 as a Python string; raises UnicodeDecodeError.
inline nb::str decoded(std::span<const u8> text, const char* errors = nullptr) {
    const char* characters = reinterpret_cast<const char*>(text.data());
    nb::str result = nb::steal<nb::str>(PyUnicode_DecodeUTF8(characters, Py_ssize_t(text.size()), errors));
    if (!result.is_valid()) throw nb::python_error();
    return result;
}

constexpr const char* SURROGATES = "surrogatepass";

// A Python string in UTF-8, in which lone surrogates have three bytes.
class Encoded {
  public:
    explicit Encoded(nb::str text) : owner_(text), length_(PyUnicode_GetLength(text.ptr())) {
        Py_ssize_t size;
        const char* data = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
        if (!data) {
            PyErr_Clear();
            const auto bytes = nb::steal<nb::bytes>(PyUnicode_AsEncodedString(text.ptr(), "utf-8", SURROGATES));
            if (!bytes.is_valid()) throw nb::python_error();
            owner_ = bytes, data = bytes.c_str(), size = Py_ssize_t(bytes.size());
        }
        bytes_ = {reinterpret_cast<const u8*>(data), size_t(size)};
    }

    std::span<const u8> bytes() const { return bytes_; }
    std::string_view view() const { return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()}; }
    i64 length() const { return length_; }  // in code points
    bool is_ascii() const { return size_t(length_) == bytes_.size(); }

  private:
    nb::object owner_;
    i64 length_;
    std::span<const u8> bytes_;
};

}  // namespace klsa
