// A vector whose sizes and indices may be of any integer type: the code here counts in ptrdiff_t.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <type_traits>
#include <vector>

namespace pairgram {

// A size or an index for the standard library's containers.
inline std::size_t size_of(std::ptrdiff_t n) { return static_cast<std::size_t>(n); }

// The size of a container, as the code here counts.
template <class Container>
std::ptrdiff_t length_of(const Container& values) {
    return static_cast<std::ptrdiff_t>(values.size());
}

template <class T>
class buffer : public std::vector<T> {
    using base = std::vector<T>;
    template <class N>
    using if_size = std::enable_if_t<std::is_integral_v<N>, int>;

  public:
    buffer() = default;
    buffer(std::initializer_list<T> values) : base(values) {}
    template <class N, if_size<N> = 0>
    explicit buffer(N n) : base(static_cast<std::size_t>(n)) {}
    template <class N, if_size<N> = 0>
    buffer(N n, const T& value) : base(static_cast<std::size_t>(n), value) {}
    template <class It, class = typename std::iterator_traits<It>::iterator_category>
    buffer(It first, It last) : base(first, last) {}

    template <class I, if_size<I> = 0>
    T& operator[](I i) {
        return base::operator[](static_cast<std::size_t>(i));
    }
    template <class I, if_size<I> = 0>
    const T& operator[](I i) const {
        return base::operator[](static_cast<std::size_t>(i));
    }

    template <class N, if_size<N> = 0>
    void resize(N n) {
        base::resize(static_cast<std::size_t>(n));
    }
    template <class N, if_size<N> = 0>
    void assign(N n, const T& value) {
        base::assign(static_cast<std::size_t>(n), value);
    }
    template <class It, class = typename std::iterator_traits<It>::iterator_category>
    void assign(It first, It last) {
        base::assign(first, last);
    }
};

}  // namespace pairgram

// Compiles a function template for numbers of both widths.
#define PAIRGRAM_FOR_BOTH_WIDTHS(function)                \
    template decltype(function<double>) function<double>; \
    template decltype(function<float>) function<float>
