// Feature maps: their activations.
#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "bindings.hpp"
#include "vmath.hpp"

namespace pairgram {

namespace {

activation activation_of(const std::string& name) {
    static constexpr std::pair<const char*, activation> activations[] = {
        {"exp", activation::exp},         {"gaussian", activation::gaussian},
        {"sigmoid", activation::sigmoid}, {"tanh", activation::tanh},
        {"cos", activation::cos},         {"sin", activation::sin},
        {"relu", activation::relu},       {"hardlim", activation::hardlim}};
    const auto* const found = std::find_if(std::begin(activations), std::end(activations),
                                           [&](const auto& entry) { return name == entry.first; });
    check(found != std::end(activations), "unknown activation");
    return found->second;
}

template <class T>
void apply_activation(const std::string& name, array<T> values) {
    const auto kind = activation_of(name);
    T* const data = values.mutable_data();
    const py::gil_scoped_release release;
    apply(kind, values.size(), data);
}

}  // namespace

void bind_feature_maps(py::module_& m) {
    m.def("apply_activation", &apply_activation<double>, py::arg("name"),
          py::arg("values").noconvert());
    m.def("apply_activation", &apply_activation<float>, py::arg("name"),
          py::arg("values").noconvert());
}

}  // namespace pairgram
