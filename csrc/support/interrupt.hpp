// Lets long work be stopped: by the user's Ctrl-C, by an error in another thread, or by the clock.
#pragma once

#include <atomic>
#include <chrono>

namespace pairgram {

// Thrown in threads whose work is no longer wanted.
struct stopped {};

// Thrown in a thread whose time is over.
struct past_deadline {};

// Whether the work of a group of threads is still wanted; a group may start another.
struct work_group {
    std::atomic<bool> stop{false};
    const work_group* outer = nullptr;
};

namespace interrupt {

// Looks for a reason to stop, such as a signal, and throws it. Called about ten times a second, in
// the thread that called the compiled code.
using check_function = void (*)();

constexpr auto interval = std::chrono::milliseconds(100);

inline std::atomic<check_function> check{nullptr};

using clock = std::chrono::steady_clock;

// What a thread knows of its own work.
struct thread_state {
    const work_group* group = nullptr;
    bool is_worker = false;  // started by parallel_for
    clock::time_point checked{};
    clock::time_point deadline = clock::time_point::max();
};

inline thread_state& this_thread() {
    thread_local thread_state state;
    return state;
}

// Marks the beginning of a call: the first look for signals comes an interval later. Short calls,
// one after the other, keep to the deadline as one long call does.
inline void begin_call() {
    auto& thread = this_thread();
    thread.checked = clock::now();
    if (thread.checked > thread.deadline) throw past_deadline{};
}

}  // namespace interrupt

// Throws if the work of this thread should stop. Long loops call it at least every tenth of a
// second or so; it takes about 30 ns.
inline void check_interrupt() {
    auto& thread = interrupt::this_thread();
    for (const auto* group = thread.group; group; group = group->outer)
        if (group->stop.load(std::memory_order_relaxed)) throw stopped{};
    if (thread.is_worker) return;
    const auto now = interrupt::clock::now();
    if (now - thread.checked < interrupt::interval) return;
    thread.checked = now;
    if (now > thread.deadline) throw past_deadline{};
    if (const auto check = interrupt::check.load(std::memory_order_relaxed)) check();
}

}  // namespace pairgram
