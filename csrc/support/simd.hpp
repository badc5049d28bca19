// Instruction sets chosen at run time: PAIRGRAM_CLONES before a function compiles it for AVX-512,
// AVX2 and the baseline, and the loader picks one. Empty where the tool chain lacks it and under
// sanitizers (thread sanitizer crashes on ifunc resolvers). PAIRGRAM_NO_AVX512 leaves the first
// out, so that every machine can measure what runs on processors without it.
#pragma once

#include <cstddef>
#include <cstring>
#include <type_traits>

#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12 && defined(__x86_64__) && \
    defined(__gnu_linux__) && !defined(PAIRGRAM_NO_CLONES)
#define PAIRGRAM_HAS_CLONES
#ifdef PAIRGRAM_NO_AVX512
#define PAIRGRAM_CLONES __attribute__((target_clones("arch=x86-64-v3", "default")))
#else
#define PAIRGRAM_CLONES \
    __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#endif
#else
#define PAIRGRAM_CLONES
#endif

namespace pairgram {

// N numbers that are computed with at once, by operators. Where the instruction set has shorter
// vectors, GCC keeps them in memory, and every operation goes there and back: see `lanes_in`.
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
    pack& operator*=(const pack& other) {
        for (int i = 0; i < N; ++i) values[i] *= other.values[i];
        return *this;
    }
    pack& operator/=(const pack& other) {
        for (int i = 0; i < N; ++i) values[i] /= other.values[i];
        return *this;
    }
    friend pack operator*(T factor, pack a) {
        for (int i = 0; i < N; ++i) a.values[i] *= factor;
        return a;
    }
};
#endif

// Bytes of a vector register: of the AVX-512 clones, and of all others.
constexpr std::size_t wide_bytes = 64;
#if defined(PAIRGRAM_HAS_CLONES) || defined(__AVX2__)
constexpr std::size_t narrow_bytes = 32;
#else
constexpr std::size_t narrow_bytes = 16;
#endif

template <class T, int N, std::size_t Bytes>
struct halves;

// N numbers in packs of at most so many bytes, which have compound operators and entries to read.
template <class T, int N, std::size_t Bytes>
using lanes_in = std::conditional_t<N * sizeof(T) <= Bytes, pack<T, N>, halves<T, N, Bytes>>;

template <class T, int N, std::size_t Bytes>
struct halves {
    lanes_in<T, N / 2, Bytes> low, high;

    T operator[](int i) const { return i < N / 2 ? low[i] : high[i - N / 2]; }
    halves& operator+=(const halves& b) { return low += b.low, high += b.high, *this; }
    halves& operator-=(const halves& b) { return low -= b.low, high -= b.high, *this; }
    halves& operator*=(const halves& b) { return low *= b.low, high *= b.high, *this; }
    halves& operator/=(const halves& b) { return low /= b.low, high /= b.high, *this; }
};

// Numbers as those of `to`, which may be doubles of floats.
template <class T, class V>
inline void load(const T* from, V& to) {
    if constexpr (std::is_same_v<T, std::decay_t<decltype(to[0])>>) {
        std::memcpy(&to, from, sizeof to);
    } else {
        constexpr int n = sizeof to / sizeof to[0];
        std::decay_t<decltype(to[0])> values[n];
        for (int i = 0; i < n; ++i) values[i] = from[i];
        std::memcpy(&to, values, sizeof to);
    }
}
template <class T, class U, int N, std::size_t Bytes>
inline void load(const U* from, halves<T, N, Bytes>& to) {
    load(from, to.low);
    load(from + N / 2, to.high);
}

template <class T, class V>
inline void store(const V& from, T* to) {
    std::memcpy(to, &from, sizeof from);
}
template <class T, int N, std::size_t Bytes>
inline void store(const halves<T, N, Bytes>& from, T* to) {
    store(from.low, to);
    store(from.high, to + N / 2);
}

// Each file has its own of these two: some files are compiled without fused products.
template <class V>
static inline void add_product(V& sum, const V& a, const V& b) {
    V product = a;
    product *= b;
    sum += product;
}
template <class V>
static inline void subtract_product(V& sum, const V& a, const V& b) {
    V product = a;
    product *= b;
    sum -= product;
}

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
#if defined(PAIRGRAM_HAS_CLONES) && !defined(PAIRGRAM_NO_AVX512)
    static const bool has = __builtin_cpu_supports("x86-64-v4");
    return has;
#else
    return false;
#endif
}

}  // namespace pairgram
