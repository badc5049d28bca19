// An array that grows in place where the system can move pages, so that growth needs no second
// copy.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <limits>
#include <memory>
#include <new>
#include <type_traits>

namespace pairgram {

// Like std::vector, but by realloc (large blocks are moved by their pages, not copied) and without
// writing the new elements: those that nobody writes take no memory.
template <class T>
class growing_array {
    static_assert(std::is_trivially_copyable_v<T>);

  public:
    T* data() { return data_.get(); }
    const T* data() const { return data_.get(); }
    std::ptrdiff_t size() const { return size_; }
    T& operator[](std::ptrdiff_t i) { return data_.get()[i]; }
    const T& operator[](std::ptrdiff_t i) const { return data_.get()[i]; }

    // Changes the size; the elements that stay keep their values, new ones have none.
    void resize(std::ptrdiff_t size) {
        if (size > capacity_) {
            const std::ptrdiff_t half = capacity_ / 2;
            const bool roomy = capacity_ <= max_size - half;
            reallocate(roomy && capacity_ + half > size ? capacity_ + half : size);
        }
        size_ = size;
    }

    void push_back(T value) {
        resize(size_ + 1);
        data_.get()[size_ - 1] = value;
    }

    // Changes the size to one that is final: what is spare goes back.
    void resize_exactly(std::ptrdiff_t size) {
        if (size != capacity_) reallocate(size);
        size_ = size;
    }

  private:
    struct free_memory {
        void operator()(T* data) const { std::free(data); }
    };
    static constexpr std::ptrdiff_t max_size =
        std::numeric_limits<std::ptrdiff_t>::max() / static_cast<std::ptrdiff_t>(sizeof(T));

    void reallocate(std::ptrdiff_t capacity) {
        if (capacity > max_size) throw std::bad_alloc();
        const auto n_bytes = static_cast<std::size_t>(capacity > 0 ? capacity : 1) * sizeof(T);
        void* moved = std::realloc(data_.get(), n_bytes);
        if (moved == nullptr) throw std::bad_alloc();
        static_cast<void>(data_.release());  // realloc has freed or kept it
        data_.reset(static_cast<T*>(moved));
        capacity_ = capacity;
    }

    std::unique_ptr<T, free_memory> data_;
    std::ptrdiff_t size_ = 0;
    std::ptrdiff_t capacity_ = 0;
};

}  // namespace pairgram
