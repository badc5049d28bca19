#include "datasets/decimal.hpp"
#include "datasets/letor_lines.hpp"

namespace pairgram {

namespace {

// The number of bytes of the well-formed UTF-8 sequence at p (Unicode 15, table 3-7), 0 for none.
std::ptrdiff_t utf8_size(const char* p, const char* end) {
    const auto byte = [&](std::ptrdiff_t i) {
        return i < end - p ? static_cast<unsigned char>(p[i]) : static_cast<unsigned char>(0);
    };
    const auto follows = [&](std::ptrdiff_t i) { return (byte(i) & 0xc0) == 0x80; };
    const unsigned char lead = byte(0);
    if (lead < 0x80) return 1;
    if (lead >= 0xc2 && lead <= 0xdf) return follows(1) ? 2 : 0;
    const unsigned char low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
    const unsigned char high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
    if (lead < 0xe0 || lead > 0xf4 || byte(1) < low || byte(1) > high || !follows(2)) return 0;
    if (lead < 0xf0) return 3;
    return follows(3) ? 4 : 0;
}

// The character of a well-formed sequence of `size` bytes at p.
char32_t code_point(const char* p, std::ptrdiff_t size) {
    constexpr unsigned char lead_bits[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    char32_t code = static_cast<unsigned char>(p[0]) & lead_bits[size];
    for (std::ptrdiff_t i = 1; i < size; ++i)
        code = (code << 6) | (static_cast<unsigned char>(p[i]) & 0x3f);
    return code;
}

// Control characters, and what looks like a blank or like nothing: Unicode's White_Space, the zero
// width space and the byte order mark.
bool is_blank_or_control(char32_t c) {
    if (c <= 0x20 || (c >= 0x7f && c <= 0xa0)) return true;
    if (c >= 0x2000 && c <= 0x200b) return true;
    return c == 0x1680 || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000 ||
           c == 0xfeff;
}

}  // namespace

bool is_utf8(const char* p, const char* end) {
    while (p != end) {
        const std::ptrdiff_t size = utf8_size(p, end);
        if (size == 0) return false;
        p += size;
    }
    return true;
}

bool is_letor_id(const char* p, const char* end) {
    if (p == end || end - p > max_id_size) return false;
    for (char before = ' '; p != end;) {
        const std::ptrdiff_t size = utf8_size(p, end);
        if (size == 0 || is_blank_or_control(code_point(p, size)) || *p == '#') return false;
        if (*p == ':' && is_digit(before)) return false;
        before = *p;
        p += size;
    }
    return true;
}

}  // namespace pairgram
