// The pair operator of RankSVM: checks, GIL release; nothing else.
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>

#include "bindings.hpp"
#include "pair_operator.hpp"

namespace pairgram {

namespace {

std::unique_ptr<pair_operator> make_operator(const array<double>& labels,
                                             const array<std::int64_t>& offsets,
                                             const optional_array<double>& row_weights,
                                             const optional_array<double>& query_weights,
                                             const std::string& weighting,
                                             const std::string& loss) {
    const auto one_per = [](const array<double>& values, py::ssize_t n) {
        return values.ndim() == 1 && values.size() == n;
    };
    check(labels.ndim() == 1, "labels must be 1-d");
    const auto queries = queries_of(offsets, std::nullopt, labels.size());
    check(!row_weights || one_per(*row_weights, labels.size()), "row_weights: 1-d, one per row");
    check(!query_weights || one_per(*query_weights, queries.n_queries),
          "query_weights: 1-d, one per query");
    const double* values = pointer(labels);
    check(std::none_of(values, values + labels.size(), [](double y) { return std::isnan(y); }),
          "labels must not be NaN");
    check(loss == "squared_hinge" || loss == "squared",
          "loss must be 'squared_hinge' or 'squared'");
    return std::make_unique<pair_operator>(
        preference_rows{queries.n_queries, queries.offsets, values, pointer(row_weights),
                        pointer(query_weights)},
        weighting_of(weighting), loss == "squared" ? pair_loss::squared : pair_loss::squared_hinge);
}

void check_one_per_row(const pair_operator& pairs, const array<double>& values, const char* what) {
    check(values.ndim() == 1 && values.size() == pairs.n_rows(), what);
}

py::tuple set_scores(pair_operator& pairs, const array<double>& scores, int n_threads) {
    check_one_per_row(pairs, scores, "scores must be 1-d, one per row");
    const double* in = pointer(scores);
    check(std::all_of(in, in + scores.size(), [](double f) { return std::isfinite(f); }),
          "scores must be finite");
    array<double> gradient(scores.size());
    double* out = gradient.mutable_data();
    double loss = 0;
    {
        const py::gil_scoped_release release;
        loss = pairs.set_scores(in, out, n_threads);
    }
    return py::make_tuple(loss, gradient);
}

array<double> product(const pair_operator& pairs, const array<double>& u, int n_threads) {
    check_one_per_row(pairs, u, "u must be 1-d, one per row");
    const double* in = pointer(u);
    array<double> result(u.size());
    double* out = result.mutable_data();
    const py::gil_scoped_release release;
    pairs.product(in, out, n_threads);
    return result;
}

}  // namespace

void bind_pair_operator(py::module_& m) {
    py::class_<pair_operator>(m, "PairOperator")
        .def(py::init(&make_operator), py::arg("labels").noconvert(),
             py::arg("offsets").noconvert(), py::kw_only(),
             py::arg("row_weights").noconvert() = py::none(),
             py::arg("query_weights").noconvert() = py::none(), py::arg("weighting") = "pairs",
             py::arg("loss") = "squared_hinge")
        .def("set_scores", &set_scores, py::arg("scores").noconvert(), py::arg("n_threads") = 1)
        .def("product", &product, py::arg("u").noconvert(), py::arg("n_threads") = 1);
}

}  // namespace pairgram
