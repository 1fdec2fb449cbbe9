// Seeds as bytes, to send them to another process of the same machine or version.
#pragma once

#include <cstring>
#include <limits>
#include <string>
#include <type_traits>

#include "results.hpp"

namespace klsa {

template <class Archive, class Value>
void visit(Archive& archive, Value& v) {
    using T = std::remove_const_t<Value>;
    if constexpr (std::is_same_v<T, Features>)
        archive(v.starts, v.entries, v.scalars);
    else if constexpr (std::is_same_v<T, Rows>)
        archive(v.documents, v.levels, v.steps, v.columns, v.width, v.near);
    else if constexpr (std::is_same_v<T, Seeds>)
        archive(v.documents, v.ordinals, v.steps, v.latent, v.impacts, v.term_weights, v.half, v.share, v.angle,
                v.features, v.rows, v.names);
    else if constexpr (std::is_same_v<T, SharedSeeds>)
        archive(v.first, v.best, v.seeds, v.centre, v.factors, v.features, v.sums, v.near, v.estimates, v.remote,
                v.impacts, v.alpha, v.weights, v.seed_features, v.rows, v.names, v.remote_names);
    else if constexpr (std::is_same_v<T, Centre>)
        archive(v.scale, v.mean, v.mean_square, v.step);
    else if constexpr (std::is_same_v<T, Factors>)
        archive(v.expansion, v.coverage, v.latent, v.lexical);
    else
        archive(v.first, v.second);  // a pair
}

// Appends values to bytes. Integers of 64 bits take 32 if all of an array fit.
class Packer {
  public:
    std::string bytes;

    template <class... T>
    void operator()(const T&... values) {
        (pack(values), ...);
    }

  private:
    template <class T>
    void append(const T* values, size_t count) {
        bytes.append(reinterpret_cast<const char*>(values), count * sizeof(T));
    }
    void pack(const std::string& text) {
        i64 size = i64(text.size());
        append(&size, 1);
        bytes += text;
    }
    void pack(const std::vector<i64>& values) {
        constexpr i64 LARGEST = std::numeric_limits<u32>::max();
        u8 is_narrow =
            std::all_of(values.begin(), values.end(), [](i64 value) { return value >= 0 && value <= LARGEST; });
        i64 size = i64(values.size());
        append(&size, 1);
        append(&is_narrow, 1);
        std::vector<u32> narrow;
        if (is_narrow) narrow.assign(values.begin(), values.end());
        is_narrow ? append(narrow.data(), narrow.size()) : append(values.data(), values.size());
    }
    template <class T>
    void pack(const std::vector<T>& values) {
        i64 size = i64(values.size());
        append(&size, 1);
        if constexpr (std::is_arithmetic_v<T>)
            append(values.data(), values.size());
        else
            for (const T& value : values) pack(value);
    }
    template <class T>
    void pack(const T& value) {
        if constexpr (std::is_arithmetic_v<T>)
            append(&value, 1);
        else
            visit(*this, value);
    }
};

// Reads what a packer wrote; throws std::invalid_argument if bytes are missing or left over.
class Unpacker {
  public:
    explicit Unpacker(std::string_view bytes) : bytes_(bytes) {}

    template <class... T>
    void operator()(T&... values) {
        (unpack(values), ...);
    }
    void finish() const { require(bytes_.empty(), "seeds: bytes are left over"); }

  private:
    std::string_view bytes_;

    template <class T>
    void take(T* values, size_t count) {
        require(count <= bytes_.size() / sizeof(T), "seeds: bytes are missing");
        if (count > 0) std::memcpy(values, bytes_.data(), count * sizeof(T));
        bytes_.remove_prefix(count * sizeof(T));
    }
    size_t size() {
        i64 size;
        take(&size, 1);
        require(size >= 0, "seeds: bytes are missing");
        return size_t(size);
    }
    template <class Values>
    void take_all(Values& values, size_t size) {
        require(size <= bytes_.size() / sizeof(values[0]), "seeds: bytes are missing");  // before memory is taken
        values.resize(size);
        take(values.data(), size);
    }
    void unpack(std::string& text) { take_all(text, size()); }
    void unpack(std::vector<i64>& values) {
        const size_t count = size();
        u8 is_narrow;
        take(&is_narrow, 1);
        if (!is_narrow) return take_all(values, count);
        std::vector<u32> narrow;
        take_all(narrow, count);
        values.assign(narrow.begin(), narrow.end());
    }
    template <class T>
    void unpack(std::vector<T>& values) {
        const size_t count = size();
        if constexpr (std::is_arithmetic_v<T>)
            take_all(values, count);
        else
            for (size_t i = 0; i < count; i++) unpack(values.emplace_back());
    }
    template <class T>
    void unpack(T& value) {
        if constexpr (std::is_arithmetic_v<T>)
            take(&value, 1);
        else
            visit(*this, value);
    }
};

}  // namespace klsa
