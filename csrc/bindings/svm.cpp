// RankSVM: its losses, the features of its rows, and its solver: checks, GIL release; nothing else.
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bindings/losses.hpp"
#include "solvers/newton.hpp"
#include "solvers/pair_operator.hpp"
#include "solvers/row_products.hpp"

namespace pairgram {

namespace {

std::shared_ptr<pair_operator> make_operator(const bound_problem& problem,
                                             const std::string& loss) {
    const auto kind = loss_of(problem, loss);
    const without_gil release(problem.n_rows());
    return std::make_shared<pair_operator>(problem.view, kind);
}

// `RowFeatures` of Python: features, and what they read.
struct bound_features {
    std::unique_ptr<row_features> object;
    std::vector<py::object> arrays;
    std::shared_ptr<const bound_features> inner = {};
};

// `WeightsLoss` of Python: a loss, and what it reads.
struct kept_loss {
    std::unique_ptr<weights_loss> object;
    std::shared_ptr<const void> features = {}, pairs = {};
    py::object offset = py::none();
};

using bound_loss = one_user<kept_loss>;

template <class T>
bound_features of_dense(const array<T>& features, const optional_array<std::int64_t>& order) {
    check(features.ndim() == 2, "features must be 2-d");
    const auto n = features.shape(0);
    check_one_per("order must be 1-d with a value per row", order, n);
    const std::int64_t all_rows[] = {0, n};
    unlocked_for(n, check_rows, query_rows{1, all_rows, pointer(order)}, n);
    const matrix_rows<T> rows{n, features.shape(1), pointer(features), pointer(order)};
    return {std::make_unique<dense_features<T>>(rows), {features, py::cast(order)}};
}

bound_features of_sparse(const array<std::int64_t>& indptr, const array<std::int32_t>& indices,
                         const array<double>& values, py::ssize_t n_columns) {
    const auto rows = sparse_rows_of(indptr, indices, values, n_columns);
    return {std::make_unique<sparse_features>(rows), {indptr, indices, values}};
}

bound_features of_maker(py::ssize_t n_rows, py::ssize_t width, py::ssize_t at_once,
                        const py::function& make) {
    check(n_rows >= 0 && width >= 0 && at_once > 0, "sizes must not be negative");
    const auto fill = [=](std::ptrdiff_t begin, std::ptrdiff_t end, double* out) {
        const py::gil_scoped_acquire acquire;
        const auto rows = array<double>(make(begin, end));
        check(has_shape(rows, {end - begin, width}), "make must return (end - begin, n_features)");
        std::copy_n(rows.data(), rows.size(), out);
    };
    return {std::make_unique<dense_features<double>>(n_rows, width, at_once, fill), {}};
}

bound_features whitened(const std::shared_ptr<bound_features>& inner, const array<double>& w) {
    const auto& rows = *inner->object;
    check(w.ndim() == 2 && w.shape(0) == rows.width(), "whitening must be 2-d, of the features");
    return {std::make_unique<whitened_features>(rows, w.shape(1), pointer(w)), {w}, inner};
}

array<double> sum_array(const bound_features& bound, const array<double>& z, int n_threads) {
    const auto& features = *bound.object;
    check_one_per("z must be 1-d, one per row", z, features.n_rows());
    array<double> out(features.width());
    unlocked(std::mem_fn(&row_features::sum), features, pointer(z), writable(out), n_threads);
    return out;
}

std::unique_ptr<bound_loss> loss_of_rows(const std::shared_ptr<bound_features>& features,
                                         const std::shared_ptr<score_loss>& pairs,
                                         const array<double>& offset, int n_threads) {
    const auto& rows = *features->object;
    check(rows.n_rows() == pairs->n_rows(), "features must have the rows of the loss");
    check_one_per("offset must be 1-d, one per row", offset, rows.n_rows());
    const auto* in = pointer(offset);
    check_all(
        offset.size(), in, [](double f) { return std::isfinite(f); }, "offset must be finite");
    auto loss = std::make_unique<rows_loss>(rows, *pairs, in, n_threads);
    return std::make_unique<bound_loss>(kept_loss{std::move(loss), features, pairs, offset});
}

// The loss of rows that do not stay in memory, as functions of Python, which read all of them.
class loss_of_passes final : public weights_loss {
  public:
    loss_of_passes(std::ptrdiff_t width, py::function at, py::function product)
        : weights_loss(width), at_(std::move(at)), product_(std::move(product)) {}

    point at(const double* w, const double* step, double t) override {
        const py::gil_scoped_acquire acquire;
        const auto sums = at_(vector(w), vector(step), t).cast<py::tuple>();
        curve_ = sums[2].cast<double>();
        copy(sums[3], pull_);
        return {sums[0].cast<double>(), sums[1].cast<double>()};
    }
    double curve() override { return curve_; }
    void stay(double* pull) override { std::copy(pull_.begin(), pull_.end(), pull); }
    void product(const double* w, const double* direction, double* out) override {
        const py::gil_scoped_acquire acquire;
        copy(product_(vector(w), vector(direction)), product_found_);
        std::copy(product_found_.begin(), product_found_.end(), out);
    }

  private:
    array<double> vector(const double* values) const { return array<double>(width(), values); }
    void copy(const py::object& values, buffer<double>& out) const {
        const auto found = array<double>(values);
        check_one_per("sums must be 1-d, one per feature", found, width());
        out.assign(found.data(), found.data() + found.size());
    }

