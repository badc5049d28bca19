#include <algorithm>
#include <charconv>

#include "datasets/letor.hpp"

namespace pairgram {

namespace {

// Appends a number as its shortest text that reads back to the same bits.
template <class V>
void append_number(std::string& text, V value) {
    char buffer[32];  // the shortest double takes at most 24 bytes, an int64 20
    const auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, value);
    static_cast<void>(error);
    text.append(buffer, end);
}

// Appends the next line of `lines`, without its newline, and moves `from` behind it.
void append_line(std::string& text, const std::string& lines, std::size_t& from) {
    const std::size_t end = std::min(lines.find('\n', from), lines.size());
    text.append(lines, from, end - from);
    from = end + 1;
}

}  // namespace

template <class T>
std::string format_letor(const letor_source<T>& source) {
    const std::int64_t base = source.zero_based ? 0 : 1;
    std::string text;
    std::size_t id = 0, comment = 0;
    for (std::ptrdiff_t row = source.first; row < source.first + source.n_rows; ++row) {
        append_number(text, source.labels[row]);
        if (source.ids != nullptr) {
            text += " qid:";
            append_line(text, *source.ids, id);
        }
        const bool dense = source.indptr == nullptr;
        const std::int64_t begin = dense ? row * source.n_features : source.indptr[row];
        const std::int64_t end = dense ? begin + source.n_features : source.indptr[row + 1];
        for (std::int64_t i = begin; i < end; ++i) {
            text += ' ';
            append_number(text, (dense ? i - begin : source.indices[i]) + base);
            text += ':';
            append_number(text, source.values[i]);
        }
        if (source.comments != nullptr) {
            const std::size_t size = text.size();
            text += " # ";
            append_line(text, *source.comments, comment);
            if (text.size() == size + 3) text.resize(size);  // an empty comment is none
        }
        text += '\n';
    }
    return text;
}

template std::string format_letor(const letor_source<float>&);
template std::string format_letor(const letor_source<double>&);

}  // namespace pairgram
