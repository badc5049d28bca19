// The names of the losses of pairs.
#pragma once

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

}  // namespace pairgram
