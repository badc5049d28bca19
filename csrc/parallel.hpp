// Fork-join over independent tasks. Threads live for one call, so the process may fork between
// calls.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace pairgram {

// Calls task(i) for every i in [0, n_tasks), on at most n_threads threads. Tasks are handed out
// dynamically, in their order: one may wait for those before it. The same result for any number of
// threads needs a task to write only what is its own. The first exception is thrown again in the
// caller, after all threads have stopped.
template <class Task>
void parallel_for(std::ptrdiff_t n_tasks, int n_threads, const Task& task) {
    const auto n_workers = static_cast<int>(std::min<std::ptrdiff_t>(n_threads, n_tasks));
    if (n_workers <= 1) {
        for (std::ptrdiff_t i = 0; i < n_tasks; ++i) task(i);
        return;
    }
    std::atomic<std::ptrdiff_t> next{0};
    std::exception_ptr error;
    std::mutex error_mutex;
    const auto work = [&] {
        try {
            for (std::ptrdiff_t i; (i = next.fetch_add(1)) < n_tasks;) task(i);
        } catch (...) {
            const std::lock_guard<std::mutex> lock(error_mutex);
            if (!error) error = std::current_exception();
            next.store(n_tasks);
        }
    };
    std::vector<std::thread> threads;
    threads.reserve(static_cast<std::size_t>(n_workers - 1));
    try {
        for (int t = 1; t < n_workers; ++t) threads.emplace_back(work);
    } catch (...) {
        // The system has no thread to give: the caller works with those that started.
    }
    work();
    for (auto& thread : threads) thread.join();
    if (error) std::rethrow_exception(error);
}

}  // namespace pairgram
