// Comparisons of items and their losses: checks, GIL release; nothing else.
#include "data/comparisons.hpp"

#include <algorithm>
#include <functional>
#include <memory>
#include <string>

#include "bindings/losses.hpp"
#include "solvers/comparison_loss.hpp"

namespace pairgram {

namespace {

std::shared_ptr<comparisons> make_comparisons(py::ssize_t n_items,
                                              const array<std::int64_t>& winner,
                                              const array<std::int64_t>& loser,
                                              const optional_array<double>& weights) {
    const auto n = winner.size();
    check(n_items >= 0 && has_shape(winner, {n}) && has_shape(loser, {n}),
          "winner and loser must be 1-d, of one length");
    check_one_per("weights must be 1-d, one per comparison", weights, n);
    const auto *first = pointer(winner), *second = pointer(loser);
    const auto* of_pairs = pointer(weights);
    const without_gil release(n);
    const auto is_item = [&](std::int64_t item) { return item >= 0 && item < n_items; };
    check(std::all_of(first, first + n, is_item) && std::all_of(second, second + n, is_item),
          "winner and loser must be items");
    return std::make_shared<comparisons>(n_items, n, first, second, of_pairs);
}

array<double> pair_products(const comparisons& pairs, const array<double>& rows,
                            const array<double>& targets, int n_threads) {
    check(rows.ndim() == 2 && rows.shape(0) == pairs.n_items(), "rows must be 2-d, one per item");
    check_one_per("targets must be 1-d, one per comparison", targets, pairs.n_pairs());
    const auto width = rows.shape(1);
    array<double> out({pairs.n_items(), width + 1});
    unlocked(std::mem_fn(&comparisons::multiply), pairs, width, pointer(rows), pointer(targets),
             writable(out), n_threads);
    return out;
}

std::shared_ptr<comparison_loss> make_comparison_loss(const std::shared_ptr<comparisons>& pairs,
                                                      const array<double>& margins,
                                                      const std::string& loss) {
    check_one_per("margins must be 1-d, one per comparison", margins, pairs->n_pairs());
    const auto kind = named<pair_loss>("loss", loss, pair_losses);
    const auto* of_pairs = pointer(margins);
    const without_gil release(pairs->n_pairs());
    return std::make_shared<comparison_loss>(pairs, of_pairs, kind);
}

}  // namespace

void bind_comparisons(py::module_& m) {
    py::class_<comparisons, std::shared_ptr<comparisons>>(m, "Comparisons")
        .def(py::init(&make_comparisons), "n_items"_a, "winner"_a, "loser"_a, "weights"_a)
        .def("multiply", &pair_products, "rows"_a, "targets"_a, "n_threads"_a);
    py::class_<comparison_loss, score_loss, std::shared_ptr<comparison_loss>>(m, "ComparisonLoss")
        .def(py::init(&make_comparison_loss), "comparisons"_a, "margins"_a, py::kw_only(),
             "loss"_a);
}

}  // namespace pairgram
