// LETOR (SVMlight) files: bytes to arrays and arrays to bytes. Neither opens a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "datasets/letor_lines.hpp"
#include "support/growing_array.hpp"

namespace pairgram {

// The bytes that a line may take without its newline. Without a bound a device of zeros, which is
// one line, would be read until memory ends.
constexpr std::ptrdiff_t max_line_size = std::ptrdiff_t{1} << 28;

// Takes a file in chunks, split anywhere, and holds its rows. Chunks are cut at line ends into
// pieces of about `piece_size` bytes for the threads, so the result and the error, that of the
// first wrong line, are the same for any chunks, pieces and threads.
//
// Memory: the values once, at most one int32 for each, and a multiple of the chunk. An exception
// leaves a parser that is good for nothing but to be destroyed.
template <class T>
class letor_parser {
  public:
    // `name` is what the messages call the file.
    letor_parser(std::string name, const letor_options& options, std::ptrdiff_t piece_size,
                 int n_threads);

    // Takes the next bytes. Throws std::invalid_argument ("name:line: found ..., want ...").
    void feed(const char* data, std::ptrdiff_t size);

    // Takes the end of the file. Throws as feed does; also where the file had no row.
    void finish();

    std::ptrdiff_t n_rows() const { return rows_.labels.size(); }
    std::ptrdiff_t n_features() const;
    std::int64_t n_lines() const { return n_lines_; }
    const letor_rows<T>& rows() const { return rows_; }
    bool has_ids() const { return rule_ == id_rule::present; }

    // After finish, one of the two, once: the values as (n_rows, n_features), or as CSR, where
    // `indices` gets their features. Both spread in place on one thread, O(n_rows n_features) and
    // O(values); dense takes no time where every row has every feature.
    growing_array<T> take_dense();
    growing_array<T> take_csr(growing_array<std::int32_t>& indices);

  private:
    void feed_part(const char* data, std::ptrdiff_t size);
    void carry(const char* begin, const char* end);
    void parse(const char* begin, const char* end);
    void parse_carried();
    void add(std::ptrdiff_t n_pieces);

    const std::string name_;
    const letor_options options_;
    const std::ptrdiff_t piece_size_;
    const int n_threads_;
    std::string carried_;  // the line that the last chunk has begun
    std::int64_t n_lines_ = 0;
    id_rule rule_ = id_rule::unknown;
    std::vector<letor_piece<T>> pieces_;
    letor_rows<T> rows_;
};

// What dump writes on: rows [first, first + n_rows) of dense (indptr and indices null, row-major)
// or CSR data. `ids` and `comments` hold one line for each of these rows, or are null.
template <class T>
struct letor_source {
    std::ptrdiff_t first, n_rows, n_features;
    const T* values;
    const std::int64_t* indptr;
    const std::int64_t* indices;
    const double* labels;
    const std::string* ids;
    const std::string* comments;
    bool zero_based;
};

// The lines of these rows, every number as the shortest text that reads back to the same bits.
// Dense rows are written with their zeros. Cost: O(values).
template <class T>
std::string format_letor(const letor_source<T>& source);

}  // namespace pairgram
