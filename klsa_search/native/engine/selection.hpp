// Selection and sorting of the largest keys, and thresholds of scores.
//
// The keys are those of `ranking_keys.hpp`.
// Included once for each instruction set: see `for_each_instruction_set.hpp`.

namespace klsa::KLSA_NS {

constexpr int DIGIT = 11, BUCKETS = 1 << DIGIT;
constexpr int SHORT = 48;  // keys up to which insertion sort is the fastest

// A number with at most k keys above it and at least k keys above or equal.
inline i64 key_threshold(const i64* keys, i64 count, i64 k) {
    i64 low = keys[0], high = keys[0];
    for (i64 i = 0; i < count; i++) {
        low = std::min(low, keys[i]);
        high = std::max(high, keys[i]);
    }
    low--;
    while (high - low > 1) {
        i64 middle = low + ((high - low) >> 1), above = 0;
        for (i64 i = 0; i < count; i++) above += keys[i] > middle;
        if (above > k) {
            low = middle;
        } else {
            high = middle;
            if (above == k) break;
        }
    }
    return high;
}

// Move the k largest of distinct keys to the front. Counting keys above a threshold has no
// unpredictable branches: it takes a third of the time of quickselect.
inline void select_largest(i64* keys, i64 count, i64 k, i64* spare) {
    if (k >= count) return;
    i64 threshold = key_threshold(keys, count, k), front = 0, others = 0;
    for (i64 i = 0; i < count; i++) {
        i64 key = keys[i];
        bool is_above = key > threshold;
        keys[front] = spare[others] = key;
        front += is_above;
        others += !is_above;
    }
    std::copy_n(spare, others, keys + front);
    if (front < k) std::swap(keys[front], *std::find(keys + front, keys + count - 1, threshold));
}

inline void insert_keys(i64* keys, i64 first, i64 after) {
    for (i64 i = first + 1; i < after; i++) {
        i64 key = keys[i], j = i - 1;
        for (; j >= first && keys[j] < key; j--) keys[j + 1] = keys[j];
        keys[j + 1] = key;
    }
}

// Sort keys by their bits from `low` up, largest first: by insertion if few, else stable radix.
inline void sort_by(i64* keys, i64 first, i64 after, i64* spare, int low) {
    if (after - first <= SHORT) return insert_keys(keys, first, after);
    i64 lowest = keys[first] >> low, highest = lowest;
    for (i64 i = first; i < after; i++) {
        lowest = std::min(lowest, keys[i] >> low);
        highest = std::max(highest, keys[i] >> low);
    }
    i32 places[BUCKETS];
    for (int shift = 0; (highest - lowest) >> shift > 0; shift += DIGIT) {
        auto bucket = [&](i64 key) { return BUCKETS - 1 - ((((key >> low) - lowest) >> shift) & (BUCKETS - 1)); };
        std::fill_n(places, BUCKETS, 0);
        for (i64 i = first; i < after; i++) places[bucket(keys[i])]++;
        i32 total = i32(first);
        for (i32& place : places) {
            i32 size = place;
            place = total;
            total += size;
        }
        for (i64 i = first; i < after; i++) spare[places[bucket(keys[i])]++] = keys[i];
        std::copy(spare + first, spare + after, keys + first);
    }
}

// Sort distinct keys, largest first: by score, then each run of equal scores by doc id.
inline void sort_descending(i64* keys, i64 count, i64* spare) {
    sort_by(keys, 0, count, spare, 32);
    for (i64 first = 0, after; first < count; first = after) {
        for (after = first + 1; after < count && keys[after] >> 32 == keys[first] >> 32;) after++;
        if (after - first > 1) sort_by(keys, first, after, spare, 0);
    }
}

constexpr int LANES = 64;     // arrays of scores are padded to a multiple of it
constexpr int HALVINGS = 32;  // bits of a score
constexpr int EVERY = 8;      // one vector in eight is sampled
constexpr int SAMPLED = 128;  // smallest number of vectors that are sampled

inline i64 count_above(const i32* numbers, i64 count, i64 threshold) {
    i32 above = 0, limit = i32(threshold);
    for (i64 i = 0; i < count; i++) above += numbers[i] > limit;
    return above;
}

inline i64 count_sampled(const i32* numbers, i64 count, i64 threshold) {
    i64 above = 0;
    for (i64 place = 0; place < count; place += EVERY * LANES)
        above += count_above(numbers + place, std::min<i64>(LANES, count - place), threshold);
    return above;
}

// Write the indices of numbers that exceed the limit, ascending; return how many. Numbers and indices
// have room for 64 more. The first four of 64 are written without a branch.
inline i64 indices_above(const i32* numbers, i64 size, i32 limit, i32* indices) {
    i64 count = 0;
    for (i64 begin = 0; begin < size; begin += LANES) {
        u64 mask = mask_above(numbers + begin, limit);
        if (size - begin < LANES) mask &= (u64(1) << (size - begin)) - 1;
        i32* next = indices + count;
        count += std::popcount(mask);
        for (int i = 0; i < 4; i++, mask &= mask - 1) *next++ = i32(begin + std::countr_zero(mask));
        for (; mask; mask &= mask - 1) *next++ = i32(begin + std::countr_zero(mask));
    }
    return count;
}

// A threshold between low, which `target` numbers exceed, and high, by bisection.
inline i64 bisect(const i32* numbers, i64 size, i64 low, i64 high, i64 target, bool sampled) {
    for (int i = 0; i < HALVINGS; i++) {
        i64 middle = (low + high) >> 1;
        i64 count = sampled ? count_sampled(numbers, size, middle) : count_above(numbers, size, middle);
        if (count >= target) {
            low = middle;
            if (count <= target + target / 8) break;
        } else {
            high = middle;
        }
    }
    return low;
}

// A threshold that at least `target` scores exceed, and hardly more than twice as many. Counting is
// so cheap that this takes a fraction of the time of a selection, above all on a sample.
inline i64 find_threshold(const i32* numbers, i64 size, i64 low, i64 high, i64 target) {
    if (size >= SAMPLED * LANES) {
        i64 share = target / EVERY + target / (4 * EVERY) + 1;
        if (count_sampled(numbers, size, low) > share) {
            i64 threshold = bisect(numbers, size, low, high, share, true);
            if (count_above(numbers, size, threshold) >= target) return threshold;
            high = threshold;
        }
    }
    return bisect(numbers, size, low, high, target, false);
}

// The index of the last of ascending entries that is at most the key, or low. Without a branch,
// which would be mispredicted.
inline i64 find(const u32* entries, i64 low, i64 high, u32 key) {
    for (i64 count = high - low; count > 1;) {
        i64 half = count >> 1;
        low = entries[low + half] <= key ? low + half : low;
        count -= half;
    }
    return low;
}

}  // namespace klsa::KLSA_NS
