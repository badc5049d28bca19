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
    double C, tol, steepness;  // see gram_of_pairs
    std::ptrdiff_t max_iter;
    const double* origin;  // (n_features,) added to all weights, or null
};

// Writes the weights (n_groups, n_features), the state and the history of every group, each of one
// target, which is the offset of its rows. A group is left `unsolved`, with NaN, where the solver
// does not converge, where it has more than 4,096 rows, 256 features or 2^17 values, and where
// groups of `fit_groups` are.
//
// n d² + d³ / 3 flops besides the steps; memory: one group for each thread. The same bits for any
// n_threads. BLAS must be held to one thread.
template <class T>
void fit_group_svms(const ranking_problem& problem, const query_groups& groups,
                    const given_rows<T>& rows, const node_map<double>* map,
                    const svm_settings& settings, double* weights, group_state* states,
                    newton_history* histories, const group_sums& sums, int n_threads);

}  // namespace pairgram
