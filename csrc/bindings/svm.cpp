// The pair operator of RankSVM, and products with rows: checks, GIL release; nothing else.
#include <memory>
#include <string>

#include "bindings/losses.hpp"
#include "bindings/problem.hpp"
#include "solvers/pair_operator.hpp"
#include "solvers/row_products.hpp"

namespace pairgram {

namespace {

using bound_operator = one_user<pair_operator>;

std::unique_ptr<bound_operator> make_operator(const bound_problem& problem, const std::string& loss,
                                              bool of_clicks) {
    const auto wanted = of_clicks ? pair_kind::omega : pair_kind::dropped;
    check(problem.view.rule.kind == wanted,
          "problem must have pairs='dropped', or those of clicks");
    const auto kind = named<pair_loss>("loss", loss, pair_losses);
    check(!of_clicks || kind != pair_loss::logistic, "loss must not be logistic for clicks");
    const without_gil release(problem.n_rows());
    return std::make_unique<bound_operator>(
        problem.view, kind, of_clicks ? preference::of_clicks : preference::of_labels);
}

array<double> product_of_queries(bound_operator& bound, py::ssize_t first, py::ssize_t last,
                                 const array<double>& u) {
    const use_of<pair_operator> pairs(bound);
    check(0 <= first && first <= last && last <= pairs->n_queries(),
          "first and last must be queries");
    check(u.ndim() == 1 && u.size() == pairs->first_row(last) - pairs->first_row(first),
          "u must be 1-d, one per row of the queries");
    const double* in = pointer(u);
    array<double> result(u.size());
    double* out = result.mutable_data();
    const without_gil release;
    pairs->product(first, last, in, out);
    return result;
}

template <class T>
matrix_rows<T> rows_of(const array<T>& features, const optional_array<std::int64_t>& order) {
    check(features.ndim() == 2, "features must be 2-d");
    const auto n = features.shape(0);
    const std::int64_t all_rows[] = {0, n};
    if (order) {
        check(order->ndim() == 1 && order->size() == n, "order must be 1-d with a value per row");
        const query_rows all{1, all_rows, pointer(order)};
        const without_gil release(n);
        check_rows(all, n);
    }
    return {n, features.shape(1), pointer(features), pointer(order)};
}

template <class T>
array<double> score_array(const array<T>& features, const array<double>& coefs,
                          const optional_array<std::int64_t>& order, int n_threads) {
    const auto rows = rows_of(features, order);
    const bool one = coefs.ndim() == 1;
    check((one || coefs.ndim() == 2) && coefs.shape(coefs.ndim() - 1) == rows.width,
          "coefs must be (n_features,) or (n_models, n_features), one per feature");
    const auto n_models = one ? 1 : coefs.shape(0);
    const double* in = pointer(coefs);
    array<double> result =
        one ? array<double>(rows.n_rows) : array<double>({n_models, rows.n_rows});
    double* out = result.mutable_data();
    const without_gil release;
    score_rows(rows, linear_models(n_models, rows.width, in), out, n_threads);
    return result;
}

template <class T>
array<double> sum_array(const array<T>& features, const array<double>& z,
                        const optional_array<std::int64_t>& order, int n_threads) {
    const auto rows = rows_of(features, order);
    check(z.ndim() == 1 && z.size() == rows.n_rows, "z must be 1-d, one per row");
    const double* in = pointer(z);
    array<double> result(rows.width);
    double* out = result.mutable_data();
    const without_gil release;
    sum_rows(rows, in, out, n_threads);
    return result;
}

template <class T>
py::tuple hessian_array(bound_operator& bound, const array<T>& features, const array<double>& s,
                        const optional_array<std::int64_t>& order, int n_threads) {
    const use_of<pair_operator> pairs(bound);
    const auto rows = rows_of(features, order);
    check(rows.n_rows == pairs->n_rows(), "features must have the rows of the operator");
    check(s.ndim() == 1 && s.size() == rows.width, "s must be 1-d, one per feature");
    const double* in = pointer(s);
    array<double> scores(rows.n_rows), result(rows.width);
    double *scores_out = scores.mutable_data(), *out = result.mutable_data();
    {
        const without_gil release;
        hessian_product(*pairs, rows, in, scores_out, out, n_threads);
    }
    return py::make_tuple(result, scores);
}

template <class T>
void define_row_products(py::module_& m, py::class_<bound_operator>& pairs) {
    m.def("score_rows", &score_array<T>, py::arg("features").noconvert(),
          py::arg("coefs").noconvert(), py::arg("order").noconvert() = py::none(),
          py::arg("n_threads") = 1);
    m.def("sum_rows", &sum_array<T>, py::arg("features").noconvert(), py::arg("z").noconvert(),
          py::arg("order").noconvert() = py::none(), py::arg("n_threads") = 1);
    pairs.def("hessian_product", &hessian_array<T>, py::arg("features").noconvert(),
              py::arg("s").noconvert(), py::arg("order").noconvert() = py::none(),
              py::arg("n_threads") = 1);
}

}  // namespace

void bind_pair_operator(py::module_& m) {
    py::class_<bound_operator> pairs(m, "PairOperator");
    pairs
        .def(py::init(&make_operator), py::arg("problem"), py::kw_only(),
             py::arg("loss") = "squared_hinge", py::arg("of_clicks") = false)
        .def("product_of_queries", &product_of_queries, py::arg("first"), py::arg("last"),
             py::arg("u").noconvert())
        // Calls do not change these two.
        .def_property_readonly("n_rows",
                               [](bound_operator& bound) { return bound.object.n_rows(); })
        .def_property_readonly("pair_weights", [](bound_operator& bound) {
            const auto& weights = bound.object.pair_weights();
            return array<double>(static_cast<py::ssize_t>(weights.size()), weights.data());
        });
    define_loss<pair_operator>(pairs);
    define_row_products<double>(m, pairs);
    define_row_products<float>(m, pairs);
}

}  // namespace pairgram
