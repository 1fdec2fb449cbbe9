// What each source file adds to the module.
#pragma once

#include <nanobind/nanobind.h>

namespace klsa {

void bind_counts(nanobind::module_& module);
void bind_engine(nanobind::module_& module);
void bind_forward(nanobind::module_& module);
void bind_matrices(nanobind::module_& module);
void bind_neighbours(nanobind::module_& module);
void bind_snippets(nanobind::module_& module);
void bind_words(nanobind::module_& module);

}  // namespace klsa
