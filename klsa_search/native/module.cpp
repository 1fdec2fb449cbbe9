// The module klsa_search._native.
#include <stdexcept>
#include <string>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.hpp"
#include "gil.hpp"
#include "instruction_sets.hpp"

namespace {

const std::vector<std::string> NAMES{"baseline", "avx2", "avx512"};

std::vector<std::string> instruction_sets() {
    return {NAMES.begin() + int(klsa::least_instruction_set()),
            NAMES.begin() + int(klsa::largest_instruction_set()) + 1};
}

std::string select_instruction_set(const std::string& name) {
    const int last = int(klsa::largest_instruction_set());
    for (int i = int(klsa::least_instruction_set()); i <= last; i++)
        if (NAMES[i] == name) return NAMES[int(klsa::active_instruction_set.exchange(klsa::InstructionSet(i)))];
    throw std::invalid_argument("`" + name + "` is not an instruction set of this processor; see instruction_sets()");
}

}  // namespace

NB_MODULE(_native, module) {
    if (klsa::best_instruction_set() < klsa::largest_instruction_set())
        throw nanobind::import_error("klsa_search._native is compiled for another processor; install it again");
    nanobind::set_leak_warnings(false);  // references of an interpreter that exits are no leaks
    nanobind::module_::import_("atexit").attr("register")(nanobind::cpp_function(&klsa::WithoutGil::end));
    module.doc() = R"(
        The extension module in C++, compiled from klsa_search/native when the package is installed.

        Arrays are in C order and of the type that is stated; they are never converted or copied. Wrong
        shapes or values outside of their range raise ValueError, wrong types TypeError. Functions that
        take arrays release the GIL.
    )";
    module.def("instruction_sets", &instruction_sets,
               "Return those of \"baseline\", \"avx2\", \"avx512\" that this processor supports, in this order; "
               "only the largest if the module was compiled for this machine.");
    module.def("select_instruction_set", &select_instruction_set, nanobind::arg("name"), R"(
        Use another instruction set from now on and return the name of the previous one.

        All give the same bits; the largest one is chosen at import. For tests.
    )");
    klsa::bind_counts(module);
    klsa::bind_engine(module);
    klsa::bind_forward(module);
    klsa::bind_matrices(module);
    klsa::bind_neighbours(module);
    klsa::bind_snippets(module);
    klsa::bind_words(module);
}
