#include "solvers/group_svms.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <utility>
#include <vector>

#include "solvers/pair_operator.hpp"
#include "support/parallel.hpp"
#include "support/vectors.hpp"

namespace pairgram {

namespace {

constexpr std::ptrdiff_t most_rows = 4096, most_features = 256, most_values = 1 << 17;
constexpr double largest_trace = 1e290;  // whose inverse is still far from 0

buffer<std::ptrdiff_t> first_numbers(std::ptrdiff_t n) {
    buffer<std::ptrdiff_t> numbers(n);
    std::iota(numbers.begin(), numbers.end(), std::ptrdiff_t{0});
    return numbers;
}

// Few rows, column after column: their vectors are longer than rows of few features.
class column_features final : public row_features {
  public:
    column_features(std::ptrdiff_t n_rows, std::ptrdiff_t width)
        : row_features(n_rows, width), values_(n_rows * width) {}
    double* column(std::ptrdiff_t j) { return values_.data() + j * n_rows(); }
    const double* column(std::ptrdiff_t j) const { return values_.data() + j * n_rows(); }

    void score(const double* w, double* scores, int) const override {
        std::fill_n(scores, n_rows(), 0.0);
        for (std::ptrdiff_t j = 0; j < width(); ++j) add(n_rows(), w[j], column(j), scores);
    }
    void sum(const double* z, double* out, int) const override {
        for (std::ptrdiff_t j = 0; j < width(); ++j) out[j] = dot(n_rows(), column(j), z);
    }

  private:
    buffer<double> values_;
};

// Solves group after group.
class svm_solver {
  public:
    svm_solver(const query_groups& groups, const svm_settings& settings)
        : rows_(groups), offsets_(groups.targets), settings_(settings) {}

    // Loads a group, which is then solved if its state says so.
    group_state load(std::ptrdiff_t g) {
        const auto d = rows_.d;
        if (!rows_.load(g, 0)) return group_state::unsolved;
        const auto n = rows_.n, width = rows_.width;
        if (n > most_rows || d > most_features || n * d > most_values) return group_state::unsolved;
        features_.resize(n * d);
        for (std::ptrdiff_t i = 0; i < n; ++i)
            std::copy_n(rows_.z.data() + i * width, d, features_.data() + i * d);
        if (!rows_.transform()) return group_state::no_pairs;
        if (!rows_.is_usable()) return group_state::unsolved;
        set_gram();
        return group_state::solved;
    }

    double trace() const {
        double sum = 0;
        for (std::ptrdiff_t j = 0; j < rows_.d; ++j) sum += gram_[j * (rows_.d + 1)];
        return sum;
    }

    preconditioner inverse(double C) const {
        return {{rows_.d, gram_.data(), false, settings_.steepness}, C, 1};
    }

    // Solves the problem of some rows of the group, which ascend, for ascending Cs, each from the
    // solution before. found(number of C, weights, history) takes the solutions. False where a
    // solution is not found, or no pair counts.
    template <class Found>
    bool solve(const buffer<std::ptrdiff_t>& some, const std::vector<preconditioner>& inverses,
               const double* Cs, const Found& found) const {
        const auto d = rows_.d, n = length_of(some);
        column_features H(n, d);
        buffer<double> offset(n);
        buffer<std::int64_t> first, order(n);
        auto query = rows_.first_query;
        for (std::ptrdiff_t i = 0; i < n; ++i) {
            for (; rows_.begin(query) <= some[i]; ++query) first.push_back(i);
            for (std::ptrdiff_t j = 0; j < d; ++j) H.column(j)[i] = features(some[i])[j];
            order[i] = rows_.row(some[i]);
            offset[i] = offsets_[order[i]];
        }
        for (; query <= rows_.last_query; ++query) first.push_back(n);
        auto own = rows_.problem();
        own.rows.n_queries = rows_.last_query - rows_.first_query;
        own.rows.offsets = first.data();
        own.rows.order = order.data();
        if (own.rows.query_weights) own.rows.query_weights += rows_.first_query;
        pair_operator pairs(own, settings_.loss);
        if (!has_pairs(pairs)) return false;
        const auto constant = constant_features(own.rows, pairs, H);
        rows_loss loss(H, pairs, offset.data(), 1);
        try {
            newton_solver solver(loss, length_of(constant), constant.data());
            for (std::size_t c = 0; c < inverses.size(); ++c) {
                auto history = solver.solve(Cs[c], inverses[c], settings_.tol, settings_.max_iter);
                if (!history.converged) return false;
                found(static_cast<std::ptrdiff_t>(c), solver.weights(), history);
            }
        } catch (const std::invalid_argument&) {
            return false;
        }
        return true;
    }

    const group_rows& rows() const { return rows_; }
    const double* features(std::ptrdiff_t i) const { return features_.data() + i * rows_.d; }

