// Bindings of word_numbers.hpp.
#include "word_numbers.hpp"

#include <nanobind/stl/pair.h>

#include "arrays.hpp"
#include "bindings.hpp"

namespace klsa {
namespace {

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

    // The characters of a text, or none if one is not ASCII.
    static std::string_view ascii(nb::handle text) {
        Py_ssize_t size;
        if (PyUnicode_GetLength(text.ptr()) == 0) return {"", 0};
        const char* data = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
        if (!data) {  // a lone surrogate
            PyErr_Clear();
            return {};
        }
        // A text has as many bytes as characters only if all are ASCII.
        return size == PyUnicode_GetLength(text.ptr()) ? std::string_view(data, size_t(size)) : std::string_view();
    }

    FormTable forms_;
    bool names_;
};

}  // namespace

void bind_word_numbers(nb::module_& module) {
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
}

}  // namespace klsa
