// Feature maps: their activations, and maps of rows to hidden nodes.
#include <algorithm>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "bindings/bindings.hpp"
#include "features/activations.hpp"
#include "features/cross_columns.hpp"
#include "features/node_map.hpp"
#include "linear_algebra/top_products.hpp"
#include "solvers/row_products.hpp"
#include "support/parallel.hpp"

namespace pairgram {

namespace {

activation activation_of(const std::string& name) {
    return named<activation>("activation", name,
                             {{"exp", activation::exp},
                              {"gaussian", activation::gaussian},
                              {"sigmoid", activation::sigmoid},
                              {"tanh", activation::tanh},
                              {"cos", activation::cos},
                              {"sin", activation::sin},
                              {"relu", activation::relu},
                              {"hardlim", activation::hardlim}});
}

template <class T>
void apply_activation(const std::string& name, array<T> values) {
    unlocked(apply<T>, activation_of(name), values.size(), writable(values));
}

// One run of nodes: (first, past the last, activation or "linear").
using segment_fields = std::tuple<py::ssize_t, py::ssize_t, std::string>;

template <class T>
void set_tail(node_map<T>& map, const optional_array<T>& tail) {
    if (!tail) return;
    check(tail->ndim() == 2 && tail->shape(0) == map.n_nodes, "tail must be (n_nodes, n_outputs)");
    map.n_outputs = tail->shape(1);
    map.has_tail = true;
    map.tail = column_panels<T>(map.n_nodes, map.n_outputs, pointer(*tail));
}

// The columns that an array numbers.
buffer<std::int64_t> columns_of(const array<std::int64_t>& columns, py::ssize_t n_inputs) {
    check(columns.ndim() == 1, "columns must be 1-d");
    const auto* const first = pointer(columns);
    check(std::all_of(first, first + columns.size(),
                      [&](std::int64_t j) { return 0 <= j && j < n_inputs; }),
          "columns must be those of the inputs");
    return {first, first + columns.size()};
}

template <class T>
bound_node_map<T> make_node_map(const array<T>& weights, const array<T>& bias,
                                const optional_array<T>& square,
                                const std::vector<segment_fields>& segments, T scale, int degree,
                                bool manhattan, bool tanimoto, bool minmax,
                                const optional_array<T>& origin, const optional_array<T>& tail) {
    check(weights.ndim() == 2 && has_shape(bias, {weights.shape(1)}),
          "weights must be (n_inputs, n_nodes), bias (n_nodes,)");
    const auto n_inputs = weights.shape(0), n_nodes = weights.shape(1);
    check_one_per("square must be (n_nodes,)", square, n_nodes);
    check(square || !manhattan, "Manhattan nodes need square");
    check(!tanimoto || !(manhattan || square),
          "Tanimoto nodes are not Manhattan and have no square");
    check(!minmax || !(manhattan || tanimoto || square || origin),
          "minmax nodes are no others, and have no square and no origin");
    check_one_per("origin must be (n_inputs,)", origin, n_inputs);
    check(degree >= 1, "degree must be at least 1");
    bound_node_map<T> bound{py::make_tuple(bias, square, origin),
                            {n_inputs, n_nodes, n_nodes, pointer(bias), pointer(square)}};
    auto& map = bound.map;
    if (manhattan || minmax) {
        bound.kept = py::make_tuple(bound.kept, weights);
        (minmax ? map.minmax : map.manhattan) = pointer(weights);
    } else {
        map.weights = column_panels<T>(n_inputs, n_nodes, pointer(weights));
    }
    map.scale = scale;
    map.degree = degree;
    map.tanimoto = tanimoto;
    map.origin = pointer(origin);
    set_tail(map, tail);
    for (const auto& [begin, end, name] : segments) {
        check(0 <= begin && begin <= end && end <= n_nodes, "segments must lie within the nodes");
        const bool linear = name == "linear";
        map.segments.push_back(
            {begin, end, linear, linear ? activation::exp : activation_of(name)});
    }
    return bound;
}

// A map of float rows to nodes that are made in double, and then rounded; or to a product in float
// of these less the centre, plus an offset.
bound_node_map<float> in_double(const py::object& wide, const optional_array<double>& centre,
                                const optional_array<float>& tail,
                                const optional_array<float>& offset) {
    const auto& map = wide.cast<const bound_node_map<double>&>().map;
    const auto width = map.n_outputs;
    check(tail ? centre && offset : !centre && !offset, "tail, centre and offset go together");
    bound_node_map<float> bound{py::make_tuple(wide, centre, offset),
                                {map.n_inputs, width, width, pointer(offset), nullptr}};
    set_tail(bound.map, tail);
    check_one_per("centre: 1-d, one per node", centre, width);
    check_one_per("offset must be (n_outputs,)", offset, bound.map.n_outputs);
    bound.map.wide = &map;
    bound.map.centre = pointer(centre);
    return bound;
}

// A map of rows to columns, and of the columns by another map where there is one.
template <class T>
bound_node_map<T> after_columns(const py::object& columns, const py::object& then) {
    const auto& made = columns.cast<const bound_input_columns&>().columns;
    const auto* map = then.is_none() ? nullptr : &then.cast<const bound_node_map<T>&>().map;
    check(!map || map->n_inputs == made.n_columns(), "then must map the columns");
    const auto n_outputs = map ? map->n_outputs : made.n_columns();
    bound_node_map<T> bound{
        py::make_tuple(columns, then),
        {made.n_inputs, map ? map->n_nodes : n_outputs, n_outputs, nullptr, nullptr}};
    bound.map.columns = &made;
    bound.map.then = map;
    return bound;
}

// Products of two groups of columns, behind kept ones; see cross_columns.hpp.
template <class T>
bound_node_map<T> cross(py::ssize_t n_inputs, const array<std::int64_t>& kept,
                        const array<std::int64_t>& left, const array<std::int64_t>& right) {
    const auto made = std::make_shared<cross_columns>();
    *made = {n_inputs, columns_of(kept, n_inputs), columns_of(left, n_inputs),
             columns_of(right, n_inputs)};
    const auto width = n_outputs(*made, cross_part::products);
    bound_node_map<T> bound{py::none(), {n_inputs, width, width, nullptr, nullptr}, made};
    bound.map.cross = made.get();
    return bound;
}

// Calls work(first row, number of rows) for blocks of n rows; with one thread where that takes less
// time than to start others.
template <class T, class Work>
void by_blocks(const node_map<T>& map, py::ssize_t n, int n_threads, const Work& work) {
    constexpr py::ssize_t block = 256, threaded_products = 1 << 23, products_of_node = 16;
    const auto of_row = map.n_nodes * (map.n_inputs + products_of_node) +
                        (map.has_tail ? map.n_nodes * map.n_outputs : 0);
    if (n * of_row < threaded_products) n_threads = 1;
    parallel_parts(n, block, n_threads, work);
}

template <class T>
void check_inputs(const node_map<T>& map, const array<T>& rows) {
    check(rows.ndim() == 2 && rows.shape(1) == map.n_inputs, "rows must be (n, n_inputs)");
}

template <class T>
array<T> map_all(const node_map<T>& map, const array<T>& rows, int n_threads) {
    check_inputs(map, rows);
    const T* in = pointer(rows);
    array<T> out({rows.shape(0), map.n_outputs});
    T* data = out.mutable_data();
    const without_gil release;
    by_blocks(map, rows.shape(0), n_threads, [&](std::ptrdiff_t first, std::ptrdiff_t n) {
        map_rows(map, n, in + first * map.n_inputs, map.n_inputs, data + first * map.n_outputs,
                 map.n_outputs);
    });
    return out;
}

template <class T>
array<T> map_array(const bound_node_map<T>& bound, const array<T>& rows, int n_threads) {
    return map_all(bound.map, rows, n_threads);
}

// The models of coefs (n_features,) or (n_models, n_features).
linear_models models_of(const array<double>& coefs, py::ssize_t n_features) {
    const auto n = coefs.ndim();
    check((n == 1 || n == 2) && coefs.shape(n - 1) == n_features,
          "coefs must be (n_features,) or (n_models, n_features), one per feature");
    return {n == 1 ? 1 : coefs.shape(0), n_features, pointer(coefs)};
}

// Room for their scores of rows, (n_rows,) or (n_models, n_rows).
array<double> scores_for(const array<double>& coefs, py::ssize_t n_rows) {
    return coefs.ndim() == 1 ? array<double>(n_rows) : array<double>({coefs.shape(0), n_rows});
}

template <class T>
array<double> score_array(const array<T>& features, const array<double>& coefs, int n_threads) {
    check(features.ndim() == 2, "features must be 2-d");
    const matrix_rows<T> rows{features.shape(0), features.shape(1), pointer(features), nullptr};
    const auto models = models_of(coefs, rows.width);
    auto scores = scores_for(coefs, rows.n_rows);
    unlocked(score_rows<T>, rows, models, writable(scores), n_threads);
    return scores;
}

template <class T>
array<double> score_each_array(const array<T>& features, const array<double>& coefs,
                               const array<std::int64_t>& models, int n_threads) {
    const matrix_rows<T> rows{features.shape(0), features.shape(1), pointer(features), nullptr};
    check(coefs.ndim() == 2 && coefs.shape(1) == rows.width,
          "coefs must be (n_models, n_features)");
    check(has_shape(models, {rows.n_rows}), "models must be (n_rows,)");
    const auto* const own = pointer(models);
    check(std::all_of(own, own + rows.n_rows, [&](auto m) { return m < coefs.shape(0); }),
          "models must be numbers of coefs");
    array<double> scores(rows.n_rows);
    double* const out = scores.mutable_data();
    const without_gil release;
    parallel_parts(rows.n_rows, 4096, n_threads, [&](std::ptrdiff_t begin, std::ptrdiff_t size) {
        check_interrupt();
        score_each(rows, begin, begin + size, pointer(coefs), own, out);
    });
    return scores;
}

template <class T>
array<double> score_mapped_array(const bound_node_map<T>& bound, const array<T>& rows,
                                 const array<double>& coefs, int n_threads) {
    const auto& map = bound.map;
    check_inputs(map, rows);
    const auto n_rows = rows.shape(0);
    const T* in = pointer(rows);
    const auto models = models_of(coefs, map.n_outputs);
    auto scores = scores_for(coefs, n_rows);
    double* out = scores.mutable_data();
    const without_gil release;
    by_blocks(map, n_rows, n_threads, [&](std::ptrdiff_t first, std::ptrdiff_t n) {
        score_mapped(map, n, in + first * map.n_inputs, models, out + first, n_rows);
    });
    return scores;
}

// [kept, v] of rows, (n, n_kept + n_right), in double.
template <class T>
array<double> right_side(const bound_node_map<T>& bound, const array<T>& rows, int n_threads) {
    check_inputs(bound.map, rows);
    check(cross_of(bound.map) != nullptr, "the map must be a cross");
    const part_of_cross<T> part(bound.map, cross_part::right);
    return array<double>(map_all(part.map(), rows, n_threads));
}

// The weights of [kept, v] that a model of the products has for the left sides of rows, (n, n_kept
// + n_right).
template <class T>
array<double> left_weights(const bound_node_map<T>& bound, const array<T>& rows,
                           const array<double>& coef, int n_threads) {
    check_inputs(bound.map, rows);
    const auto* const cross = cross_of(bound.map);
    check(cross != nullptr, "the map must be a cross");
    check_one_per("coef: 1-d, one per output", coef, bound.map.n_outputs);
    const part_of_cross<T> part(bound.map, cross_part::left);
    const auto& map = part.map();
    const T* in = pointer(rows);
    const double* const weights = pointer(coef);
    const auto width = cross->n_kept() + cross->n_right();
    array<double> out({rows.shape(0), width});
    double* data = out.mutable_data();
    const without_gil release;
    by_blocks(map, rows.shape(0), n_threads, [&](std::ptrdiff_t first, std::ptrdiff_t n) {
        buffer<T> left(map.n_outputs);
        for (auto i = first; i < first + n; ++i) {
            map_rows(map, 1, in + i * map.n_inputs, map.n_inputs, left.data(), map.n_outputs);
            fold_left(*cross, left.data(), weights, data + i * width);
        }
    });
    return out;
}

py::tuple top_products_array(const array<double>& a, const array<double>& b, py::ssize_t k,
                             const optional_array<std::int64_t>& indptr,
                             const optional_array<std::int64_t>& left_out_columns, int n_threads) {
    check(a.ndim() == 2 && b.ndim() == 2 && a.shape(1) == b.shape(1),
          "a and b must be 2-d, equally wide");
    check(k >= 1, "k must be at least 1");
    check(indptr.has_value() == left_out_columns.has_value(), "indptr and columns go together");
    const auto n = a.shape(0), width = a.shape(1);
    if (indptr) {
        const auto rows = queries_of(*indptr, std::nullopt, left_out_columns->size());
        check(rows.n_queries == n, "indptr must have one more than the rows of a");
    }
    const left_out without{pointer(indptr), pointer(left_out_columns)};
    array<std::int64_t> columns({n, k});
    array<double> scores({n, k});
    unlocked(top_products, n, b.shape(0), width, pointer(a), pointer(b), k, without,
             writable(columns), writable(scores), n_threads);
    return py::make_tuple(columns, scores);
}

template <class T>
py::class_<bound_node_map<T>> bind_node_map(py::module_& m, const char* name) {
    return py::class_<bound_node_map<T>>(m, name)
        .def(py::init(&make_node_map<T>), "weights"_a, "bias"_a, "square"_a, "segments"_a,
             py::kw_only(), "scale"_a = T{1}, "degree"_a = 1, "manhattan"_a = false,
             "tanimoto"_a = false, "minmax"_a = false, "origin"_a = py::none(),
             "tail"_a = py::none())
        .def_static("after_columns", &after_columns<T>, "columns"_a, "then"_a = py::none())
        .def_static("cross", &cross<T>, "n_inputs"_a, "kept"_a, "left"_a, "right"_a)
        .def_property_readonly("n_outputs",
                               [](const bound_node_map<T>& bound) { return bound.map.n_outputs; })
        .def("map", &map_array<T>, "rows"_a, "n_threads"_a)
        .def("right_side", &right_side<T>, "rows"_a, "n_threads"_a)
        .def("left_weights", &left_weights<T>, "rows"_a, "coef"_a, "n_threads"_a)
        .def("score", &score_mapped_array<T>, "rows"_a, "coefs"_a, "n_threads"_a);
}

}  // namespace

void bind_feature_maps(py::module_& m) {
    bind_node_map<double>(m, "NodeMap64");
    bind_node_map<float>(m, "NodeMap32")
        .def_static("in_double", &in_double, "map"_a, "centre"_a = py::none(),
                    "tail"_a = py::none(), "offset"_a = py::none());
    m.def("score_rows", &score_array<double>, "features"_a, "coefs"_a, "n_threads"_a = 1);
    m.def("score_rows", &score_array<float>, "features"_a, "coefs"_a, "n_threads"_a = 1);
    m.def("score_each", &score_each_array<double>, "features"_a, "coefs"_a, "models"_a,
          "n_threads"_a = 1);
    m.def("score_each", &score_each_array<float>, "features"_a, "coefs"_a, "models"_a,
          "n_threads"_a = 1);
    m.def("top_products", &top_products_array, "a"_a, "b"_a, "k"_a, "indptr"_a = py::none(),
          "left_out"_a = py::none(), "n_threads"_a = 1);
    m.def("apply_activation", &apply_activation<double>, "name"_a, "values"_a);
    m.def("apply_activation", &apply_activation<float>, "name"_a, "values"_a);
}

}  // namespace pairgram
