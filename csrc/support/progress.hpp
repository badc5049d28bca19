// Lets a task of parallel_for wait for others that were handed out before it.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>

#include "support/buffer.hpp"
#include "support/interrupt.hpp"

namespace pairgram {

// Counts what is done, of each of several kinds.
class progress {
  public:
    explicit progress(std::ptrdiff_t n_kinds) : n_done_(n_kinds) {}

    // Returns when n of a kind are done; false where the work has stopped.
    bool wait(std::ptrdiff_t kind, std::ptrdiff_t n) {
        std::unique_lock<std::mutex> lock(mutex_);
        while (!changed_.wait_for(lock, interrupt::interval,
                                  [&] { return stopped_ || n_done_[kind] >= n; })) {
            lock.unlock();
            check_interrupt();
            lock.lock();
        }
        return !stopped_;
    }

    void add(std::ptrdiff_t kind) {
        const std::lock_guard<std::mutex> lock(mutex_);
        ++n_done_[kind];
        changed_.notify_all();
    }

    void stop() {
        const std::lock_guard<std::mutex> lock(mutex_);
        stopped_ = true;
        changed_.notify_all();
    }

  private:
    std::mutex mutex_;
    std::condition_variable changed_;
    buffer<std::ptrdiff_t> n_done_;
    bool stopped_ = false;
};

}  // namespace pairgram
