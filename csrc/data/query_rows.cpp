#include "data/query_rows.hpp"

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "support/interrupt.hpp"

namespace pairgram {

namespace {

constexpr std::ptrdiff_t runs_at_once = 1 << 20;  // about 0.1 s

// The number of a run's id among those before, or of a new one.
class numbered_ids {
  public:
    std::ptrdiff_t operator()(std::int64_t id) {
        if (2 * ids_.size() >= places_.size()) grow();
        const auto place = find(id);
        if (places_[place] < 0) {
            places_[place] = static_cast<std::int64_t>(ids_.size());
            ids_.push_back(id);
        }
        return static_cast<std::ptrdiff_t>(places_[place]);
    }

  private:
    std::size_t find(std::int64_t id) const {
        auto hash = static_cast<std::uint64_t>(id) * 0x9e3779b97f4a7c15u;
        for (auto place = (hash ^ (hash >> 32)) & (places_.size() - 1);;
             place = (place + 1) & (places_.size() - 1))
            if (places_[place] < 0 || ids_[places_[place]] == id) return place;
    }

    void grow() {
        places_.assign(std::max<std::size_t>(4 * places_.size(), 1024), -1);
        for (std::size_t number = 0; number < ids_.size(); ++number)
            places_[find(ids_[number])] = static_cast<std::int64_t>(number);
    }

    buffer<std::int64_t> places_, ids_;  // numbers by hash, −1 where there is none
};

}  // namespace

void check_rows(const query_rows& queries, std::ptrdiff_t n_rows) {
    const std::int64_t* const end = queries.offsets + queries.n_queries;
    if (queries.offsets[0] != 0) throw std::invalid_argument("offsets must begin with 0");
    if (*end != n_rows) throw std::invalid_argument("offsets must end with the number of rows");
    if (!std::is_sorted(queries.offsets, end + 1))
        throw std::invalid_argument("offsets must not decrease");
    if (queries.order == nullptr) return;
    std::vector<bool> named(size_of(n_rows));
    for (std::ptrdiff_t i = 0; i < n_rows; ++i) {
        const std::int64_t row = queries.order[i];
        if (row < 0 || row >= n_rows || named[row])
            throw std::invalid_argument("order must name every row once");
        named[row] = true;
    }
}

rows_by_id group_runs(std::ptrdiff_t n_runs, const std::int64_t* ids, const std::int64_t* bounds) {
    rows_by_id out;
    buffer<std::ptrdiff_t> number(n_runs);
    buffer<std::int64_t> next;
    numbered_ids number_of;
    for (std::ptrdiff_t run = 0; run < n_runs; ++run) {
        if (run % runs_at_once == 0) check_interrupt();
        number[run] = number_of(ids[run]);
        if (size_of(number[run]) == next.size()) {
            out.first_run.push_back(run);
            next.push_back(0);
        }
        next[number[run]] += bounds[run + 1] - bounds[run];
    }
    out.offsets.push_back(0);
    for (auto& size : next) {
        out.offsets.push_back(out.offsets.back() + size);
        size = out.offsets[out.offsets.size() - 2];
    }
    out.order.resize(bounds[n_runs]);
    for (std::ptrdiff_t run = 0; run < n_runs; ++run) {
        if (run % runs_at_once == 0) check_interrupt();
        for (auto row = bounds[run]; row < bounds[run + 1]; ++row)
            out.order[next[number[run]]++] = row;
    }
    return out;
}

}  // namespace pairgram
