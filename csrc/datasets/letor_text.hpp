// The text in LETOR files: UTF-8, and what an id may be.
#pragma once

#include <cstddef>

namespace pairgram {

constexpr std::ptrdiff_t max_id_size = 255;

// Whether the bytes in [p, end) are well-formed UTF-8.
bool is_utf8(const char* p, const char* end);

// Whether they may be an id: 1 to max_id_size bytes of UTF-8 without '#', control characters,
// blanks (those of Unicode and U+200B and U+FEFF, which nobody sees), and without ':' behind a
// digit: an index and a ':' begin a feature, so no id can have swallowed one.
bool is_letor_id(const char* p, const char* end);

}  // namespace pairgram
