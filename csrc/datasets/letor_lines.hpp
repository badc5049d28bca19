// The grammar of LETOR (SVMlight) files: a run of whole lines to rows.
//
//     line     = [row] [# comment] newline
//     row      = label [qid:ID] {index:value}, separated by spaces or tabs
//
// Labels and values are finite decimal numbers; indices are decimal integers that increase.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "support/growing_array.hpp"

namespace pairgram {

struct letor_options {
    std::int64_t n_features = -1;  // -1: as many as the largest index asks for
    bool zero_based = false;
    bool keep_comments = false;
};

// Whether rows have ids; the first row decides for the file.
enum class id_rule { unknown, present, absent };

// Neighbouring rows with one id that is no canonical decimal int64.
struct named_rows {
    std::int64_t first, count;
    std::string id;
};

// Rows in the order of the file. The features of a row are coded by runs: a code i >= 0 is feature
// i, counted from 0; ~i and then n are the n features from i on; a row without codes has its
// features from 0 on without a gap. So dense rows take the memory of their values, and no row
// takes more than its indices would in CSR.
template <class T>
struct letor_rows {
    growing_array<T> values;
    growing_array<std::int32_t> codes;
    growing_array<double> labels;
    growing_array<std::int64_t> value_ends, code_ends;  // where the next row begins
    growing_array<std::int64_t> ids;                    // 0 for those in `names`
    std::vector<named_rows> names;
    std::string comments;  // one after the other, without the blanks around them
    growing_array<std::int64_t> comment_ends;
    std::int64_t largest_index = -1;  // counted from 0
    std::int64_t largest_index_line = 0;
};

// What parse_lines makes of one run of lines; line numbers count from 1 within it.
template <class T>
struct letor_piece {
    letor_rows<T> rows;
    std::int64_t n_lines = 0;
    std::int64_t error_line = 0;  // 0: none
    std::string error;
};

// Whether the first row of the whole lines in [begin, end) has an id; unknown where there is none.
id_rule find_id_rule(const char* begin, const char* end);

// Parses the whole lines in [begin, end), whose last byte is a newline, up to the first that is
// wrong; replaces what `piece` held and keeps its memory. Cost: one pass over the bytes.
template <class T>
void parse_lines(const char* begin, const char* end, id_rule rule, const letor_options& options,
                 letor_piece<T>& piece);

constexpr std::ptrdiff_t max_id_size = 255;

// Whether the bytes in [p, end) are well-formed UTF-8.
bool is_utf8(const char* p, const char* end);

// Whether they may be an id: 1 to max_id_size bytes of UTF-8 without '#', control characters,
// blanks (those of Unicode and U+200B and U+FEFF, which nobody sees), and without ':' behind a
// digit: an index and a ':' begin a feature, so no id can have swallowed one.
bool is_letor_id(const char* p, const char* end);

}  // namespace pairgram
