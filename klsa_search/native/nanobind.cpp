// nanobind itself, from the sources in its package.
#include "nb_combined.cpp"
