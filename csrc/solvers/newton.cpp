#include "solvers/newton.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "linear_algebra/cholesky.hpp"
#include "support/parallel.hpp"
#include "support/vectors.hpp"

namespace pairgram {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// Conjugate gradients end when the residual is this share of the gradient, in the norm of the
// preconditioner, or after so many steps.
constexpr double forcing = 0.2;
constexpr std::ptrdiff_t most_products = 500;
// The line search ends when the slope is this share of the first slope, or after so many steps.
constexpr double slope_share = 0.05;
constexpr int most_lengths = 30;
// The norm of the gradient at w = 0 must be at least this, so that its square is a number.
constexpr double smallest_gradient = 1e-150;
// A step that promises to lower the objective by less than this share is rounding error.
constexpr double rounding = 1e-15;
// A step that raises the objective by more than this share is rounding error too.
constexpr double most_rise = 1e-9;
// The largest ridge that is added to a matrix of unit diagonal so that it can be factorised. The
// ridge grows 64 times at every attempt.
constexpr double most_ridge = 1e-3;
// Factors for several C are kept together if they have at most so many entries.
constexpr std::ptrdiff_t kept_values = 1 << 20;

bool all_finite(const buffer<double>& x) {
    return std::all_of(x.begin(), x.end(), [](double value) { return std::isfinite(value); });
}

double dot(const buffer<double>& a, const buffer<double>& b) {
    return dot(length_of(a), a.data(), b.data());
}

void add(double factor, const buffer<double>& x, buffer<double>& y) {
    add(length_of(x), factor, x.data(), y.data());
}

// The 2-norm; it overflows only if the norm itself is too large.
double norm_of(const buffer<double>& x) {
    double largest = 0, squares = 0;
    for (const double value : x) {
        if (std::isnan(value)) return value;
        largest = std::max(largest, std::abs(value));
    }
    if (!(largest > 0 && largest < infinity)) return largest;
    for (const double value : x) squares += value / largest * (value / largest);
    return largest * std::sqrt(squares);
}

[[noreturn]] void refuse(double C, const char* size, const char* why) {
    char start[64];
    std::snprintf(start, sizeof start, "C=%g too %s", C, size);
    throw std::invalid_argument(start + (" for these rows and weights: " + std::string(why)));
}

}  // namespace

rows_loss::rows_loss(const row_features& features, score_loss& pairs, const double* offset,
                     int n_threads)
    : weights_loss(features.width()),
      features_(features),
      pairs_(pairs),
      offset_(offset),
      n_threads_(n_threads),
      scores_(features.n_rows()),
      along_(scores_.size()),
      found_(scores_.size()),
      gradient_(scores_.size()),
      part_(scores_.size()) {}

void rows_loss::start(const double* w, const double* step) {
    const auto set = [&](const double* weights, buffer<double>& scores) {
        if (weights && std::any_of(weights, weights + width(), [](double x) { return x != 0; }))
            features_.score(weights, scores.data(), n_threads_);
        else
            std::fill(scores.begin(), scores.end(), 0.0);
    };
    set(w, scores_);
    set(step, along_);
    add(features_.n_rows(), 1.0, offset_, scores_.data());
}

weights_loss::point rows_loss::at(const double*, const double*, double t) {
    found_ = scores_;
    if (t != 0) add(t, along_, found_);
    if (!all_finite(found_)) return {infinity, infinity};
    const double loss = pairs_.set_scores(found_.data(), gradient_.data(), n_threads_);
    return {loss, dot(gradient_, along_)};
}

double rows_loss::curve() {
    pairs_.product(along_.data(), part_.data(), n_threads_);
    return dot(along_, part_);
}

void rows_loss::stay(double* pull) {
    scores_.swap(found_);
    features_.sum(gradient_.data(), pull, n_threads_);
}

void rows_loss::product(const double*, const double* direction, double* out) {
    features_.hessian_product(pairs_, direction, part_.data(), out, n_threads_);
}

void rows_loss::begin_step() { std::fill(along_.begin(), along_.end(), 0.0); }

void rows_loss::lengthen(double length) { add(length, part_, along_); }

