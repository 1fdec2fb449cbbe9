// The rows and features of documents, as they are sent to other partitions.
#pragma once

#include "index.hpp"
#include "results.hpp"

namespace klsa {

// The features of documents. Cost: a copy of their entries.
inline Features features_of(const Model& model, Array<i32> documents) {
    Features result;
    for (i64 i = 0; i < documents.size; i++) result.add(model.features_of(documents[i]), model.scalars(documents[i]));
    return result;
}

// The rows of documents: entries in this partition and in others, strongest first, then reverse
// entries. Cost: their entries.
template <class Number>
Rows rows_of(const Model& model, const ReverseRows& reverse, Array<Number> documents) {
    Rows result;
    i64 width = result.columns = model.row_width + reverse.rows.width;
    result.width = model.row_width;
    result.near = model.neighbours;
    result.documents.assign(documents.size * width, 0);
    result.levels.assign(documents.size * width, 0);
    result.steps.assign(documents.size * 2, 0.f);
    for (i64 i = 0; i < documents.size; i++) {
        i64 document = i64(documents[i]), *numbers = &result.documents[i * width];
        u8* levels = &result.levels[i * width];
        auto write = [&](i64 at, u32 level, i64 ordinal) {
            levels[at] = u8(level);
            numbers[at] = level > 0 ? ordinal : 0;
        };
        const u32* row = model.row(document);
        bool has_others = document < model.remote_levels.rows;
        i64 here = 0, there = 0, others = has_others ? model.remote_levels.width : 0;
        for (i64 at = 0; at < model.row_width; at++) {
            u32 level = row[here] & LEVELS, level_there = there < others ? model.remote_levels[document][there] : 0;
            if (level >= level_there) {
                write(at, level, model.ordinal(row[here++] >> 8));
            } else {
                write(at, level_there, model.remote_rows[document][there++]);
            }
        }
        result.steps[2 * i] = model.row_step(document);
        i64 place = document < reverse.row_of.size ? reverse.row_of[document] - 1 : -1;
        if (place < 0) continue;
        for (i64 at = 0; at < reverse.rows.width; at++) {
            u32 entry = reverse.rows[place][at];
            write(model.row_width + at, entry & LEVELS, model.ordinal(entry >> 8));
        }
        result.steps[2 * i + 1] = reverse.steps[place];
    }
    return result;
}

}  // namespace klsa
