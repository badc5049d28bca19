// The Newton method of newton.hpp for each of many groups of queries, whose rows never leave the
// cache.
#pragma once

#include <cstddef>

#include "solvers/group_fits.hpp"
#include "solvers/newton.hpp"
#include "solvers/pair_loss.hpp"

namespace pairgram {

struct svm_settings {
    pair_loss loss;
    double tol, steepness;  // see gram_of_pairs
    std::ptrdiff_t max_iter;
    const double* origin;  // (n_features,) added to all weights, or null
};

struct fitted_svms {
    double* weights;  // (n_groups, n_features)
    group_state* states;
    newton_history* histories;
    group_sums sums;
};

// Solves every group, each of one target, which is the offset of its rows, for its C. A group is
// left `unsolved`, with NaN, where the solver does not converge, where it has more than 4,096 rows,
// 256 features or 2^17 values, and where groups of `fit_groups` are.
//
// n d² + d³ / 3 flops besides the steps; memory: one group for each thread.
void fit_group_svms(const query_groups& groups, const svm_settings& settings, const double* Cs,
                    const fitted_svms& out, int n_threads);

struct svm_grid {
    std::ptrdiff_t n_Cs;
    const double* Cs;           // ascending
    bool relative;              // are divided by twice the trace of G times the steepness
    const std::int64_t* units;  // (n_rows,) by position: folds of every group, from 0 on
};

// What a search finds of groups [first, last).
struct searched_svms {
    std::ptrdiff_t first, last;
    double* Cs;      // (last − first, n_Cs)
    double* scores;  // (n_Cs, rows of these groups) by position
    group_state* states;
};

// The scores of rows by models without their fold, of which each is solved for every C from the
// solution before. Groups are left `unsolved` as by `fit_group_svms`, and where a fold is below 0
// or leaves no pairs.
void search_group_svms(const query_groups& groups, const svm_settings& settings,
                       const svm_grid& grid, const searched_svms& out, int n_threads);

}  // namespace pairgram