preconditioner::preconditioner(const gram_of_pairs& gram, double C, int n_threads)
    : size_(gram.width) {
    const auto width = gram.width;
    const double root = std::sqrt(2.0 * gram.steepness) * std::sqrt(C);
    const auto stride = gram.is_diagonal ? 1 : width + 1;
    for (std::ptrdiff_t i = 0; i < width; ++i)
        size_[i] = std::hypot(1.0, root * std::sqrt(std::max(gram.values[i * stride], 0.0)));
    if (gram.is_diagonal) return;
    factor_.resize(width * width);
    double ridge = 64 * static_cast<double>(width) * std::numeric_limits<double>::epsilon();
    for (double added = 0; added <= most_ridge; added = ridge, ridge *= 64) {
        for (std::ptrdiff_t i = 0; i < width; ++i) {
            double* const row = factor_.data() + i * width;
            for (std::ptrdiff_t j = 0; j < i; ++j)
                row[j] = root / size_[i] * gram.values[i * width + j] * (root / size_[j]);
            row[i] = 1 + added;
        }
        if (cholesky(width, factor_.data(), n_threads) == width) return;
    }
    factor_.clear();
}

void preconditioner::apply(const double* residual, double* out) const {
    const auto n = length_of(size_);
    for (std::ptrdiff_t i = 0; i < n; ++i) out[i] = residual[i] / size_[i];
    if (!factor_.empty()) {
        const auto row = [&](std::ptrdiff_t i) { return factor_.data() + i * n; };
        for (std::ptrdiff_t i = 0; i < n; ++i) out[i] = (out[i] - dot(i, row(i), out)) / row(i)[i];
        for (auto i = n - 1; i >= 0; --i) {
            out[i] /= row(i)[i];
            add(i, -out[i], row(i), out);
        }
    }
    for (std::ptrdiff_t i = 0; i < n; ++i) out[i] /= size_[i];
}

newton_solver::newton_solver(weights_loss& loss, std::ptrdiff_t n_constant,
                             const std::int64_t* constant)
    : loss_(loss),
      constant_(constant, constant + n_constant),
      w_(loss.width(), 0.0),
      pull_(w_.size()),
      gradient_(w_.size()),
      step_(w_),
      residual_(w_.size()),
      preconditioned_(w_.size()),
      direction_(w_.size()),
      product_(w_.size()) {
    loss.start(w_.data(), nullptr);
    value_ = loss.at(w_.data(), step_.data(), 0).loss;
    loss.stay(pull_.data());
    clear_constant(pull_.data());
    pull_at_zero_ = norm_of(pull_);
}

void newton_solver::clear_constant(double* x) const {
    for (const auto feature : constant_) x[feature] = 0;
}

newton_history newton_solver::solve(double C, const preconditioner& precondition, double tol,
                                    std::ptrdiff_t max_iter) {
    newton_history history;
    double last = infinity;
    while (true) {
        gradient_ = w_;
        add(C, pull_, gradient_);
        const double norm = norm_of(gradient_), reference = C * pull_at_zero_;
        const double objective = 0.5 * dot(w_, w_) + C * value_;
        const bool is_first = history.step.empty();
        if (is_first && !std::isfinite(objective + norm + reference))
            refuse(C, "large", "it overflows");
        if (is_first && reference > 0 && reference < smallest_gradient) {
            char why[128];
            std::snprintf(
                why, sizeof why,
                "the gradient at w = 0 is %.1g, want %g or more, whose square is a number",
                reference, smallest_gradient);
            refuse(C, "small", why);
        }
        history.objective.push_back(objective);
        history.relative_gradient.push_back(reference > 0 ? norm / reference : 0.0);
        if (norm <= tol * reference && (!is_first || norm == 0)) {
            history.converged = true;
            return history;
        }
        if (length_of(history.step) == max_iter) return history;
        const auto n_products = find_step(C, precondition);
        const double promise = -dot(gradient_, step_);
        if (!(promise > 0 && promise < infinity)) return history;
        if (promise <= rounding * objective && promise > last / 2) {
            history.converged = true;
            return history;
        }
        last = promise;
        const double length = search(C, promise, objective);
        if (length == 0) {
            history.converged = norm <= tol * reference;
            return history;
        }
        history.step.push_back(length);
        history.n_hessian_products.push_back(n_products);
        history.n_passes.push_back(n_passes_);
    }
}

