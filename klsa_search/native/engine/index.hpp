// What a search reads: views of NumPy arrays, checked once.
//
// Nothing here owns the memory; the Python objects that do are kept by the bindings. After the
// checks, offsets are valid. Document numbers in entries are not checked here, which would read
// every page of an index: the searcher's buffers are large enough for any number that the bits of
// an entry can hold.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "../checks.hpp"
#include "../integers.hpp"
#include "../parts.hpp"

namespace klsa {

// A one-dimensional array.
template <class T>
struct Array {
    const T* data = nullptr;
    i64 size = 0;

    const T& operator[](i64 i) const { return data[i]; }
    std::span<const T> items() const { return {data, size_t(size)}; }
};

// A two-dimensional array; indexing gives a row.
template <class T>
struct Table {
    const T* data = nullptr;
    i64 rows = 0, width = 0;

    const T* operator[](i64 row) const { return data + row * width; }
};

constexpr int MAX_BLOCK_BITS = 16;
constexpr i64 NUMBERS = i64(1) << 24;      // document and feature numbers have 24 bits
constexpr u32 LEVELS = 255;                // largest level of an entry: the other 8 bits
constexpr i64 FIRST_LATER = i64(1) << 40;  // least ordinal of a document written after the build

// The postings of consecutive documents: see `klsa_search.kernels.postings`.
struct PostingLists {
    i64 size = 0;  // documents
    int block_bits = 0;
    Array<i64> starts, run_starts;
    Array<u32> entries;
    Table<u16> runs;  // block, length - 1, maximum saturation
    i64 blocks = 0;

    i64 terms() const { return starts.size - 1; }

    void check() {
        require(block_bits >= 6 && block_bits <= MAX_BLOCK_BITS, "block_bits: not 6 to 16");
        require(size >= 0 && size <= NUMBERS, "size: more than 2^24 documents");
        require(size > 0 || entries.size == 0, "entries: postings without documents");
        require(runs.width == 3, "runs: not 3 columns");
        require(starts.size > 0 && starts.size == run_starts.size, "starts and run_starts: their lengths differ");
        require_offsets(starts.items(), entries.size, "starts");
        require_offsets(run_starts.items(), runs.rows, "run_starts");
        blocks = std::max<i64>(1, (size + (i64(1) << block_bits) - 1) >> block_bits);
    }
};

// Posting lists at their place in an index.
struct Segment : PostingLists {
    i64 first = 0;                  // doc id of the first document
    bool is_renumbered = false;     // whether it numbers terms differently than the index
    Array<i64> terms, local_terms;  // then the index's numbers, ascending, and its own

    void check() const {
        require(first >= 0 && first + size <= NUMBERS, "first: no place of a segment");
        require(terms.size == local_terms.size, "terms: not as many as local numbers");
        for (i64 i = 0; i < terms.size; i++) {
            bool is_valid = local_terms[i] >= 0 && local_terms[i] < PostingLists::terms();
            require(is_valid && (i == 0 || terms[i - 1] < terms[i]), "terms: not ascending, or no local number");
        }
    }

    // The segment's number of a term of the index, or -1.
    i64 local_term(i64 term) const {
        if (!is_renumbered) return term < PostingLists::terms() ? term : -1;
        const i64 *end = terms.data + terms.size, *at = std::lower_bound(terms.data, end, term);
        return at == end || *at != term ? -1 : local_terms[at - terms.data];
    }
};

// A set of documents, one bit each; empty words for all documents.
struct Mask {
    Array<u64> words;

    bool is_all() const { return words.size == 0; }
    bool contains(i64 document) const { return is_all() || (words[document >> 6] >> (document & 63) & 1); }

