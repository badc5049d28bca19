#include "solvers/group_svms.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "solvers/pair_operator.hpp"
#include "support/parallel.hpp"

namespace pairgram {

namespace {

constexpr std::ptrdiff_t most_rows = 4096, most_features = 256, most_values = 1 << 17;

// Solves group after group.
template <class T>
class svm_solver {
  public:
    svm_solver(const ranking_problem& problem, const query_groups& groups,
               const given_rows<T>& rows, const node_map<double>* map, const svm_settings& settings)
        : rows_(problem, groups, rows, map), offsets_(groups.targets), settings_(settings) {}

    group_state solve(std::ptrdiff_t g, double* out, newton_history& history) {
        const auto d = rows_.d;
        if (!rows_.load(g, 0)) return group_state::unsolved;
        const auto n = rows_.n, width = rows_.width;
        if (n > most_rows || d > most_features || n * d > most_values) return group_state::unsolved;
        features_.resize(n * d);
        for (std::ptrdiff_t i = 0; i < n; ++i)
            std::copy_n(rows_.z.data() + i * width, d, features_.data() + i * d);
        if (!rows_.transform(0)) return group_state::no_pairs;
        if (!rows_.is_usable()) return group_state::unsolved;
        set_gram();
        buffer<std::int64_t> first, order, constant;
        buffer<double> offset;
        for (std::ptrdiff_t j = 0; j < d; ++j)
            if (gram_[j * (d + 1)] == 0) constant.push_back(j);
        for (std::ptrdiff_t i = 0; i < n; ++i) {
            order.push_back(rows_.row(i));
            offset.push_back(offsets_[rows_.row(i)]);
        }
        for (auto q = rows_.first_query; q <= rows_.last_query; ++q)
            first.push_back(rows_.begin(q));
        auto own = rows_.problem();
        own.rows.n_queries = rows_.last_query - rows_.first_query;
        own.rows.offsets = first.data();
        own.rows.order = order.data();
        if (own.rows.query_weights) own.rows.query_weights += rows_.first_query;
        pair_operator pairs(own, settings_.loss);
        const dense_features<double> H({n, d, features_.data(), nullptr});
        rows_loss loss(H, pairs, offset.data(), 1);
        try {
            newton_solver solver(loss, static_cast<std::ptrdiff_t>(constant.size()),
                                 constant.data());
            const preconditioner inverse({d, gram_.data(), false, settings_.steepness}, settings_.C,
                                         1);
            history = solver.solve(settings_.C, inverse, settings_.tol, settings_.max_iter);
            for (std::ptrdiff_t j = 0; j < d; ++j)
                out[j] = solver.weights()[j] + (settings_.origin ? settings_.origin[j] : 0.0);
        } catch (const std::invalid_argument&) {
            return group_state::unsolved;
        }
        return history.converged ? group_state::solved : group_state::unsolved;
    }

    const group_rows<T>& rows() const { return rows_; }

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

    group_rows<T> rows_;
    const double* offsets_;
    const svm_settings& settings_;
    buffer<double> features_, upper_, gram_;
};

}  // namespace

template <class T>
void fit_group_svms(const ranking_problem& problem, const query_groups& groups,
                    const given_rows<T>& rows, const node_map<double>* map,
                    const svm_settings& settings, double* weights, group_state* states,
                    newton_history* histories, const group_sums& sums, int n_threads) {
    const auto d = map ? map->n_outputs : rows.n_columns;
    const auto first_group = tasks_of(problem, groups, d);
    const auto n_tasks = static_cast<std::ptrdiff_t>(first_group.size()) - 1;
    parallel_for(n_tasks, n_threads, [&](std::ptrdiff_t task) {
        svm_solver<T> solver(problem, groups, rows, map, settings);
        for (auto g = first_group[task]; g < first_group[task + 1]; ++g) {
            double* const out = weights + g * d;
            states[g] = solver.solve(g, out, histories[g]);
            if (states[g] != group_state::solved)
                std::fill_n(out, d, std::numeric_limits<double>::quiet_NaN());
            else if (sums.squares)
                solver.rows().tell(g, out, sums);
        }
    });
}

template decltype(fit_group_svms<double>) fit_group_svms<double>;
template decltype(fit_group_svms<float>) fit_group_svms<float>;

}  // namespace pairgram