  private:
    // G (d, d), of which other code reads the lower triangle.
    void set_gram() {
        const auto d = rows_.d, width = rows_.width;
        upper_.assign(d * width, 0.0);
        rows_.add_gram(upper_.data(), width);
        gram_.resize(d * d);
        for (std::ptrdiff_t i = 0; i < d; ++i)
            for (std::ptrdiff_t j = 0; j <= i; ++j) gram_[i * d + j] = upper_[j * width + i];
    }

    static bool has_pairs(const pair_operator& pairs) {
        for (std::ptrdiff_t q = 0; q < pairs.n_queries(); ++q)
            if (pairs.has_pairs(q)) return true;
        return false;
    }

    // The features that are the same in all rows of every query that count.
    static buffer<std::int64_t> constant_features(const query_rows& rows,
                                                  const pair_operator& pairs,
                                                  const column_features& H) {
        const auto varies = [&](std::ptrdiff_t q, const double* column) {
            const double* known = nullptr;
            for (auto i = rows.begin(q); i < rows.begin(q + 1); ++i) {
                if (!(rows.row_weight(rows.row(i)) > 0)) continue;
                if (known && column[i] != *known) return true;
                known = column + i;
            }
            return false;
        };
        buffer<std::int64_t> constant;
        for (std::ptrdiff_t j = 0; j < H.width(); ++j) {
            std::ptrdiff_t q = 0;
            while (q < rows.n_queries && !(pairs.has_pairs(q) && varies(q, H.column(j)))) ++q;
            if (q == rows.n_queries) constant.push_back(j);
        }
        return constant;
    }

    group_rows rows_;
    const double* offsets_;
    const svm_settings& settings_;
    buffer<double> features_, upper_, gram_;
};

}  // namespace

void fit_group_svms(const query_groups& groups, const svm_settings& settings, const double* Cs,
                    const fitted_svms& out, int n_threads) {
    const auto d = groups.n_features();
    const auto first_group = tasks_of(groups);
    const auto n_tasks = length_of(first_group) - 1;
    parallel_for(n_tasks, n_threads, [&](std::ptrdiff_t task) {
        svm_solver solver(groups, settings);
        for (auto g = first_group[task]; g < first_group[task + 1]; ++g) {
            double* const weights = out.weights + g * d;
            std::fill_n(weights, d, std::numeric_limits<double>::quiet_NaN());
            out.states[g] = solver.load(g);
            if (out.states[g] != group_state::solved) continue;
            const auto solved = [&](auto, const double* w, newton_history& history) {
                for (std::ptrdiff_t j = 0; j < d; ++j)
                    weights[j] = w[j] + (settings.origin ? settings.origin[j] : 0.0);
                out.histories[g] = std::move(history);
                if (out.sums.squares) solver.rows().tell(g, weights, out.sums);
            };
            if (!solver.solve(first_numbers(solver.rows().n), {solver.inverse(Cs[g])}, Cs + g,
                              solved))
                out.states[g] = group_state::unsolved;
        }
    });
}

void search_group_svms(const query_groups& groups, const svm_settings& settings,
                       const svm_grid& grid, const searched_svms& out, int n_threads) {
    const auto first = groups.begin(out.first), n_positions = groups.begin(out.last) - first;
    const auto n_groups = out.last - out.first;
    parallel_for(n_groups, n_groups > 1 ? n_threads : 1, [&](std::ptrdiff_t at) {
        svm_solver solver(groups, settings);
        double* const Cs = out.Cs + at * grid.n_Cs;
        auto& state = out.states[at];
        state = solver.load(out.first + at);
        if (state != group_state::solved) return;
        state = group_state::unsolved;
        const double trace = settings.steepness * solver.trace();
        if (grid.relative && !(trace <= largest_trace)) return;
        const double divisor = grid.relative && trace > 0 ? 2 * trace : 1.0;
        std::vector<preconditioner> inverses;
        for (std::ptrdiff_t c = 0; c < grid.n_Cs; ++c) {
            Cs[c] = grid.Cs[c] / divisor;
            inverses.push_back(solver.inverse(Cs[c]));
        }
        const auto& own = solver.rows();
        const auto* const units = grid.units + own.first;
        const auto [least, most] = std::minmax_element(units, units + own.n);
        if (*least < 0) return;
        buffer<char> done(static_cast<std::ptrdiff_t>(*most) + 1, 0);
        parallel_for(length_of(done), n_groups > 1 ? 1 : n_threads, [&](std::ptrdiff_t unit) {
            buffer<std::ptrdiff_t> others, held;
            for (std::ptrdiff_t i = 0; i < own.n; ++i)
                (units[i] == unit ? held : others).push_back(i);
            const auto score = [&](std::ptrdiff_t c, const double* w, const auto&) {
                double* const scores = out.scores + c * n_positions + own.first - first;
                for (const auto i : held)
                    scores[i] = std::inner_product(w, w + own.d, solver.features(i), 0.0);
            };
            done[unit] = solver.solve(others, inverses, Cs, score);
        });
        if (std::find(done.begin(), done.end(), 0) == done.end()) state = group_state::solved;
    });
}

}  // namespace pairgram
