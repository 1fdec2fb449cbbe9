// NumPy arrays as arguments and results.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <span>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "checks.hpp"
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

template <class T>
Owned<T> owned(std::vector<T> values) {
    const size_t size = values.size();
    return owned_as<Owned<T>>(std::move(values), {size});
}

// 0 or 1 for each item of an array of bool that a function returns.
struct Flags {
    std::vector<u8> values;
};

// What Python gets: vectors become arrays.
template <class T>
T returned(T value) {
    return value;
}
template <class T>
Owned<T> returned(std::vector<T> values) {
    return owned(std::move(values));
}
inline Owned<bool> returned(Flags flags) {
    const size_t size = flags.values.size();
    return owned_as<Owned<bool>>(std::move(flags.values), {size});
}
template <class... T>
std::tuple<Owned<T>...> returned(std::tuple<std::vector<T>...> vectors) {
    return std::apply([](auto&... each) { return std::tuple(owned(std::move(each))...); }, vectors);
}

template <class F>
auto run_without_gil(F run) {
    if constexpr (std::is_void_v<decltype(run())>) {
        WithoutGil released;
        run();
    } else {
        return returned([&] {
            WithoutGil released;
            return run();
        }());
    }
}

// A function to bind that runs without the GIL; it must not touch Python objects. Its arrays belong
// to the caller: the last reference to an array takes the GIL. Vectors that it returns become arrays.
template <class R, class... A>
auto without_gil(R (*function)(A...)) {
    return [function](const std::remove_cvref_t<A>&... arguments) {
        return run_without_gil([&] { return function(arguments...); });
    };
}
template <class R, class C, class... A>
auto without_gil(R (C::*method)(A...)) {
    return [method](C& self, const std::remove_cvref_t<A>&... arguments) {
        return run_without_gil([&] { return (self.*method)(arguments...); });
    };
}
template <class R, class C, class... A>
auto without_gil(R (C::*method)(A...) const) {
    return [method](const C& self, const std::remove_cvref_t<A>&... arguments) {
        return run_without_gil([&] { return (self.*method)(arguments...); });
    };
}

template <class A>
i64 length(const A& array) {
    return i64(array.shape(0));
}

template <class T>
std::span<T> span_of(const Array1<T>& array) {
    return {array.data(), array.shape(0)};
}

// Return an item of a list of objects; raise ValueError if it is None.
template <class T>
const T& present(const T* object, const char* name) {
    if (!object) throw std::invalid_argument(std::string(name) + ": one is None");
    return *object;
}

}  // namespace klsa
