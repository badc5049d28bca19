// LETOR files: the parser classes and format_letor.
#include "datasets/letor.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bindings/bindings.hpp"

namespace pairgram {

namespace {

// Gives memory that compiled code has filled to NumPy, without a copy.
template <class T>
array<T> give(growing_array<T>&& data, std::vector<py::ssize_t> shape) {
    auto* owner = new growing_array<T>(std::move(data));
    const py::capsule free(owner, [](void* p) { delete static_cast<growing_array<T>*>(p); });
    return array<T>(std::move(shape), owner->data(), free);
}

// The values can be taken once: what was moved away has a size, and no data.
template <class T>
void check_not_taken(const letor_rows<T>& rows) {
    check(rows.values.size() == 0 || rows.values.data() != nullptr, "the rows have been taken");
}

template <class T>
array<T> take_dense(one_user<letor_parser<T>>& bound) {
    const use_of<letor_parser<T>> parser(bound);
    check_not_taken(parser->rows());
    auto values = unlocked(std::mem_fn(&letor_parser<T>::take_dense), *parser);
    return give(std::move(values), {parser->n_rows(), parser->n_features()});
}

template <class T>
py::tuple take_csr(one_user<letor_parser<T>>& bound) {
    const use_of<letor_parser<T>> parser(bound);
    check_not_taken(parser->rows());
    growing_array<std::int32_t> indices;
    auto values = unlocked(std::mem_fn(&letor_parser<T>::take_csr), *parser, indices);
    const py::ssize_t n_values = values.size();
    array<std::int64_t> indptr(parser->n_rows() + 1);
    indptr.mutable_data()[0] = 0;
    std::copy_n(parser->rows().value_ends.data(), parser->n_rows(), indptr.mutable_data() + 1);
    return py::make_tuple(give(std::move(values), {n_values}), give(std::move(indices), {n_values}),
                          indptr);
}

template <class T>
py::list comments_of(const letor_rows<T>& rows) {
    py::list out;
    std::int64_t begin = 0;
    for (std::ptrdiff_t row = 0; row < rows.comment_ends.size(); ++row) {
        const std::int64_t end = rows.comment_ends[row];
        out.append(py::str(rows.comments.data() + begin, static_cast<std::size_t>(end - begin)));
        begin = end;
    }
    return out;
}

template <class T>
void feed(one_user<letor_parser<T>>& bound, const py::buffer& data) {
    const use_of<letor_parser<T>> parser(bound);
    const py::buffer_info info = data.request();
    check(info.itemsize == 1 && info.ndim == 1 && info.strides[0] == 1,
          "feed wants contiguous bytes");
    unlocked(std::mem_fn(&letor_parser<T>::feed), *parser, static_cast<const char*>(info.ptr),
             info.size);
}

// A function that returns what read(parser) gives, while no other call uses the parser.
template <class T, class Read>
auto reading(const Read& read) {
    return [read](one_user<letor_parser<T>>& bound) {
        const use_of<letor_parser<T>> parser(bound);
        return read(*parser);
    };
}

template <class T>
py::bytes format_letor(const array<T>& values, const optional_array<std::int64_t>& indptr,
                       const optional_array<std::int64_t>& indices, const array<double>& labels,
                       std::ptrdiff_t first, std::ptrdiff_t n_rows,
                       const std::optional<std::string>& ids,
                       const std::optional<std::string>& comments, bool zero_based) {
    check(labels.ndim() == 1, "labels must be 1-d");
    check(first >= 0 && n_rows >= 0 && first <= labels.size() - n_rows, "no such rows");
    const bool dense = !indptr && !indices;
    if (dense) {
        check(values.ndim() == 2 && values.shape(0) == labels.size(), "values: one row per label");
    } else {
        check(indptr && indices && values.ndim() == 1 && has_shape(*indices, {values.size()}) &&
                  has_shape(*indptr, {labels.size() + 1}),
              "values, indptr and indices do not fit each other");
        const auto* const begin = pointer(*indptr) + first;
        check(std::is_sorted(begin, begin + n_rows + 1) && *begin >= 0 &&
                  begin[n_rows] <= values.size(),
              "indptr must not decrease and stay within values");
    }
    const letor_source<T> source{first,
                                 n_rows,
                                 dense ? values.shape(1) : 0,
                                 pointer(values),
                                 pointer(indptr),
                                 pointer(indices),
                                 pointer(labels),
                                 ids ? &*ids : nullptr,
                                 comments ? &*comments : nullptr,
                                 zero_based};
    const auto format = [&] { return format_letor(source); };
    return py::bytes(unlocked(format));
}

template <class T>
void bind_letor_of(py::module_& m, const char* class_name) {
    using parser_t = letor_parser<T>;
    using bound_t = one_user<parser_t>;
    py::class_<bound_t>(m, class_name)
        .def(py::init([](std::string name, std::int64_t n_features, bool zero_based,
                         bool keep_comments, std::ptrdiff_t piece_size, int n_threads) {
                 return std::make_unique<bound_t>(
                     std::move(name), letor_options{n_features, zero_based, keep_comments},
                     piece_size, n_threads);
             }),
             py::kw_only(), "name"_a, "n_features"_a, "zero_based"_a, "keep_comments"_a,
             "piece_size"_a, "n_threads"_a)
        .def("feed", &feed<T>, "data"_a)
        .def("finish",
             [](bound_t& bound) {
                 const use_of<parser_t> parser(bound);
                 const without_gil release;
                 parser->finish();
             })
        .def_property_readonly("n_rows", reading<T>([](const parser_t& p) { return p.n_rows(); }))
        .def_property_readonly("n_features",
                               reading<T>([](const parser_t& p) { return p.n_features(); }))
        .def_property_readonly("n_lines", reading<T>([](const parser_t& p) { return p.n_lines(); }))
        .def_property_readonly("n_values",
                               reading<T>([](const parser_t& p) { return p.rows().values.size(); }))
        .def_property_readonly("largest_index_line", reading<T>([](const parser_t& p) {
                                   return p.rows().largest_index_line;
                               }))
        .def("labels", reading<T>([](const parser_t& p) {
                 return array<double>(p.n_rows(), p.rows().labels.data());
             }))
        .def("ids", reading<T>([](const parser_t& p) -> optional_array<std::int64_t> {
                 if (!p.has_ids()) return std::nullopt;
                 return array<std::int64_t>(p.n_rows(), p.rows().ids.data());
             }))
        .def("named_ids", reading<T>([](const parser_t& p) {
                 py::list out;
                 for (const auto& run : p.rows().names)
                     out.append(py::make_tuple(run.first, run.count, run.id));
                 return out;
             }))
        .def("comments", reading<T>([](const parser_t& p) { return comments_of(p.rows()); }))
        .def("take_dense", &take_dense<T>)
        .def("take_csr", &take_csr<T>);
    m.def("format_letor", &format_letor<T>, "values"_a, "indptr"_a, "indices"_a, "labels"_a,
          py::kw_only(), "first"_a, "n_rows"_a, "ids"_a, "comments"_a, "zero_based"_a);
}

}  // namespace

void bind_letor(py::module_& m) {
    const auto check_id = [](const std::string& id) {
        return is_letor_id(id.data(), id.data() + id.size());
    };
    m.def("is_letor_id", check_id, "id"_a);
    bind_letor_of<float>(m, "LetorParser32");
    bind_letor_of<double>(m, "LetorParser64");
}

}  // namespace pairgram
