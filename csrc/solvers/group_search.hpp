// The ridge path of each of many groups, and the scores of rows by models without their unit: those
// that are given, such as folds, or else their query or, where a group is one query, the row
// itself.
//
// Everything happens in the basis of the eigenvectors of H̃ᵀH̃, or of H̃H̃ᵀ where rows are fewer than
// features; see hold_out.hpp.
#pragma once

#include <cstddef>

#include "solvers/group_rows.hpp"

namespace pairgram {

// The ridges of every group, descending: those given or, where these are null, λ_max times the
// multiples and then λ_max / 1e4 times the powers. A λ_max of 0 counts as 1.
struct search_grid {
    std::ptrdiff_t n_alphas;
    const double* given;  // (n_alphas,) or null
    std::ptrdiff_t n_multiples;
    const double *multiples, *powers;
    bool started;        // targets are less scores that were there before
    double rounding;     // of scores, see ties.hpp
    double most_held;    // times the least ridge: units that hold larger directions need refits
    double least_share;  // of λ_max, which takes the place of smaller ridges in bounds of rounding
    // (n_rows,) by position, or null: rows of a group with equal numbers are a unit, whole queries
    // or rows of one query. A group with a number below 0 is left `unsolved`.
    const std::int64_t* units;
};

// What a search finds of groups [first, last).
struct found_paths {
    std::ptrdiff_t first, last;
    double* alphas;        // (last − first, n_alphas)
    double* models;        // (last − first, n_alphas, n_features)
    double* scores;        // (n_alphas, rows of these groups) by position; ties are joined
    double* grams;         // (last − first, n_features, n_features) upper triangles of G, or null
    double* pair_weights;  // (last − first,), with grams
    group_state* states;   // (last − first,)
};

// Groups of which G would lose narrow features, which have a direction that needs refits, or which
// have no pairs outside a unit are left `unsolved`, as are those of `fit_groups`.
//
// n d² + 10 d³ flops and those of hold_out.hpp for every group; memory: one group for each thread.
// The same bits for any n_threads, and for a group alone.
void search_groups(const query_groups& groups, const search_grid& grid, const found_paths& out,
                   int n_threads);

}  // namespace pairgram