    py::function at_, product_;
    buffer<double> pull_, product_found_;
    double curve_ = 0;
};

std::unique_ptr<bound_loss> loss_by_passes(py::ssize_t width, const py::function& at,
                                           const py::function& product) {
    return std::make_unique<bound_loss>(
        kept_loss{std::make_unique<loss_of_passes>(width, at, product)});
}

// Of a block of rows alone: the loss at w + t·step, its two derivatives by t, and its gradient.
py::tuple at_point(bound_loss& bound, const array<double>& w, const array<double>& step, double t) {
    const use_of<kept_loss> use(bound);
    auto& loss = *use->object;
    check_one_per("w must be 1-d, one per feature", w, loss.width());
    check_one_per("step must be 1-d, one per feature", step, loss.width());
    const double *from = pointer(w), *along = pointer(step);
    array<double> pull(loss.width());
    double* const out = pull.mutable_data();
    weights_loss::point found;
    double curve = 0;
    {
        const without_gil release;
        loss.start(from, t == 0 ? nullptr : along);
        found = loss.at(from, along, t);
        if (t != 0) curve = loss.curve();
        loss.stay(out);
    }
    return py::make_tuple(found.loss, found.slope, curve, pull);
}

// Of a block of rows alone: the Hessian at w, times a direction.
array<double> product_at(bound_loss& bound, const array<double>& w,
                         const array<double>& direction) {
    const use_of<kept_loss> use(bound);
    auto& loss = *use->object;
    check_one_per("w must be 1-d, one per feature", w, loss.width());
    check_one_per("direction must be 1-d, one per feature", direction, loss.width());
    const double *from = pointer(w), *in = pointer(direction);
    array<double> result(loss.width());
    double* const out = result.mutable_data();
    const without_gil release;
    loss.start(from, nullptr);
    loss.at(from, in, 0);
    loss.product(from, in, out);
    return result;
}

py::tuple solve_svm(const std::vector<std::pair<bound_loss*, array<std::int64_t>>>& losses,
                    const array<double>& curvature, const array<double>& Cs, double steepness,
                    double tol, py::ssize_t max_iter, int n_threads) {
    const auto width = curvature.shape(0), n_Cs = Cs.size();
    check(curvature.ndim() == 1 || (curvature.ndim() == 2 && curvature.shape(1) == width),
          "curvature must be (n_features, n_features) or (n_features,)");
    check(Cs.ndim() == 1, "Cs must be 1-d");
    const gram_of_pairs gram{width, pointer(curvature), curvature.ndim() == 1, steepness};
    const newton_settings settings{n_Cs, pointer(Cs), tol, max_iter};
    array<double> coefs({length_of(losses), n_Cs, width});
    std::deque<use_of<kept_loss>> uses;
    buffer<newton_task> tasks;
    for (const auto& [loss, constant] : losses) {
        uses.emplace_back(*loss);
        const auto* of = pointer(constant);
        check(loss->object.object->width() == width,
              "curvature must have the features of the losses");
        check_all(
            constant.size(), of, [=](std::int64_t j) { return 0 <= j && j < width; },
            "constant must be numbers of features");
        tasks.push_back(
            {loss->object.object.get(), constant.size(), of, coefs.mutable_data(length_of(tasks))});
    }
    unlocked(solve_paths, tasks, gram, settings, n_threads);
    py::list histories;
    for (auto& task : tasks)
        for (auto& history : task.histories) histories.append(py::cast(std::move(history)));
    return py::make_tuple(coefs, histories);
}

template <auto Member>
auto values_of(const newton_history& history) {
    return as_array(history.*Member);
}

}  // namespace

void bind_svm(py::module_& m) {
    py::class_<score_loss, std::shared_ptr<score_loss>>(m, "ScoreLoss")
        .def_property_readonly("pair_weights", [](const score_loss& loss) {
            return as_array(loss.pair_weights());  // which no call changes
        });
    py::class_<pair_operator, score_loss, std::shared_ptr<pair_operator>>(m, "PairOperator")
        .def(py::init(&make_operator), "problem"_a, py::kw_only(), "loss"_a = "squared_hinge");
    py::class_<bound_features, std::shared_ptr<bound_features>>(m, "RowFeatures")
        .def("sum", &sum_array, "z"_a, "n_threads"_a = 1);
    m.def("dense_features", &of_dense<double>, "features"_a, "order"_a = py::none());
    m.def("dense_features", &of_dense<float>, "features"_a, "order"_a = py::none());
    m.def("sparse_features", &of_sparse, "indptr"_a, "indices"_a, "values"_a, "n_columns"_a);
    m.def("made_features", &of_maker, "n_rows"_a, "n_features"_a, "at_once"_a, "make"_a);
    m.def("whitened_features", &whitened, "features"_a, "whitening"_a);
    py::class_<bound_loss>(m, "WeightsLoss")
        .def("at", &at_point, "w"_a, "step"_a, "t"_a)
        .def("product", &product_at, "w"_a, "direction"_a);
    m.def("loss_of_rows", &loss_of_rows, "features"_a, "pairs"_a, "offset"_a, "n_threads"_a = 1);
    m.def("loss_by_passes", &loss_by_passes, "n_features"_a, "at"_a, "product"_a);
    py::class_<newton_history>(m, "Convergence")
        .def_property_readonly("objective", &values_of<&newton_history::objective>)
        .def_property_readonly("relative_gradient", &values_of<&newton_history::relative_gradient>)
        .def_property_readonly("n_hessian_products",
                               &values_of<&newton_history::n_hessian_products>)
        .def_property_readonly("n_passes", &values_of<&newton_history::n_passes>)
        .def_property_readonly("step", &values_of<&newton_history::step>)
        .def_readonly("converged", &newton_history::converged);
    m.def("solve_svm", &solve_svm, "losses"_a, "curvature"_a, "Cs"_a, py::kw_only(), "steepness"_a,
          "tol"_a, "max_iter"_a, "n_threads"_a);
}

}  // namespace pairgram