    // The bits of a document and of the 63 after it.
    u64 bits_from(i64 document) const {
        i64 at = document >> 6, shift = document & 63;
        u64 bits = words[at] >> shift;
        return shift == 0 || at + 1 == words.size ? bits : bits | words[at + 1] << (64 - shift);
    }
};

// The postings of all segments.
struct Postings {
    std::vector<Segment> segments;
    Table<u16> best;  // of each term, its best, 10th, 100th and 1,000th best saturation
    Mask live;
    i64 size = 0;     // doc ids, those of deleted documents included
    i64 deleted = 0;  // documents
    i64 blocks = 0;   // of all segments
    int block_bits = 0;
    double step = 0;  // value of one step of a score

    // The saturation of a term in a document, 0 if it does not contain it. Cost: the blocks before.
    u16 saturation(i64 term, i64 document) const {
        const Segment& segment = part_of(segments, document);
        i64 local = segment.local_term(term), block = (document - segment.first) >> block_bits;
        if (local < 0) return 0;
        i64 at = segment.starts[local], last = segment.starts[local + 1];
        for (i64 i = segment.run_starts[local]; i < segment.run_starts[local + 1]; i++) {
            const u16* run = segment.runs[i];
            i64 end = std::min(at + run[1] + 1, last);
            if (run[0] == block) {
                u32 place = u32(document - segment.first - (block << block_bits));
                const u32 *entries = segment.entries.data,
                          *found = std::lower_bound(entries + at, entries + end, place << 16);
                return found < entries + end && *found >> 16 == place ? u16(*found) : 0;
            }
            at = end;
        }
        return 0;
    }

    void check() {
        require(!segments.empty(), "segments: none");
        block_bits = segments[0].block_bits;
        for (const Segment& segment : segments) {
            require(segment.block_bits == block_bits, "segments: their block_bits differ");
            require(segment.first == size, "segments: they do not follow one another");
            size = segment.first + segment.size;
            blocks += segment.blocks;
        }
        require(best.width == 4, "best: not 4 columns");
        check_mask(live);
    }

    void check_mask(const Mask& mask) const {
        bool fits = mask.is_all() || mask.words.size == (size + 63) / 64;
        require(fits, "mask: it has another number of documents than the index");
    }
};

// The rows of D, features and vectors of consecutive documents: see
// `klsa_search.lowrank.sparse_expansion`.
struct DocumentRows {
    i64 first = 0;    // doc id of the first document
    Table<u32> rows;  // the largest entries of each row of D: document << 8 | level
    Table<f32> scales;
    Array<i64> feature_starts;
    Array<u32> features;         // feature << 8 | level
    Table<i8> document_vectors;  // coordinates, then three floats: see `Model::scalars`

    void check() const {
        i64 documents = rows.rows;
        require(scales.rows == documents && scales.width >= 1, "scales: not a row for each document");
        require(feature_starts.size == documents + 1, "starts: not an offset for each document, and the end");
        require_offsets(feature_starts.items(), features.size, "starts");
        bool valid = document_vectors.rows == documents && document_vectors.width % 16 == 0;
        require(valid && document_vectors.width >= 12, "document_vectors: their shape does not fit");
    }
};

// The expansion: the rows of all documents, and the vectors of terms.
struct Model {
    std::vector<DocumentRows> parts;
    Table<i8> term_vectors;  // coordinates, then their step as a float
    Table<u32> remote_rows;  // entries of the rows in other partitions, by ordinals
    Table<u8> remote_levels;
    bool is_partition = false;  // then the ordinals of the documents of the build
    Array<i64> ordinals;
    i64 dimensions = 0, neighbours = 0;
    i64 documents = 0, row_width = 0, vector_width = 0;  // of all parts

