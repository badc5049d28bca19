// A truncated Newton method for losses on pairs, which the Gram matrix preconditions:
//
//   minimise ½ ‖w‖² + C · loss(H w + offset)
//
// A step solves (I + C Hᵀ D H) s = −gradient by conjugate gradients, with D the Hessian of the loss
// of scores. Each of their steps takes one product with the Hessian, which reads H once. A line
// search then finds the minimum along s. The scores of rows in memory are kept: the search does not
// read H, and the gradient at its end needs one more reading.
//
// Source: Chen, Li, Dou, Liang, Lv. Ranking support vector machine with kernel approximation.
// Computational Intelligence and Neuroscience, 2017. Algorithm 3 and eq. 23-25.
#pragma once

#include <cstddef>
#include <cstdint>

#include "solvers/pair_loss.hpp"
#include "solvers/row_products.hpp"
#include "support/buffer.hpp"

namespace pairgram {

// A loss as a function of the weights of features, of which the solver asks for values on lines.
class weights_loss {
  public:
    struct point {
        double loss, slope;  // the slope is the derivative by t
    };

    explicit weights_loss(std::ptrdiff_t width) : width_(width) {}
    virtual ~weights_loss() = default;
    std::ptrdiff_t width() const { return width_; }
    // Whether it takes a single thread, beside which others may compute.
    virtual bool is_small() const { return false; }

    // Takes a line w + t·step; a null step stands for zeros.
    virtual void start(const double*, const double*) {}
    // The loss of w + t·step. It is infinite where scores are not finite.
    virtual point at(const double* w, const double* step, double t) = 0;
    // The second derivative by t where `at` was called last.
    virtual double curve() = 0;
    // Stays there: writes the gradient (width,).
    virtual void stay(double* pull) = 0;
    // out (width,) = the Hessian at w, where the loss stays, times the direction.
    virtual void product(const double* w, const double* direction, double* out) = 0;
    // The step to which the next calls of `at` belong is the sum of the directions since the first
    // of these calls, each times its length.
    virtual void begin_step() {}
    virtual void lengthen(double) {}

  private:
    std::ptrdiff_t width_;
};

// The loss of rows in memory. Everything but the features' sums takes memory and time O(n).
class rows_loss final : public weights_loss {
  public:
    // offset (n_rows,) is added to the scores. Nothing is copied.
    rows_loss(const row_features& features, score_loss& pairs, const double* offset, int n_threads);

    bool is_small() const override { return features_.is_small(); }
    void start(const double* w, const double* step) override;
    point at(const double* w, const double* step, double t) override;
    double curve() override;
    void stay(double* pull) override;
    void product(const double* w, const double* direction, double* out) override;
    void begin_step() override;
    void lengthen(double length) override;

  private:
    const row_features& features_;
    score_loss& pairs_;
    const double* offset_;
    int n_threads_;
    buffer<double> scores_, along_;    // of w with the offset, and of the step
    buffer<double> found_, gradient_;  // at the last point
    buffer<double> part_;              // of the last direction
};

// The Gram matrix G (width, width) of the features of pairs, or something like it, of which the
// lower triangle is read; or its diagonal (width,).
struct gram_of_pairs {
    std::ptrdiff_t width;
    const double* values;
    bool is_diagonal = false;
    double steepness = 1;  // the largest curvature of the loss, as a share of the squared loss's
};

// The inverse of I + 2C steepness G, the Hessian if all pairs are active, or of its diagonal.
class preconditioner {
  public:
    // The matrix is scaled to a unit diagonal and factorised. A ridge is added if rounding has made
    // it indefinite; if no small ridge helps, its diagonal is left. BLAS must be held to one thread
    // where it is large.
    preconditioner(const gram_of_pairs& gram, double C, int n_threads);

    // out may be the residual.
    void apply(const double* residual, double* out) const;

  private:
    buffer<double> size_;    // (width,) roots of the diagonal
    buffer<double> factor_;  // (width, width) lower triangle, or nothing
};

// The values before the first Newton step and after every step, and the steps.
struct newton_history {
    buffer<double> objective, relative_gradient;  // the norm, as a share of that at w = 0
    buffer<std::int64_t> n_hessian_products, n_passes;
    buffer<double> step;  // lengths
    bool converged = false;
};

class newton_solver {
  public:
    // Starts at w = 0. The weights of the constant features, which are the same in both rows of
    // every pair, stay exactly 0, where rounding errors in the sums of huge values would move them.
    newton_solver(weights_loss& loss, std::ptrdiff_t n_constant, const std::int64_t* constant);

    // Finds the minimum for C from the last solution: stops when the gradient's norm is tol times
    // that at w = 0. At least one step is taken, because the gradient at the solution for another C
    // may be small relative to a large C. The solver also stops, as converged, at the limit of
    // rounding error: when a step promises a decrease of the objective that float64 cannot show,
    // and more than half of what the last step promised. (The norm of the gradient says less,
    // because steps shrink it in the norm of the inverse Hessian.) If numbers overflow, it stops
    // without convergence. Throws std::invalid_argument if they do so before the first step, or if
    // the square of the gradient vanishes.
    newton_history solve(double C, const preconditioner& precondition, double tol,
                         std::ptrdiff_t max_iter);

    const double* weights() const { return w_.data(); }

  private:
    void clear_constant(double* x) const;
    std::ptrdiff_t find_step(double C, const preconditioner& precondition);
    double search(double C, double promise, double objective);

    weights_loss& loss_;
    buffer<std::int64_t> constant_;
    buffer<double> w_, pull_, gradient_, step_;  // pull: the gradient of the loss alone
    buffer<double> residual_, preconditioned_, direction_, product_;
    double value_, pull_at_zero_;
    std::int64_t n_passes_ = 1;
};

struct newton_settings {
    std::ptrdiff_t n_Cs;
    const double* Cs;
    double tol;
    std::ptrdiff_t max_iter;
};

// A loss, the features that are constant, and its solutions (n_Cs, width), with their histories.
struct newton_task {
    weights_loss* loss;
    std::ptrdiff_t n_constant;
    const std::int64_t* constant;
    double* coefs;
    buffer<newton_history> histories = {};
};

// Solves every task for every C, from its solution for the C before.
void solve_paths(buffer<newton_task>& tasks, const gram_of_pairs& gram,
                 const newton_settings& settings, int n_threads);

}  // namespace pairgram
