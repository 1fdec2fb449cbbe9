// NumPy arrays as arguments and results.
#pragma once

#include <nanobind/nanobind.h>

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

// The types of arrays as signatures have them. Compilers join signatures character by character.
constexpr auto type_name(const bool*) {
    return nb::detail::const_name("numpy.ndarray[dtype=bool]");
}
constexpr auto type_name(const i8*) {
    return nb::detail::const_name("numpy.ndarray[dtype=int8]");
}
constexpr auto type_name(const u8*) {
    return nb::detail::const_name("numpy.ndarray[dtype=uint8]");
}
constexpr auto type_name(const i16*) {
    return nb::detail::const_name("numpy.ndarray[dtype=int16]");
}
constexpr auto type_name(const u16*) {
    return nb::detail::const_name("numpy.ndarray[dtype=uint16]");
}
constexpr auto type_name(const i32*) {
    return nb::detail::const_name("numpy.ndarray[dtype=int32]");
}
constexpr auto type_name(const u32*) {
    return nb::detail::const_name("numpy.ndarray[dtype=uint32]");
}
constexpr auto type_name(const i64*) {
    return nb::detail::const_name("numpy.ndarray[dtype=int64]");
}
constexpr auto type_name(const u64*) {
    return nb::detail::const_name("numpy.ndarray[dtype=uint64]");
}
constexpr auto type_name(const f32*) {
    return nb::detail::const_name("numpy.ndarray[dtype=float32]");
}
constexpr auto type_name(const f64*) {
    return nb::detail::const_name("numpy.ndarray[dtype=float64]");
}

// The type of numbers, without a class for each.
struct NumberType {
    char kind;  // '?' for bool, 'i', 'u' or 'f'
    u8 size;    // bytes

    bool operator==(const NumberType&) const = default;
};
template <class T>
constexpr NumberType number_type() {
    const char kind = std::is_same_v<T, bool> ? '?' : std::is_floating_point_v<T> ? 'f' : T(-1) < T(0) ? 'i' : 'u';
    return {kind, sizeof(T)};
}

// The memory of an array that is an argument. It belongs to the caller until the call returns, and
// then to whoever keeps its owner.
class ArrayArgument {
  public:
    size_t shape(size_t dimension) const { return shape_[dimension]; }
    nb::handle owner() const { return owner_; }

    // Take an array; return false if it is none of this type, or its rows are not side by side.
    bool load(nb::handle object, nb::detail::cleanup_list* cleanup, NumberType type, int dimensions,
              bool is_written) noexcept;

  protected:
    void* data_ = nullptr;
    size_t shape_[2] = {1, 1};
    nb::handle owner_;
};

// An array in C order, never a converted copy. Const numbers are not written.
template <class T, int N>
class NumpyArray : public ArrayArgument {
  public:
    using Scalar = T;

    T* data() const { return static_cast<T*>(data_); }
    size_t size() const { return shape_[0] * shape_[1]; }
    T& operator()(i64 at) const {
        static_assert(N == 1);
        return data()[at];
    }
    T& operator()(i64 row, i64 column) const {
        static_assert(N == 2);
        return data()[row * i64(shape_[1]) + column];
    }
};
template <class T>
using Array1 = NumpyArray<T, 1>;
template <class T>
using Array2 = NumpyArray<T, 2>;

// An array that outlives the call.
template <class A>
class Kept : public A {
  public:
    Kept(const A& array) : A(array), owner_(nb::borrow(array.owner())) {}

  private:
    nb::object owner_;
};

// Keeps arrays alive that views refer to.
class Owners {
  public:
    template <class A>
    const A& keep(const A& array) {
        objects_.push_back(nb::borrow(array.owner()));
        return array;
    }
    void keep(const Owners& others) { objects_.insert(objects_.end(), others.objects_.begin(), others.objects_.end()); }

  private:
    std::vector<nb::object> objects_;
};

// An array that a function returns.
template <class T>
class Owned : public nb::object {
  public:
    static constexpr auto Name = type_name(static_cast<T*>(nullptr));
    using nb::object::object;
    explicit Owned(nb::object array) : nb::object(std::move(array)) {}
};

// Return an array of the memory of `owner`.
nb::object new_array(void* data, NumberType type, const std::vector<size_t>& shape, nb::handle owner);

// Return a vector as an array of a shape, without a copy.
template <class T, class Item = T>
Owned<Item> owned(std::vector<T> values, const std::vector<size_t>& shape) {
    static_assert(sizeof(Item) == sizeof(T));
    auto* kept = new std::vector<T>(std::move(values));
    nb::capsule owner(kept, [](void* vector) noexcept { delete static_cast<std::vector<T>*>(vector); });
    return Owned<Item>(new_array(kept->data(), number_type<Item>(), shape, owner));
}
template <class T>
Owned<T> owned(std::vector<T> values) {
    const size_t size = values.size();
    return owned(std::move(values), {size});
}

// Return an array of the memory of an argument that was kept.
template <class T>
Owned<T> kept_array(const NumpyArray<const T, 1>& array) {
    return Owned<T>(new_array(const_cast<T*>(array.data()), number_type<T>(), {array.size()}, array.owner()));
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
    return owned<u8, bool>(std::move(flags.values), {size});
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

template <class T, int N>
struct nanobind::detail::type_caster<klsa::NumpyArray<T, N>> {
    using Array = klsa::NumpyArray<T, N>;
    NB_TYPE_CASTER(Array, klsa::type_name(static_cast<T*>(nullptr)))

    bool from_python(handle source, uint32_t, cleanup_list* cleanup) noexcept {
        return value.load(source, cleanup, klsa::number_type<std::remove_const_t<T>>(), N, !std::is_const_v<T>);
    }
};
