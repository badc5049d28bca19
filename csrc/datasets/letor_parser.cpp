#include <algorithm>
#include <cstdint>
#include <cstring>
#include <new>
#include <stdexcept>
#include <utility>

#include "datasets/letor.hpp"
#include "support/buffer.hpp"
#include "support/parallel.hpp"

namespace pairgram {

namespace {

// Calls visit(first, n) for the runs of features that a row of n_values values codes.
template <class Visit>
void visit_runs(const std::int32_t* codes, const std::int32_t* codes_end, std::int64_t n_values,
                const Visit& visit) {
    if (codes == codes_end) {
        visit(std::int32_t{0}, static_cast<std::int32_t>(n_values));
        return;
    }
    while (codes != codes_end) {
        if (*codes >= 0) {
            visit(codes[0], std::int32_t{1});
            codes += 1;
        } else {
            visit(~codes[0], codes[1]);
            codes += 2;
        }
    }
}

std::int64_t begin_of(const growing_array<std::int64_t>& ends, std::ptrdiff_t row) {
    return row == 0 ? 0 : ends[row - 1];
}

// Appends the ends of a piece, which count from its beginning.
void append_ends(growing_array<std::int64_t>& ends, const growing_array<std::int64_t>& more,
                 std::int64_t shift) {
    const std::ptrdiff_t size = ends.size();
    ends.resize(size + more.size());
    for (std::ptrdiff_t i = 0; i < more.size(); ++i) ends[size + i] = more[i] + shift;
}

template <class V>
void append(growing_array<V>& array, const growing_array<V>& more) {
    if (more.size() == 0) return;
    const std::ptrdiff_t size = array.size();
    array.resize(size + more.size());
    std::copy_n(more.data(), more.size(), array.data() + size);
}

// Everything but values and codes.
template <class T>
void append_rows(letor_rows<T>& rows, const letor_rows<T>& more, std::int64_t n_lines) {
    const std::int64_t n_rows = rows.labels.size();
    append_ends(rows.value_ends, more.value_ends, begin_of(rows.value_ends, n_rows));
    append_ends(rows.code_ends, more.code_ends, begin_of(rows.code_ends, n_rows));
    append_ends(rows.comment_ends, more.comment_ends,
                static_cast<std::int64_t>(rows.comments.size()));
    append(rows.labels, more.labels);
    append(rows.ids, more.ids);
    for (const auto& run : more.names)
        rows.names.push_back({run.first + n_rows, run.count, run.id});
    rows.comments += more.comments;
    if (more.largest_index > rows.largest_index) {
        rows.largest_index = more.largest_index;
        rows.largest_index_line = more.largest_index_line + n_lines;
    }
}

}  // namespace

template <class T>
letor_parser<T>::letor_parser(std::string name, const letor_options& options,
                              std::ptrdiff_t piece_size, int n_threads)
    : name_(std::move(name)),
      options_(options),
      piece_size_(std::max<std::ptrdiff_t>(piece_size, 1)),
      n_threads_(n_threads) {}

template <class T>
std::ptrdiff_t letor_parser<T>::n_features() const {
    return static_cast<std::ptrdiff_t>(options_.n_features < 0 ? rows_.largest_index + 1
                                                               : options_.n_features);
}

template <class T>
void letor_parser<T>::feed(const char* data, std::ptrdiff_t size) {
    const char* end = data + size;
    while (data != end) {  // so that the chunks do not decide which lines are too long
        const char* part_end = data + std::min(end - data, max_line_size);
        feed_part(data, part_end - data);
        data = part_end;
    }
}

template <class T>
void letor_parser<T>::feed_part(const char* data, std::ptrdiff_t size) {
    const char* end = data + size;
    if (!carried_.empty()) {
        const auto* newline =
            static_cast<const char*>(std::memchr(data, '\n', static_cast<std::size_t>(size)));
        carry(data, newline == nullptr ? end : newline);
        if (newline == nullptr) return;
        parse_carried();
        data = newline + 1;
    }
    const char* lines_end = end;
    while (lines_end != data && lines_end[-1] != '\n') --lines_end;
    parse(data, lines_end);
    carried_.assign(lines_end, end);
}

// Appends to the line that has begun.
template <class T>
void letor_parser<T>::carry(const char* begin, const char* end) {
    if (end - begin > max_line_size - length_of(carried_)) {
        throw std::invalid_argument(name_ + ":" + std::to_string(n_lines_ + 1) +
                                    ": found a line of more than " + std::to_string(max_line_size) +
                                    " bytes, want shorter lines");
    }
    carried_.append(begin, end);
}

template <class T>
void letor_parser<T>::parse_carried() {
    carried_ += '\n';
    parse(carried_.data(), carried_.data() + carried_.size());
    carried_.clear();
}

template <class T>
void letor_parser<T>::finish() {
    if (!carried_.empty()) parse_carried();
    pieces_.clear();
    if (n_rows() == 0) {
        throw std::invalid_argument(name_ + ": found no row in " + std::to_string(n_lines_) +
                                    " lines, want 'label qid:ID index:value ...'");
    }
}

template <class T>
void letor_parser<T>::parse(const char* begin, const char* end) {
    if (begin == end) return;
    if (rule_ == id_rule::unknown) rule_ = find_id_rule(begin, end);
    std::vector<const char*> cuts{begin};
    while (cuts.back() != end) {
        const char* cut = cuts.back() + std::min(piece_size_, end - cuts.back()) - 1;
        while (*cut != '\n') ++cut;
        cuts.push_back(cut + 1);
    }
    const auto n_pieces = length_of(cuts) - 1;
    if (pieces_.size() < cuts.size() - 1) pieces_.resize(cuts.size() - 1);
    parallel_for(n_pieces, n_threads_, [&](std::ptrdiff_t i) {
        const auto piece = static_cast<std::size_t>(i);
        parse_lines(cuts[piece], cuts[piece + 1], rule_, options_, pieces_[piece]);
    });
    add(n_pieces);
}

template <class T>
void letor_parser<T>::add(std::ptrdiff_t n_pieces) {
    std::vector<std::pair<std::ptrdiff_t, std::ptrdiff_t>> places;
    std::ptrdiff_t n_values = rows_.values.size(), n_codes = rows_.codes.size();
    for (std::ptrdiff_t i = 0; i < n_pieces; ++i) {
        const auto& piece = pieces_[static_cast<std::size_t>(i)];
        if (piece.error_line > 0) {
            throw std::invalid_argument(name_ + ":" + std::to_string(n_lines_ + piece.error_line) +
                                        ": " + piece.error);
        }
        append_rows(rows_, piece.rows, n_lines_);
        n_lines_ += piece.n_lines;
        places.emplace_back(n_values, n_codes);
        n_values += piece.rows.values.size();
        n_codes += piece.rows.codes.size();
    }
    rows_.values.resize(n_values);
    rows_.codes.resize(n_codes);
    parallel_for(n_pieces, n_threads_, [&](std::ptrdiff_t i) {
        const auto& rows = pieces_[static_cast<std::size_t>(i)].rows;
        const auto [value, code] = places[static_cast<std::size_t>(i)];
        std::copy_n(rows.values.data(), rows.values.size(), rows_.values.data() + value);
        std::copy_n(rows.codes.data(), rows.codes.size(), rows_.codes.data() + code);
    });
}

// From the last row to the first: a row never moves towards the beginning, so what is still to be
// moved is never written over.
template <class T>
growing_array<T> letor_parser<T>::take_dense() {
    const std::ptrdiff_t n_columns = n_features();
    const std::ptrdiff_t n_values = rows_.values.size();
    if (n_columns > 0 && n_rows() > PTRDIFF_MAX / n_columns) throw std::bad_alloc();
    rows_.values.resize_exactly(n_rows() * n_columns);
    if (n_values < n_rows() * n_columns) {
        std::vector<T> row_values;
        for (std::ptrdiff_t row = n_rows() - 1; row >= 0; --row) {
            T* values = rows_.values.data();
            row_values.assign(values + begin_of(rows_.value_ends, row),
                              values + rows_.value_ends[row]);
            T* out = values + row * n_columns;
            std::fill_n(out, n_columns, T{0});
            const T* next = row_values.data();
            visit_runs(rows_.codes.data() + begin_of(rows_.code_ends, row),
                       rows_.codes.data() + rows_.code_ends[row],
                       static_cast<std::int64_t>(row_values.size()),
                       [&](std::int32_t first, std::int32_t n) {
                           std::copy_n(next, n, out + first);
                           next += n;
                       });
        }
    }
    rows_.codes = {};
    return std::move(rows_.values);
}

// In place and backwards as well: a row has no more codes than values.
template <class T>
growing_array<T> letor_parser<T>::take_csr(growing_array<std::int32_t>& indices) {
    rows_.values.resize_exactly(rows_.values.size());
    rows_.codes.resize_exactly(rows_.values.size());
    std::vector<std::int32_t> row_codes;
    for (std::ptrdiff_t row = n_rows() - 1; row >= 0; --row) {
        std::int32_t* codes = rows_.codes.data();
        row_codes.assign(codes + begin_of(rows_.code_ends, row), codes + rows_.code_ends[row]);
        const std::int64_t begin = begin_of(rows_.value_ends, row);
        std::int32_t* next = codes + begin;
        visit_runs(row_codes.data(), row_codes.data() + row_codes.size(),
                   rows_.value_ends[row] - begin, [&](std::int32_t first, std::int32_t n) {
                       for (std::int32_t i = 0; i < n; ++i) *next++ = first + i;
                   });
    }
    indices = std::move(rows_.codes);
    return std::move(rows_.values);
}

template class letor_parser<float>;
template class letor_parser<double>;

}  // namespace pairgram