    // Place the parts one after the other, and check all.
    void check() {
        require(!parts.empty(), "parts: there is none");
        row_width = parts[0].rows.width;
        vector_width = parts[0].document_vectors.width;
        for (DocumentRows& part : parts) {
            part.first = documents;
            documents += part.rows.rows;
            bool fits = part.rows.width == row_width && part.document_vectors.width == vector_width;
            require(fits, "parts: their rows or vectors have different widths");
        }
        require(neighbours >= 0 && neighbours <= row_width, "neighbours: more than entries of a row");
        require(vector_width >= dimensions + 12, "document_vectors: their shape does not fit");
        bool valid = term_vectors.width % 4 == 0 && term_vectors.width >= dimensions + 4;
        require(valid && dimensions >= 0, "term_vectors: their shape does not fit");
        valid = remote_rows.rows == remote_levels.rows && remote_rows.rows <= documents;
        if (remote_rows.rows > 0)
            valid = valid && remote_rows.width == remote_levels.width && remote_rows.width >= neighbours;
        require(valid, "remote_rows: their shape does not fit");
        require(ordinals.size <= documents, "ordinals: more than documents");
    }

    // The number of a document that no document of another partition has: see `Snapshot.ordinals_of`.
    i64 ordinal(i64 document) const {
        if (!is_partition) return document;
        return document < ordinals.size ? ordinals[document] : FIRST_LATER + document;
    }

    // The document with an ordinal; -1 for one of another partition.
    i64 document_of(i64 ordinal) const {
        if (!is_partition) return ordinal < documents ? ordinal : -1;
        i64 later = ordinal - FIRST_LATER;
        if (later >= 0) return later >= ordinals.size && later < documents ? later : -1;
        const i64* at = ordinals.data;  // by halves, without a branch that would be mispredicted
        for (i64 count = ordinals.size; count > 1;) {
            i64 half = count >> 1;
            at += at[half] <= ordinal ? half : 0;
            count -= half;
        }
        return ordinals.size > 0 && *at == ordinal ? at - ordinals.data : -1;
    }

    const u32* row(i64 document) const {
        const DocumentRows& part = part_of(parts, document);
        return part.rows[document - part.first];
    }
    // The step of the levels of a row.
    const f32& row_step(i64 document) const {
        const DocumentRows& part = part_of(parts, document);
        return part.scales[document - part.first][0];
    }
    const i64* feature_start(i64 document) const {
        const DocumentRows& part = part_of(parts, document);
        return part.feature_starts.data + document - part.first;
    }
    Array<u32> features_of(i64 document) const {
        const DocumentRows& part = part_of(parts, document);
        const i64* start = part.feature_starts.data + document - part.first;
        return {part.features.data + start[0], start[1] - start[0]};
    }
    const i8* vector(i64 document) const {
        const DocumentRows& part = part_of(parts, document);
        return part.document_vectors[document - part.first];
    }
    // The step of the features of a document, S and SΦμ.
    const f32* scalars(i64 document) const { return reinterpret_cast<const f32*>(vector(document) + vector_width) - 3; }
    // The step of the coordinates of a term.
    f32 term_step(i64 term) const { return reinterpret_cast<const f32*>(term_vectors[term + 1])[-1]; }
};

// Entries of later documents in earlier rows: see `ReverseNeighbours`.
struct ReverseRows {
    Array<i32> row_of;  // from 1; 0 for none; empty if no document has a row
    Table<u32> rows;
    Array<f32> steps;

    void check() const {
        bool valid = rows.rows == steps.size;
        for (i64 i = 0; i < row_of.size && valid; i++) valid = row_of[i] >= 0 && row_of[i] <= rows.rows;
        require(valid, "row_of: a document has a row that does not exist");
    }
};

constexpr i64 MAX_SEEDS = 1500;  // the sum of each feature may be rounded up by half a step a seed

// Parameters of the default ranking: see `KlsaParams`.
struct Params {
    i64 seeds, best;
    double alpha, hold_back, expansion, coverage, latent;
    double sharpness, lexical_sharpness, coverage_power;
    bool unit_length;
    double slope, mean_square;
};

// How many candidates are rescored: see `RerankDepths`.
struct Depths {
    i64 coverage, expansion, filtered;
    bool look_up_all;
};

}  // namespace klsa
