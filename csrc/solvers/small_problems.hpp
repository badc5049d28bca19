// Many small problems of pairwise least squares at once, a problem or a split of one per task.
//
// A problem is solved from the rows themselves: with E = [H̃, ỹ] the half-Laplacian rows of the
// training rows, from the eigendecomposition of H̃ᵀH̃, in a basis of the rows where these are fewer
// than features. At such sizes that costs more than H̃ᵀH̃ does, so nothing is gained by subtracting
// statistics.
#pragma once

#include <cstddef>
#include <cstdint>

#include "data/half_laplacian.hpp"
#include "solvers/blocks.hpp"
#include "support/buffer.hpp"

namespace pairgram {

struct batch_problem {
    ranking_problem ranking;
    feature_rows<double> features;

    std::ptrdiff_t n_rows() const { return ranking.rows.n_rows(); }
};

// Rows of a problem, in any order, of which some train and others are scored.
struct row_split {
    std::ptrdiff_t n_train;
    const std::int64_t* train;
    std::ptrdiff_t n_test;
    const std::int64_t* test;
};

// n models of ridge alphas[i] and damping[i], in units of half the pair weight where relative.
struct model_grid {
    std::ptrdiff_t n;
    const double* alphas;
    const double* damping;
    bool relative;
};

// What keeps a task from a solution. The caller finds out more by other means.
enum class batch_failure : int { none, no_pairs, not_finite, no_convergence };

// G = Vᵀ diag(eigenvalues) V of rank rows, L or fewer, ascending; 0 in place of the projections of
// directions that are null up to rounding.
struct decomposition {
    batch_failure failure = batch_failure::none;
    double pair_weight = 0;
    std::ptrdiff_t rank = 0;
    buffer<double> eigenvalues;  // (rank,)
    buffer<double> vectors;      // (rank, n_features), V
    buffer<double> projection;   // (n_targets, rank), V H̃ᵀỹ
};

// Of all rows of every problem. n · L² + 10 · L³ flops each, or 8 n² · L + 10 · n³ if n is small.
void decompose_all(std::ptrdiff_t n_problems, const batch_problem* problems, decomposition* out,
                   int n_threads);

// One held-out task: the scores of the splits' test rows, one split after the other, by the models
// of their training rows: scores (n_targets, grid.n, all test rows).
struct held_out_task {
    buffer<row_split> splits;
    model_grid grid;
    double* scores;
    batch_failure failure = batch_failure::none;  // of the first split that has one
};

// As many tasks as problems. The same bits for any n_threads. BLAS must be held to one thread.
void hold_out_all(std::ptrdiff_t n_problems, const batch_problem* problems, held_out_task* tasks,
                  int n_threads);

}  // namespace pairgram
