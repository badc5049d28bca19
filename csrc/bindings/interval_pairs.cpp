// Pairs of labels that may be censored: checks, GIL release; nothing else.
#include "data/interval_pairs.hpp"

#include <cmath>
#include <memory>
#include <string>

#include "bindings/losses.hpp"
#include "solvers/interval_loss.hpp"

namespace pairgram {

namespace {

using bound_interval_loss = one_user<interval_loss>;

std::shared_ptr<interval_pairs> make_interval_pairs(const array<std::int64_t>& offsets,
                                                    const optional_array<std::int64_t>& order,
                                                    const array<double>& lower,
                                                    const array<double>& upper) {
    const auto n = lower.size();
    check_one_per("lower must be 1-d", lower, n);
    check_one_per("upper must be 1-d, one per row", upper, n);
    const auto queries = queries_of(offsets, order, n);
    const auto *low = pointer(lower), *high = pointer(upper);
    const auto is_number = [](double bound) { return !std::isnan(bound); };
    check_all(n, low, is_number, "lower must not be NaN");
    check_all(n, high, is_number, "upper must not be NaN");
    const without_gil release(n);
    return std::make_shared<interval_pairs>(queries, low, high);
}

// Of every row the numbers of rows below, above and tied.
array<std::int64_t> counts(const interval_pairs& pairs) {
    array<std::int64_t> found({py::ssize_t{3}, static_cast<py::ssize_t>(pairs.n_rows())});
    auto* out = found.mutable_data();
    for (const auto* part : {&pairs.n_below, &pairs.n_above, &pairs.n_tied})
        out = std::copy(part->begin(), part->end(), out);
    return found;
}

array<double> interval_products(const interval_pairs& pairs, const array<double>& rows,
                                int n_threads) {
    check(rows.ndim() == 2 && rows.shape(0) == pairs.n_rows(), "rows must be 2-d, one per row");
    const auto width = rows.shape(1);
    const auto* in = pointer(rows);
    array<double> result({static_cast<py::ssize_t>(pairs.n_rows()), width});
    auto* out = result.mutable_data();
    const without_gil release(rows.size());
    pairs.multiply(width, in, out, n_threads);
    return result;
}

py::tuple pull(const interval_pairs& pairs, const array<double>& low, const array<double>& high) {
    check_one_per("low must be 1-d, one per row", low, pairs.n_rows());
    check_one_per("high must be 1-d, one per row", high, pairs.n_rows());
    const auto *first = pointer(low), *second = pointer(high);
    array<double> result(pairs.n_rows()), squares(pairs.n_queries());
    auto *out = result.mutable_data(), *of_queries = squares.mutable_data();
    {
        const without_gil release(pairs.n_rows());
        pairs.pull(first, second, out, of_queries, 1);
    }
    return py::make_tuple(result, squares);
}

array<double> concordant(const interval_pairs& pairs, const array<double>& scores, int n_threads) {
    check(scores.ndim() == 2 && scores.shape(1) == pairs.n_rows(), "scores must be 2-d, by row");
    const auto n_models = scores.shape(0);
    const auto* in = pointer(scores);
    check_all(scores.size(), in, [](double f) { return !std::isnan(f); }, "scores must not be NaN");
    array<double> result({n_models, static_cast<py::ssize_t>(pairs.n_queries())});
    auto* out = result.mutable_data();
    const without_gil release(scores.size());
    pairs.concordant(n_models, in, out, n_threads);
    return result;
}

std::unique_ptr<bound_interval_loss> make_interval_loss(
    const std::shared_ptr<interval_pairs>& pairs, const array<double>& low,
    const array<double>& high, const std::string& loss) {
    check_one_per("low must be 1-d, one per row", low, pairs->n_rows());
    check_one_per("high must be 1-d, one per row", high, pairs->n_rows());
    const auto kind = named<pair_loss>("loss", loss, pair_losses);
    check(kind != pair_loss::logistic, "loss must not be logistic for pairs that are not listed");
    const auto *first = pointer(low), *second = pointer(high);
    for (const auto* bounds : {first, second})
        check_all(
            low.size(), bounds, [](double b) { return std::isfinite(b); }, "bounds must be finite");
    const without_gil release(pairs->n_rows());
    return std::make_unique<bound_interval_loss>(pairs, first, second, kind);
}

}  // namespace

void bind_interval_pairs(py::module_& m) {
    py::class_<interval_pairs, std::shared_ptr<interval_pairs>>(m, "IntervalPairs")
        .def(py::init(&make_interval_pairs), py::arg("offsets").noconvert(),
             py::arg("order").noconvert(), py::arg("lower").noconvert(),
             py::arg("upper").noconvert())
        .def("counts", &counts)
        .def("multiply", &interval_products, py::arg("rows").noconvert(), py::arg("n_threads"))
        .def("pull", &pull, py::arg("low").noconvert(), py::arg("high").noconvert())
        .def("concordant", &concordant, py::arg("scores").noconvert(), py::arg("n_threads"));
    py::class_<bound_interval_loss> loss(m, "IntervalLoss");
    loss.def(py::init(&make_interval_loss), py::arg("pairs"), py::arg("low").noconvert(),
             py::arg("high").noconvert(), py::kw_only(), py::arg("loss"));
    define_loss<interval_loss>(loss);
}

}  // namespace pairgram
