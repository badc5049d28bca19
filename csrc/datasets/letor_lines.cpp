#include "datasets/letor_lines.hpp"

#include <charconv>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "datasets/decimal.hpp"

namespace pairgram {

namespace {

constexpr std::int64_t max_features = std::numeric_limits<std::int32_t>::max();

bool is_blank(char c) { return c == ' ' || c == '\t'; }

const char* skip_blanks(const char* p) {
    while (is_blank(*p)) ++p;
    return p;
}

// Whether no more of the row follows at p: the newline, its carriage return, or a comment.
bool at_row_end(const char* p) { return *p == '\n' || *p == '#' || (*p == '\r' && p[1] == '\n'); }

bool at_token_end(const char* p) { return is_blank(*p) || at_row_end(p); }

const char* token_end(const char* p) {
    while (!at_token_end(p)) ++p;
    return p;
}

const char* line_end(const char* p, const char* end) {
    return static_cast<const char*>(std::memchr(p, '\n', static_cast<std::size_t>(end - p)));
}

// The token at p for a message: quoted, at most 40 bytes, what is not printable ASCII as \xNN.
std::string quoted_token(const char* p) {
    if (at_row_end(p)) return "the end of the row";
    constexpr std::ptrdiff_t max_size = 40;
    constexpr char hex[] = "0123456789abcdef";
    const char* end = token_end(p);
    const char* shown = end - p > max_size ? p + max_size : end;
    std::string text = "'";
    for (; p != shown; ++p) {
        if (*p >= 0x20 && *p < 0x7f) {
            text += *p;
        } else {
            const auto byte = static_cast<unsigned char>(*p);
            text += {'\\', 'x', hex[byte >> 4], hex[byte & 15]};
        }
    }
    return text + (shown == end ? "'" : "...'");
}

[[noreturn]] void fail(const char* token, const std::string& wanted) {
    throw std::invalid_argument("found " + quoted_token(token) + ", want " + wanted);
}

// An int64 as its shortest text, which tells ids apart as their tokens do ("01" is not "1").
bool parse_canonical(const char* p, const char* end, std::int64_t& out) {
    const char* digits = p + (*p == '-');
    if (digits == end || (*digits == '0' && end - p > 1)) return false;
    const auto [stop, error] = std::from_chars(p, end, out);
    return error == std::errc() && stop == end;
}

// The number of digits without the zeros before them.
std::ptrdiff_t n_significant(const char* digits, const char* end) {
    while (digits != end && *digits == '0') ++digits;
    return end - digits;
}

template <class T>
class line_reader {
  public:
    line_reader(id_rule rule, const letor_options& options, letor_piece<T>& piece)
        : rule_(rule), options_(options), piece_(piece), rows_(piece.rows) {}

    // Reads the line at p; returns where the next one begins.
    const char* read(const char* p, const char* end) {
        p = skip_blanks(p);
        const bool has_row = !at_row_end(p);
        if (has_row) p = read_features(read_id(read_label(p)));
        const char* newline = line_end(p, end);
        if (*p == '#') check_comment(p + 1, newline);
        if (has_row) {
            rows_.value_ends.push_back(static_cast<std::int64_t>(n_values_));
            rows_.code_ends.push_back(static_cast<std::int64_t>(n_codes_));
            if (options_.keep_comments) keep_comment(*p == '#' ? p + 1 : newline, newline);
        }
        return newline + 1;
    }

    // The rows read so far get the sizes of their arrays.
    void finish() {
        rows_.values.resize(n_values_);
        rows_.codes.resize(n_codes_);
    }

  private:
    const char* read_label(const char* p) {
        double label = 0;
        const char* end = parse_decimal(p, label);
        if (end == nullptr || !at_token_end(end)) {
            const bool mark = std::strncmp(p, "\xef\xbb\xbf", 3) == 0;
            fail(p, mark ? "a label, not a byte order mark (save the file as UTF-8 without one)"
                         : "a label, a finite number");
        }
        rows_.labels.push_back(label);
        return skip_blanks(end);
    }

    const char* read_id(const char* p) {
        if (std::strncmp(p, "qid:", 4) != 0) {
            if (rule_ == id_rule::present) fail(p, "qid:ID after the label, as in the rows before");
            return p;
        }
        if (rule_ == id_rule::absent) fail(p, "no qid, as in the rows before");
        const char* end = token_end(p + 4);
        std::int64_t id = 0;
        if (!parse_canonical(p + 4, end, id)) {
            if (!is_letor_id(p + 4, end)) fail(p, wanted_id());
            id = 0;
            name_row(std::string(p + 4, end));
        }
        rows_.ids.push_back(id);
        return skip_blanks(end);
    }

    void name_row(std::string id) {
        const std::int64_t row = rows_.ids.size();
        auto& names = rows_.names;
        if (!names.empty() && names.back().first + names.back().count == row &&
            names.back().id == id) {
            ++names.back().count;
        } else {
            names.push_back({row, 1, std::move(id)});
        }
    }

