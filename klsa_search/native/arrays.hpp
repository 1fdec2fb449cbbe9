// NumPy arrays as arguments, and the checks of what they hold.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "gil.hpp"
#include "integers.hpp"

namespace klsa {

namespace nb = nanobind;

// Arrays of one type in C order. Bind them with `exact`, or nanobind passes a converted copy.
template <class T>
using Array1 = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Array2 = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// An argument that is never converted or copied.
inline auto exact(const char* name) {
    return nb::arg(name).noconvert();
}

// Raise ValueError unless a condition holds.
inline void require(bool holds, const char* message) {
    if (!holds) throw std::invalid_argument(message);
}

// An array that a function returns.
template <class T>
using Owned = nb::ndarray<nb::numpy, T, nb::ndim<1>>;

// Return a vector as an array of a shape, without a copy.
template <class Array, class T>
Array owned_as(std::vector<T> values, const std::vector<size_t>& shape) {
    static_assert(sizeof(typename Array::Scalar) == sizeof(T));
    auto* kept = new std::vector<T>(std::move(values));
    nb::capsule owner(kept, [](void* vector) noexcept { delete static_cast<std::vector<T>*>(vector); });
    return Array(kept->data(), shape.size(), shape.data(), owner);
}

template <class T>
auto owned(std::vector<T> values, const std::vector<size_t>& shape) {
    return owned_as<nb::ndarray<nb::numpy, T>>(std::move(values), shape);
}

// Return a vector as an array, without a copy; To may be another type of the same size.
template <class To = void, class T>
auto owned(std::vector<T> values) {
    const size_t size = values.size();
    return owned_as<Owned<std::conditional_t<std::is_void_v<To>, T, To>>>(std::move(values), {size});
}

template <class A>
i64 length(const A& array) {
    return i64(array.shape(0));
}

// Raise ValueError unless all values are in [low, high).
template <class T>
void require_between(const T* values, i64 count, i64 low, i64 high, const char* name) {
    bool outside = false;
    for (i64 i = 0; i < count; i++) outside |= i64(values[i]) < low || i64(values[i]) >= high;
    if (outside)
        throw std::invalid_argument(std::string(name) + ": a value is outside of " + std::to_string(low) + " to " +
                                    std::to_string(high - 1));
}

// Raise ValueError unless `starts` begins at 0 or more, never decreases, and ends at `end` at most.
template <class T>
void require_offsets(const T* starts, i64 count, i64 end, const char* name) {
    bool wrong = count > 0 && (i64(starts[0]) < 0 || i64(starts[count - 1]) > end);
    for (i64 i = 1; i < count; i++) wrong |= starts[i] < starts[i - 1];
    if (wrong) throw std::invalid_argument(std::string(name) + ": the offsets decrease or leave their array");
}

}  // namespace klsa
