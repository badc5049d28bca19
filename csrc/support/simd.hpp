// Instruction sets chosen at run time: PAIRGRAM_CLONES before a function compiles it for AVX-512,
// AVX2 and the baseline, and the loader picks one. Empty where the tool chain lacks it and under
// sanitizers (thread sanitizer crashes on ifunc resolvers).
#pragma once

#include <cstring>

#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12 && defined(__x86_64__) && \
    defined(__gnu_linux__) && !defined(PAIRGRAM_NO_CLONES)
#define PAIRGRAM_HAS_CLONES
#define PAIRGRAM_CLONES \
    __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define PAIRGRAM_CLONES
#endif

namespace pairgram {

// N numbers that are computed with at once, by operators; the compiler splits them where the
// instruction set has shorter vectors.
#if defined(__GNUC__)
template <class T, int N>
struct pack_of {
    typedef T type __attribute__((vector_size(N * sizeof(T))));
};
template <class T, int N>
using pack = typename pack_of<T, N>::type;
#else
template <class T, int N>
struct pack {
    T values[N];
    T operator[](int i) const { return values[i]; }
    T& operator[](int i) { return values[i]; }
    pack& operator+=(const pack& other) {
        for (int i = 0; i < N; ++i) values[i] += other.values[i];
        return *this;
    }
    pack& operator-=(const pack& other) {
        for (int i = 0; i < N; ++i) values[i] -= other.values[i];
        return *this;
    }
    friend pack operator/(pack a, const pack& b) {
        for (int i = 0; i < N; ++i) a.values[i] /= b.values[i];
        return a;
    }
    friend pack operator*(pack a, const pack& b) {
        for (int i = 0; i < N; ++i) a.values[i] *= b.values[i];
        return a;
    }
    friend pack operator*(T factor, pack a) {
        for (int i = 0; i < N; ++i) a.values[i] *= factor;
        return a;
    }
};
#endif

// Vectors of entries taken from two: defined where the compiler has it.
#ifdef __has_builtin
#if __has_builtin(__builtin_shufflevector)
#define PAIRGRAM_SHUFFLE __builtin_shufflevector
#endif
#endif

// Starts to read memory, which need not be there, into the nearest cache.
inline void prefetch(const void* address) {
#if defined(__GNUC__)
    __builtin_prefetch(address);
#else
    static_cast<void>(address);
#endif
}

// Tells whether this processor runs the AVX-512 clones: 32 registers of 64 bytes, where others have
// 16 of at most 32.
inline bool has_wide_registers() {
#if defined(PAIRGRAM_HAS_CLONES)
    static const bool has = __builtin_cpu_supports("x86-64-v4");
    return has;
#else
    return false;
#endif
}

}  // namespace pairgram
