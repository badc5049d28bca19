// Fork-join over independent tasks. Threads live for one call, so the process may fork between
// calls. What takes n_threads has the same bits for any number of them.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "support/buffer.hpp"
#include "support/interrupt.hpp"

namespace pairgram {

// Calls task(i) for every i in [0, n_tasks), on at most n_threads threads. Tasks are handed out
// dynamically, in their order: one may wait for those before it. The same result for any number of
// threads needs a task to write only what is its own. The first exception is thrown again in the
// caller, after all threads have stopped; so is an interruption, which is looked for before every
// task and wherever a task calls check_interrupt. on_stop() is called once in either case, to wake
// tasks that wait.
template <class Task, class Wake>
void parallel_for(std::ptrdiff_t n_tasks, int n_threads, const Task& task, const Wake& on_stop) {
    const auto n_workers = static_cast<int>(std::min<std::ptrdiff_t>(n_threads, n_tasks));
    if (n_workers <= 1) {
        for (std::ptrdiff_t i = 0; i < n_tasks; ++i) {
            check_interrupt();
            task(i);
        }
        return;
    }
    work_group group;
    auto& caller = interrupt::this_thread();
    group.outer = caller.group;
    std::atomic<std::ptrdiff_t> next{0};
    std::exception_ptr error;
    std::mutex mutex;  // of error and n_done
    std::condition_variable worker_done;
    std::size_t n_done = 0;
    const auto fail = [&] {  // with the exception in flight
        const std::lock_guard<std::mutex> lock(mutex);
        if (error) return;
        error = std::current_exception();
        group.stop.store(true);
        next.store(n_tasks);
        on_stop();
    };
    const auto work = [&] {
        try {
            for (std::ptrdiff_t i; (i = next.fetch_add(1)) < n_tasks;) {
                check_interrupt();
                task(i);
            }
        } catch (...) {
            fail();
        }
    };
    std::vector<std::thread> threads;
    threads.reserve(static_cast<std::size_t>(n_workers - 1));
    try {
        for (int t = 1; t < n_workers; ++t) {
            threads.emplace_back([&] {
                interrupt::this_thread() = {&group, true, {}};
                work();
                const std::lock_guard<std::mutex> lock(mutex);
                ++n_done;
                worker_done.notify_one();
            });
        }
    } catch (...) {
        // The system has no thread to give: the caller works with those that started.
    }
    caller.group = &group;
    work();
    std::unique_lock<std::mutex> lock(mutex);
    while (!worker_done.wait_for(lock, interrupt::interval,
                                 [&] { return n_done == threads.size(); })) {
        lock.unlock();
        try {
            check_interrupt();
        } catch (...) {
            fail();
        }
        lock.lock();
    }
    lock.unlock();
    caller.group = group.outer;
    for (auto& thread : threads) thread.join();
    if (error) std::rethrow_exception(error);
}

template <class Task>
void parallel_for(std::ptrdiff_t n_tasks, int n_threads, const Task& task) {
    parallel_for(n_tasks, n_threads, task, [] {});
}

// Where the runs of n neighbours begin that are a task together, and the end of the last: each but
// the last weighs `least` or more, and less without its last member.
template <class Weight>
buffer<std::ptrdiff_t> runs_of(std::ptrdiff_t n, std::ptrdiff_t least, const Weight& weight) {
    buffer<std::ptrdiff_t> bounds{0};
    std::ptrdiff_t sum = 0;
    for (std::ptrdiff_t i = 0; i < n; ++i) {
        sum += weight(i);
        if (sum < least && i + 1 < n) continue;
        bounds.push_back(i + 1);
        sum = 0;
    }
    return bounds;
}

// Calls task(first, size) for the parts of [0, n), of `step` each but for the last.
template <class Task>
void parallel_parts(std::ptrdiff_t n, std::ptrdiff_t step, int n_threads, const Task& task) {
    parallel_for((n + step - 1) / step, n_threads,
                 [&](std::ptrdiff_t part) { task(part * step, std::min(step, n - part * step)); });
}

}  // namespace pairgram
