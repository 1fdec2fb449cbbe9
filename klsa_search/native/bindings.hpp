// What each source file adds to the module.
#pragma once

#include <nanobind/nanobind.h>

namespace klsa {

void bind_counts(nanobind::module_& module);
void bind_engine(nanobind::module_& module);
void bind_fold_in(nanobind::module_& module);
void bind_forward(nanobind::module_& module);
void bind_neighbours(nanobind::module_& module);
void bind_packed_rows(nanobind::module_& module);
void bind_pair_codes(nanobind::module_& module);
void bind_postings(nanobind::module_& module);
void bind_products(nanobind::module_& module);
void bind_query_forms(nanobind::module_& module);
void bind_reverse_neighbours(nanobind::module_& module);
void bind_snippets(nanobind::module_& module);
void bind_sums(nanobind::module_& module);
void bind_vectors(nanobind::module_& module);
void bind_word_numbers(nanobind::module_& module);

}  // namespace klsa
