// The rows of groups of queries, such as users: gathered, mapped and transformed group by group, so
// that they stay in the cache.
#pragma once

#include <cstddef>
#include <cstdint>
#include <variant>

#include "data/laplacian_root.hpp"
#include "data/ranking_problem.hpp"
#include "features/node_map.hpp"
#include "support/buffer.hpp"

namespace pairgram {

// Groups of queries of a problem, whose rows stand one group after the other in its order.
struct query_groups {
    const ranking_problem& problem;
    std::ptrdiff_t n_groups = 0;
    const std::int64_t* queries = nullptr;    // (n_groups + 1,) the first query of each
    const std::int64_t* n_targets = nullptr;  // (n_groups,)
    const double* targets = nullptr;          // (rows, n_targets) of group after group, by row
    std::ptrdiff_t n_columns = 0;  // of dense rows, in one block, or in a block for each group
    std::variant<buffer<const double*>, buffer<const float*>> blocks = {};
    const node_map<double>* map = nullptr;  // of the rows, or null

    std::ptrdiff_t n_features() const { return map ? map->n_outputs : n_columns; }
    // The position of the first row of a group, and how many it has.
    std::ptrdiff_t begin(std::ptrdiff_t g) const { return problem.rows.begin(queries[g]); }
    std::ptrdiff_t n_rows(std::ptrdiff_t g) const { return begin(g + 1) - begin(g); }
};

// What is also told, if asked for, of each group's first target: the diagonal of G and G w,
// (n_groups, n_features), and Σ W, (n_groups,).
struct group_sums {
    double *squares = nullptr, *products = nullptr, *pair_weights = nullptr;
};

enum class group_state : std::int8_t { solved, no_pairs, unsolved };

// The rows of one group after the other, in the same memory. Groups with more than 2^19 values, or
// more than 256 rows and more than 256 features, are left to other code.
class group_rows {
  public:
    explicit group_rows(const query_groups& groups) : d(groups.n_features()), groups_(groups) {}

    std::ptrdiff_t d, n = 0, width = 0;  // features, rows, and columns of z in whole groups
    std::ptrdiff_t n_loaded = 0;         // targets beside the features: all of them, or none
    std::ptrdiff_t first = 0;            // position of the first row
    std::ptrdiff_t first_query = 0, last_query = 0;
    buffer<double> z;              // (n, width) [features, targets, zeros], then [H̃, ỹ, zeros]
    double pair_weight = 0;        // Σ W, NaN where weights of pairs vanish
    buffer<std::ptrdiff_t> lists;  // the queries with pairs

    // Loads the features of a group and makes room for its targets, unless these are very many.
    // False where the features are too many, or where a map may hide that they are not finite.
    bool load(std::ptrdiff_t g, std::ptrdiff_t n_targets);

    // Loads the targets (n, n_loaded) of the group.
    void load_targets(const double* targets);

    // z becomes [H̃, ỹ], query by query; false where no pair counts.
    bool transform();

    // out (n_targets, d) = ŷᵀz, where ŷ are targets (n, n_targets) less those of the first row of
    // the query, if there are pairs.
    void multiply_targets(const double* targets, std::ptrdiff_t n_targets, double* out) const;

    // Whether the transformed rows and their pair weights are numbers of a usual size.
    bool is_usable() const;

    // Whether products of rows with each other lose narrow features, which those of features do
    // not.
    bool loses_narrow() const;

    // Upper triangle of system (d, ·; stride ld) = H̃ᵀ[H̃, ỹ]. With more than 48 features, ỹ is left
    // out. False then.
    bool add_gram(double* system, std::ptrdiff_t ld) const;

    // The sums of the transformed group of this number, of weights w.
    void tell(std::ptrdiff_t g, const double* w, const group_sums& out) const;

    std::ptrdiff_t row(std::ptrdiff_t i) const { return problem().rows.row(first + i); }
    std::ptrdiff_t begin(std::ptrdiff_t query) const { return problem().rows.begin(query) - first; }
    const ranking_problem& problem() const { return groups_.problem; }

  private:
    void load_block(std::ptrdiff_t g, double* to, std::ptrdiff_t ld) const;
    bool has_pairs(std::ptrdiff_t query) const;

    const query_groups& groups_;
    query_plan plan_;
    level_sums sums_;
    buffer<double> inputs_;
};

// The sum of the sizes of x (n, width; stride ld); NaN or infinity where one is, or where it
// overflows.
double size_sum(std::ptrdiff_t n, std::ptrdiff_t width, const double* x, std::ptrdiff_t ld);

// Systems of this order and below are solved by loops, larger ones by LAPACK.
constexpr std::ptrdiff_t largest_own = 48;

// Where tasks begin among groups of so many values: neighbouring groups of one task stay in the
// cache. The end of the last follows.
buffer<std::ptrdiff_t> tasks_of(const query_groups& groups);

}  // namespace pairgram