    const char* read_features(const char* p) {
        const std::int64_t base = options_.zero_based ? 0 : 1;
        const std::int64_t limit = options_.n_features < 0 ? max_features : options_.n_features;
        T* values = rows_.values.data();
        std::int64_t run_begin = 0, run_end = 0;
        for (; !at_row_end(p); p = skip_blanks(p)) {
            const char* token = p;
            std::uint64_t written = 0;
            for (; is_digit(*p); ++p) written = 10 * written + static_cast<unsigned char>(*p - '0');
            const char* colon = p;
            if (colon == token || *colon != ':') fail(token, "index:value");
            const bool fits = colon - token <= 18 || n_significant(token, colon) <= 18;
            const std::int64_t index =
                fits ? static_cast<std::int64_t>(written) - base : max_features;
            if (index != run_end || index >= limit) {
                check_index(token, index, run_end, limit);
                end_run(run_begin, run_end);
                run_begin = run_end = index;
            }
            ++run_end;
            p = parse_decimal(colon + 1, values[n_values_]);
            if (p == nullptr || !at_token_end(p)) fail(token, wanted_value());
            ++n_values_;
        }
        check_largest(run_end - 1);
        if (run_begin > 0 || first_code() < n_codes_) end_run(run_begin, run_end);
        return p;
    }

    std::ptrdiff_t first_code() const {
        const std::ptrdiff_t row = rows_.code_ends.size();
        return row == 0 ? 0 : rows_.code_ends[row - 1];
    }

    void end_run(std::int64_t begin, std::int64_t end) {
        std::int32_t* codes = rows_.codes.data();
        const auto first = static_cast<std::int32_t>(begin);
        if (end - begin > 1) {
            codes[n_codes_++] = ~first;
            codes[n_codes_++] = static_cast<std::int32_t>(end - begin);
        } else if (end > begin) {
            codes[n_codes_++] = first;
        }
    }

    // Fails unless run_end <= index < limit.
    void check_index(const char* token, std::int64_t index, std::int64_t run_end,
                     std::int64_t limit) const {
        const std::int64_t base = options_.zero_based ? 0 : 1;
        if (index < 0) fail(token, "an index of 1 or more (zero_based=True counts from 0)");
        if (index >= limit) {
            const auto largest = std::to_string(limit - 1 + base);
            const auto given = options_.n_features < 0
                                   ? std::string()
                                   : " (n_features=" + std::to_string(limit) + ")";
            fail(token, "an index of at most " + largest + given);
        }
        if (index < run_end) {
            fail(token, "an index above " + std::to_string(run_end - 1 + base) +
                            ": the indices of a row increase");
        }
    }

    void check_largest(std::int64_t index) {
        if (index > rows_.largest_index) {
            rows_.largest_index = index;
            rows_.largest_index_line = piece_.n_lines;
        }
    }

    static std::string wanted_id() {
        return "qid:ID with an id of 1 to " + std::to_string(max_id_size) +
               " bytes of UTF-8, without blanks and control characters, and without ':' behind a "
               "digit, as in a feature that a blank would set apart";
    }

    static std::string wanted_value() {
        return std::string("index:value with a finite ") +
               (sizeof(T) == sizeof(float) ? "float32" : "float64") + " value";
    }

    static void check_comment(const char* begin, const char* end) {
        if (std::memchr(begin, 0, static_cast<std::size_t>(end - begin)) != nullptr)
            throw std::invalid_argument("found '\\x00' in a comment, want text");
    }

    void keep_comment(const char* begin, const char* end) {
        while (begin != end && is_blank(*begin)) ++begin;
        if (begin != end && end[-1] == '\r') --end;
        while (begin != end && is_blank(end[-1])) --end;
        if (!is_utf8(begin, end))
            throw std::invalid_argument("found a comment that is not UTF-8, want UTF-8");
        rows_.comments.append(begin, end);
        rows_.comment_ends.push_back(static_cast<std::int64_t>(rows_.comments.size()));
    }

    const id_rule rule_;
    const letor_options& options_;
    letor_piece<T>& piece_;
    letor_rows<T>& rows_;
    std::ptrdiff_t n_values_ = 0, n_codes_ = 0;
};

template <class T>
void clear(letor_piece<T>& piece, std::ptrdiff_t n_bytes) {
    auto& rows = piece.rows;
    const std::ptrdiff_t max_values = n_bytes / 4 + 1;  // a feature takes at least " 1:1"
    rows.values.resize(max_values);
    rows.codes.resize(max_values);
    rows.labels.resize(0);
    rows.value_ends.resize(0);
    rows.code_ends.resize(0);
    rows.ids.resize(0);
    rows.names.clear();
    rows.comments.clear();
    rows.comment_ends.resize(0);
    rows.largest_index = -1;
    piece.n_lines = 0;
    piece.error_line = 0;
}

}  // namespace

id_rule find_id_rule(const char* begin, const char* end) {
    for (const char* p = begin; p != end; p = line_end(p, end) + 1) {
        p = skip_blanks(p);
        if (at_row_end(p)) continue;
        p = skip_blanks(token_end(p));
        return std::strncmp(p, "qid:", 4) == 0 ? id_rule::present : id_rule::absent;
    }
    return id_rule::unknown;
}

template <class T>
void parse_lines(const char* begin, const char* end, id_rule rule, const letor_options& options,
                 letor_piece<T>& piece) {
    clear(piece, end - begin);
    line_reader<T> reader(rule, options, piece);
    try {
        for (const char* p = begin; p != end;) {
            ++piece.n_lines;
            p = reader.read(p, end);
        }
    } catch (const std::invalid_argument& error) {
        piece.error_line = piece.n_lines;
        piece.error = error.what();
    }
    reader.finish();
}

template decltype(parse_lines<float>) parse_lines<float>;
template decltype(parse_lines<double>) parse_lines<double>;

}  // namespace pairgram