// Solves the Newton system by conjugate gradients; returns the number of products.
std::ptrdiff_t newton_solver::find_step(double C, const preconditioner& precondition) {
    const auto n = length_of(w_);
    const auto precondition_residual = [&] {
        precondition.apply(residual_.data(), preconditioned_.data());
        clear_constant(preconditioned_.data());  // they may vary in other queries, as of a fold
        return dot(residual_, preconditioned_);
    };
    loss_.begin_step();
    std::fill(step_.begin(), step_.end(), 0.0);
    for (std::ptrdiff_t k = 0; k < n; ++k) residual_[k] = -gradient_[k];
    double size = precondition_residual();
    const double first = size;
    direction_ = preconditioned_;
    std::ptrdiff_t n_products = 0;
    while (n_products < most_products && size > forcing * forcing * first) {
        check_interrupt();
        ++n_products;
        loss_.product(w_.data(), direction_.data(), product_.data());
        clear_constant(product_.data());
        for (std::ptrdiff_t k = 0; k < n; ++k) product_[k] = C * product_[k] + direction_[k];
        const double curvature = dot(direction_, product_);
        if (!(curvature > 0)) break;  // it is positive, but for rounding errors
        const double length = size / curvature;
        add(length, direction_, step_);
        loss_.lengthen(length);
        add(-length, product_, residual_);
        const double before = size;
        size = precondition_residual();
        for (std::ptrdiff_t k = 0; k < n; ++k)
            direction_[k] = preconditioned_[k] + size / before * direction_[k];
    }
    n_passes_ += n_products;
    return n_products;
}

// Moves to the minimum along the step, by bracketed Newton steps; returns the length of the step,
// or 0 where overflow or rounding error leave no lower objective. At its beginning, the slope is
// the negative of what it promises.
double newton_solver::search(double C, double promise, double objective) {
    const double whole = dot(w_, w_), linear = dot(w_, step_), square = dot(step_, step_);
    double low = 0, high = infinity, t = 1;
    weights_loss::point found;
    for (int left = most_lengths; left > 0; --left) {
        check_interrupt();
        ++n_passes_;
        found = loss_.at(w_.data(), step_.data(), t);
        const double slope = linear + t * square + C * found.slope;
        if (std::abs(slope) <= slope_share * promise || left == 1) break;
        (slope < 0 ? low : high) = t;
        t -= slope / (square + C * loss_.curve());
        if (!(low < t && t < high)) t = high < infinity ? (low + high) / 2 : 2 * low;
    }
    const double reached = 0.5 * (whole + t * (2 * linear + t * square)) + C * found.loss;
    if (!(reached <= objective * (1 + most_rise))) {
        loss_.at(w_.data(), step_.data(), 0);  // whose Hessian serves the next C
        return 0;
    }
    value_ = found.loss;
    loss_.stay(pull_.data());
    clear_constant(pull_.data());
    add(t, step_, w_);
    return t;
}

void solve_paths(buffer<newton_task>& tasks, const gram_of_pairs& gram,
                 const newton_settings& settings, int n_threads) {
    std::vector<newton_solver> solvers;
    bool are_small = true;
    for (const auto& task : tasks) {
        solvers.emplace_back(*task.loss, task.n_constant, task.constant);
        are_small = are_small && task.loss->is_small();
    }
    const auto n_tasks = length_of(tasks);
    const auto width = gram.width;
    const auto at_once =
        std::max<std::ptrdiff_t>(1, kept_values / std::max<std::ptrdiff_t>(1, width * width));
    for (std::ptrdiff_t first = 0; first < settings.n_Cs; first += at_once) {
        const auto last = std::min(first + at_once, settings.n_Cs);
        std::vector<preconditioner> preconditions;
        for (auto c = first; c < last; ++c)
            preconditions.emplace_back(gram, settings.Cs[c], n_threads);
        parallel_for(n_tasks, are_small ? n_threads : 1, [&](std::ptrdiff_t i) {
            auto& solver = solvers[size_of(i)];
            for (auto c = first; c < last; ++c) {
                tasks[i].histories.push_back(solver.solve(settings.Cs[c],
                                                          preconditions[size_of(c - first)],
                                                          settings.tol, settings.max_iter));
                std::copy_n(solver.weights(), width, tasks[i].coefs + c * width);
            }
        });
    }
}

}  // namespace pairgram
