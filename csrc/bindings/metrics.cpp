// Ranking metrics: checks and evaluate_metrics.
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "bindings/bindings.hpp"
#include "metrics/evaluate.hpp"
#include "metrics/means.hpp"
#include "solvers/ties.hpp"

namespace pairgram {

namespace {

// One metric: name, cut, gain, discount, ties, empty, relevant, max_grade, divisor, shape.
using metric_fields = std::tuple<std::string, std::int64_t, std::string, std::string, std::string,
                                 double, double, double, std::string, double>;

metric_kind kind_of(const std::string& name) {
    return named<metric_kind>("a metric", name,
                              {{"dcg", metric_kind::dcg},
                               {"ndcg", metric_kind::ndcg},
                               {"mean_ndcg", metric_kind::mean_ndcg},
                               {"map", metric_kind::average_precision},
                               {"p", metric_kind::precision},
                               {"recall", metric_kind::recall},
                               {"mrr", metric_kind::reciprocal_rank},
                               {"err", metric_kind::expected_reciprocal_rank},
                               {"hit_rate", metric_kind::hit_rate},
                               {"rprec", metric_kind::r_precision},
                               {"auc", metric_kind::auc},
                               {"ef", metric_kind::enrichment},
                               {"bedroc", metric_kind::bedroc},
                               {"rbp", metric_kind::rank_biased_precision},
                               {"kendall", metric_kind::kendall},
                               {"spearman", metric_kind::spearman},
                               {"misranking", metric_kind::misranking},
                               {"msd", metric_kind::mean_squared_difference},
                               {"m1d", metric_kind::mean_absolute_difference},
                               {"ranking_error", metric_kind::ranking_error},
                               {"pearson", metric_kind::pearson}});
}

metric_spec metric_of(const metric_fields& fields) {
    const auto& [kind, cut, gain, discount, ties, empty, relevant, max_grade, divisor, shape] =
        fields;
    check(cut >= 1, "the cut of a metric must be at least 1");
    const auto which = kind_of(kind);
    const bool whole = which == metric_kind::mean_ndcg || which == metric_kind::r_precision ||
                       which == metric_kind::enrichment;
    check(!whole || cut == PTRDIFF_MAX, "the metric counts all ranks, and takes no cut");
    return {
        which,
        static_cast<std::ptrdiff_t>(cut),
        named<gain_kind>("gain", gain, {{"exp2", gain_kind::exp2}, {"linear", gain_kind::linear}}),
        named<discount_kind>("discount", discount,
                             {{"log2", discount_kind::log2}, {"letor", discount_kind::letor}}),
        named<tie_kind>("ties", ties,
                        {{"order", tie_kind::file_order},
                         {"average", tie_kind::average},
                         {"worst", tie_kind::worst}}),
        empty,
        relevant,
        max_grade,
        shape,
        named<bool>("divisor", divisor, {{"relevant", false}, {"cut", true}})};
}

array<double> evaluate(const array<double>& labels, const array<double>& scores,
                       const array<std::int64_t>& offsets,
                       const optional_array<std::int64_t>& order,
                       const std::vector<metric_fields>& specs, int n_threads) {
    const auto n_rows = labels.size();
    check(labels.ndim() == 1, "labels must be 1-d");
    check(scores.ndim() == 2 && scores.shape(1) == n_rows, "scores must be (n_scores, n_rows)");
    const auto queries = queries_of(offsets, order, n_rows);
    std::vector<metric_spec> metrics;
    for (const auto& fields : specs) metrics.push_back(metric_of(fields));
    const auto n_scores = scores.shape(0), n_metrics = length_of(metrics);
    array<double> out({n_metrics, n_scores, queries.n_queries});
    unlocked(evaluate_metrics, n_rows, n_scores, n_metrics, queries, pointer(labels),
             pointer(scores), metrics.data(), writable(out), n_threads);
    return out;
}

// The means and the deviations, (n_models, n_groups).
py::tuple summary(const array<double>& values, const array<double>& weights,
                  const array<std::int64_t>& group_of, py::ssize_t n_groups) {
    check(values.ndim() == 2, "values must be (n_models, n_queries)");
    const auto n_models = values.shape(0), n_queries = values.shape(1);
    check_one_per("weights: 1-d, one per query", weights, n_queries);
    check_one_per("group_of: 1-d, one per query", group_of, n_queries);
    check_all(
        n_queries, pointer(group_of),
        [=](std::int64_t group) { return 0 <= group && group < n_groups; },
        "group_of must be in [0, n_groups)");
    array<double> means({n_models, n_groups}), deviations({n_models, n_groups});
    const metric_values of{n_models,        n_queries,        n_groups,
                           pointer(values), pointer(weights), pointer(group_of)};
    unlocked_for(values.size(), summarize, of, writable(means), writable(deviations));
    return py::make_tuple(means, deviations);
}

// Changes the scores in place; see ties.hpp.
void join_tied_scores(array<double>& scores, const array<std::int64_t>& offsets,
                      const optional_array<std::int64_t>& order, const array<double>& amplification,
                      double spread, double rounding, int n_threads) {
    check(scores.ndim() == 2, "scores must be (n_models, n_rows)");
    check_one_per("amplification: 1-d, one per model", amplification, scores.shape(0));
    const auto n_models = scores.shape(0), n_rows = scores.shape(1);
    const auto queries = queries_of(offsets, order, n_rows);
    const tie_tolerance tolerance{rounding, spread, pointer(amplification)};
    if (n_models == 0) return;
    unlocked(join_ties, queries, n_models, n_rows, tolerance, writable(scores), n_threads);
}

}  // namespace

void bind_metrics(py::module_& m) {
    m.def("evaluate_metrics", &evaluate, "labels"_a, "scores"_a, "offsets"_a, "order"_a, "specs"_a,
          "n_threads"_a);
    m.def("summarize", &summary, "values"_a, "weights"_a, "group_of"_a, "n_groups"_a);
    m.def("join_ties", &join_tied_scores, "scores"_a, "offsets"_a, "order"_a, "amplification"_a,
          "spread"_a, "rounding"_a, "n_threads"_a);
}

}  // namespace pairgram
