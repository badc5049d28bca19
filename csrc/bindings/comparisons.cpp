// Comparisons of items and their losses: checks, GIL release; nothing else.
#include "data/comparisons.hpp"

#include <algorithm>
#include <memory>
#include <string>

#include "bindings/losses.hpp"
#include "solvers/comparison_loss.hpp"

namespace pairgram {

namespace {

using bound_comparison_loss = one_user<comparison_loss>;

std::shared_ptr<comparisons> make_comparisons(py::ssize_t n_items,
                                              const array<std::int64_t>& winner,
                                              const array<std::int64_t>& loser,
                                              const optional_array<double>& weights) {
    const auto n = winner.size();
    check(n_items >= 0 && winner.ndim() == 1 && loser.ndim() == 1 && loser.size() == n,
          "winner and loser must be 1-d, of one length");
    if (weights) check_one_per("weights must be 1-d, one per comparison", *weights, n);
    const auto *first = pointer(winner), *second = pointer(loser);
    const auto* of_pairs = pointer(weights);
    const without_gil release(n);
    const auto is_item = [&](std::int64_t item) { return item >= 0 && item < n_items; };
    check(std::all_of(first, first + n, is_item) && std::all_of(second, second + n, is_item),
          "winner and loser must be items");
    return std::make_shared<comparisons>(n_items, n, first, second, of_pairs);
}

array<std::int64_t> connected(const comparisons& pairs) {
    array<std::int64_t> roots(pairs.n_items());
    auto* out = roots.mutable_data();
    const without_gil release(pairs.n_pairs());
    pairs.connected(out);
    return roots;
}

array<std::int64_t> item_offsets(const comparisons& pairs) {
    array<std::int64_t> offsets(pairs.n_items() + 1);
    std::copy(pairs.offsets.begin(), pairs.offsets.end(), offsets.mutable_data());
    return offsets;
}

array<std::int64_t> pairs_of_places(const comparisons& pairs) {
    array<std::int64_t> found(2 * pairs.n_pairs());
    std::transform(pairs.places.begin(), pairs.places.end(), found.mutable_data(),
                   [](const comparisons::place& at) { return at.pair; });
    return found;
}

py::ssize_t width_of(const comparisons& pairs, const array<double>& rows) {
    check(rows.ndim() == 2 && rows.shape(0) == pairs.n_items(), "rows must be 2-d, one per item");
    return rows.shape(1);
}

array<double> pair_products(const comparisons& pairs, const array<double>& rows,
                            const array<double>& targets, int n_threads) {
    const auto width = width_of(pairs, rows);
    check_one_per("targets must be 1-d, one per comparison", targets, pairs.n_pairs());
    const auto *in = pointer(rows), *t = pointer(targets);
    array<double> result({pairs.n_items(), width + 1});
    auto* out = result.mutable_data();
    const without_gil release;
    pairs.multiply(width, in, t, out, n_threads);
    return result;
}

std::unique_ptr<bound_comparison_loss> make_comparison_loss(
    const std::shared_ptr<comparisons>& pairs, const array<double>& margins,
    const std::string& loss) {
    check_one_per("margins must be 1-d, one per comparison", margins, pairs->n_pairs());
    const auto kind = named<pair_loss>("loss", loss, pair_losses);
    const auto* of_pairs = pointer(margins);
    const without_gil release(pairs->n_pairs());
    return std::make_unique<bound_comparison_loss>(pairs, of_pairs, kind);
}

}  // namespace

void bind_comparisons(py::module_& m) {
    py::class_<comparisons, std::shared_ptr<comparisons>>(m, "Comparisons")
        .def(py::init(&make_comparisons), py::arg("n_items"), py::arg("winner").noconvert(),
             py::arg("loser").noconvert(), py::arg("weights").noconvert().none(true))
        .def("connected", &connected)
        .def("offsets", &item_offsets)
        .def("pairs", &pairs_of_places)
        .def("multiply", &pair_products, py::arg("rows").noconvert(),
             py::arg("targets").noconvert(), py::arg("n_threads"));
    py::class_<bound_comparison_loss, std::shared_ptr<bound_comparison_loss>> loss(
        m, "ComparisonLoss");
    loss.def(py::init(&make_comparison_loss), py::arg("comparisons"),
             py::arg("margins").noconvert(), py::kw_only(), py::arg("loss"));
    define_loss<comparison_loss>(loss);
}

}  // namespace pairgram
