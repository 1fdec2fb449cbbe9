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
        if constexpr (std::is_trivially_copyable_v<T>)
            append(values.data(), values.size());
        else
            for (const T& value : values) pack(value);
    }
    template <class T>
    void pack(const T& value) {
        if constexpr (std::is_trivially_copyable_v<T>)
            append(&value, 1);
        else
            visit(*this, value);
    }
};

// Reads what a packer wrote; throws std::invalid_argument if bytes are missing.
class Unpacker {
  public:
    explicit Unpacker(std::string_view bytes) : bytes_(bytes) {}

    template <class... T>
    void operator()(T&... values) {
        (unpack(values), ...);
    }

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
        require(size >= 0 && size_t(size) <= bytes_.size(), "seeds: bytes are missing");
        return size_t(size);
    }
    void unpack(std::string& text) {
        text.resize(size());
        take(text.data(), text.size());
    }
    void unpack(std::vector<i64>& values) {
        values.resize(size());
        u8 is_narrow;
        take(&is_narrow, 1);
        std::vector<u32> narrow(is_narrow ? values.size() : 0);
        take(narrow.data(), narrow.size());
        if (is_narrow)
            values.assign(narrow.begin(), narrow.end());
        else
            take(values.data(), values.size());
    }
    template <class T>
    void unpack(std::vector<T>& values) {
        values.resize(size());
        if constexpr (std::is_trivially_copyable_v<T>)
            take(values.data(), values.size());
        else
            for (T& value : values) unpack(value);
    }
    template <class T>
    void unpack(T& value) {
        if constexpr (std::is_trivially_copyable_v<T>)
            take(&value, 1);
        else
            visit(*this, value);
    }
};

}  // namespace klsa
