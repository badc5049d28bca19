// What the losses of pairs share: their names, and the methods of the Python classes.
#pragma once

#include <cmath>
#include <functional>

#include "bindings/problem.hpp"
#include "solvers/pair_loss.hpp"

namespace pairgram {

// The losses of RankSVM by their names.
constexpr std::pair<const char*, pair_loss> pair_losses[] = {
    {"squared_hinge", pair_loss::squared_hinge},
    {"squared", pair_loss::squared},
    {"logistic", pair_loss::logistic}};

// The loss of this name, which the pairs of the problem must suit.
inline pair_loss loss_of(const bound_problem& problem, const std::string& name) {
    const auto& rule = problem.view.rule;
    check(rule.kind == pair_kind::dropped || rule.sums_labels(),
          "problem must have pairs='dropped', or those of clicks");
    const auto loss = named<pair_loss>("loss", name, pair_losses);
    check(!rule.sums_labels() || loss != pair_loss::logistic,
          "loss must not be logistic for clicks");
    return loss;
}

// Defines set_scores, product and pair_weights of a loss as a function of the scores of rows.
template <class Loss>
void define_loss(py::class_<one_user<Loss>, std::shared_ptr<one_user<Loss>>>& of_loss) {
    const auto set_scores = [](one_user<Loss>& bound, const array<double>& scores, int n_threads) {
        const use_of<Loss> loss(bound);
        check_one_per("scores must be 1-d, one per row", scores, loss->n_rows());
        const double* in = pointer(scores);
        check_all(
            scores.size(), in, [](double f) { return std::isfinite(f); }, "scores must be finite");
        array<double> gradient(scores.size());
        const double value =
            unlocked(std::mem_fn(&Loss::set_scores), *loss, in, writable(gradient), n_threads);
        return py::make_tuple(value, gradient);
    };
    const auto product = [](one_user<Loss>& bound, const array<double>& u, int n_threads) {
        const use_of<Loss> loss(bound);
        check_one_per("u must be 1-d, one per row", u, loss->n_rows());
        const double* in = pointer(u);
        array<double> result(u.size());
        double* out = result.mutable_data();
        const without_gil release;
        loss->product(in, out, n_threads);
        return result;
    };
    of_loss.def("set_scores", set_scores, "scores"_a, "n_threads"_a = 1)
        .def("product", product, "u"_a, "n_threads"_a = 1)
        .def_property_readonly("pair_weights", [](const one_user<Loss>& bound) {
            return as_array(bound.object.pair_weights());  // which no call changes
        });
}

}  // namespace pairgram
