// Flattens nests that look like an earlier one; the description of looks comes from
// gear_reverb/_columns.py.
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "native/bindings/boxed.h"
#include "native/bindings/definitions.h"
#include "pybind11/stl.h"

namespace py = pybind11;

namespace gear_reverb::bindings {
namespace {

struct Node {
  // Of containers; null for a leaf.
  py::object type;
  std::vector<py::object> keys;  // Of mappings, in the order of the children.
  std::vector<Node> children;
  // Of leaves: the place in the row, and the type that was seen last.
  Py_ssize_t place = 0;
  const PyTypeObject* last_type = nullptr;
};

struct Plan {
  Node root;
  py::object leaf_types;  // A set that may grow, but not shrink.
  Py_ssize_t width = 0;
  bool has_gaps = false;  // Whether some places of a row have no leaf.
};

using PlanBox = Boxed<std::unique_ptr<Plan>>;

Node MakeNode(py::handle look, const std::vector<Py_ssize_t>& order, size_t* leaves) {
  Node node;
  if (look.is_none()) {
    node.place = order.at((*leaves)++);
    return node;
  }
  const auto [type, keys, children] = [&] {
    const auto parts = py::cast<py::tuple>(look);
    return std::tuple<py::object, py::object, py::tuple>(parts[0], parts[1], parts[2]);
  }();
  node.type = type;
  if (!keys.is_none()) {
    for (py::handle key : keys) node.keys.push_back(py::reinterpret_borrow<py::object>(key));
  }
  for (py::handle child : children) node.children.push_back(MakeNode(child, order, leaves));
  return node;
}

// All three return false where the nest does not look like the plan's.

bool PutLeaf(const Plan& plan, Node& node, py::object leaf, PyObject* row) {
  PyTypeObject* const type = Py_TYPE(leaf.ptr());
  if (type != node.last_type) {
    const int known = PySet_Contains(plan.leaf_types.ptr(), reinterpret_cast<PyObject*>(type));
    if (known < 0) throw py::error_already_set();
    if (known == 0) return false;
    node.last_type = type;
  }
  PyList_SET_ITEM(row, node.place, leaf.release().ptr());
  return true;
}

bool GetChild(PyObject* nest, const Node& node, Py_ssize_t i, py::object* child) {
  if (!node.keys.empty()) {
    PyObject* const key = node.keys[i].ptr();
    if (PyDict_CheckExact(nest)) {
      *child = py::reinterpret_borrow<py::object>(PyDict_GetItemWithError(nest, key));
      if (!*child && PyErr_Occurred() != nullptr) throw py::error_already_set();
      return static_cast<bool>(*child);
    }
    *child = py::reinterpret_steal<py::object>(PyObject_GetItem(nest, key));
    if (*child) return true;
    if (PyErr_ExceptionMatches(PyExc_KeyError) == 0) throw py::error_already_set();
    PyErr_Clear();
    return false;
  }
  // The size was told by a __len__ that may lie. Looking into an earlier child may have run code
  // that has cut a list short.
  if (PyTuple_Check(nest)) {
    if (i >= PyTuple_GET_SIZE(nest)) return false;
    *child = py::reinterpret_borrow<py::object>(PyTuple_GET_ITEM(nest, i));
    return true;
  }
  if (i >= PyList_GET_SIZE(nest)) return false;
  *child = py::reinterpret_borrow<py::object>(PyList_GET_ITEM(nest, i));
  return true;
}

bool Walk(const Plan& plan, Node& node, py::object nest, PyObject* row) {
  if (!node.type) return PutLeaf(plan, node, std::move(nest), row);
  if (reinterpret_cast<PyObject*>(Py_TYPE(nest.ptr())) != node.type.ptr()) return false;
  const Py_ssize_t size = PyObject_Size(nest.ptr());
  if (size < 0) throw py::error_already_set();
  if (size != static_cast<Py_ssize_t>(node.children.size())) return false;
  for (Py_ssize_t i = 0; i < size; ++i) {
    py::object child;
    if (!GetChild(nest.ptr(), node, i, &child)) return false;
    if (!Walk(plan, node.children[i], std::move(child), row)) return false;
  }
  return true;
}

PyObject* Flatten(PyObject* self, PyObject* nest) {
  return AsSlot([&]() -> PyObject* {
    Plan& plan = *PlanBox::Of(self);
    auto row = py::reinterpret_steal<py::object>(PyList_New(plan.width));
    if (!row) throw py::error_already_set();
    if (!Walk(plan, plan.root, py::reinterpret_borrow<py::object>(nest), row.ptr())) {
      return py::none().release().ptr();
    }
    for (Py_ssize_t i = 0; plan.has_gaps && i < plan.width; ++i) {
      if (PyList_GET_ITEM(row.ptr(), i) == nullptr) {
        PyList_SET_ITEM(row.ptr(), i, py::none().release().ptr());
      }
    }
    return row.release().ptr();
  });
}

PyTypeObject* plan_type = nullptr;

PyMethodDef plan_methods[] = {
    {"flatten", Flatten, METH_O, "The nest's leaves as a row, or None if it looks different."},
    {nullptr, nullptr, 0, nullptr}};

PyType_Slot plan_slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(&PlanBox::Delete)},
                            {Py_tp_methods, plan_methods},
                            {0, nullptr}};

PyType_Spec plan_spec = {"gear_reverb._native.FlattenPlan", sizeof(PlanBox), 0,
                         Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, plan_slots};

}  // namespace

void DefineNests(py::module_& module) {
  plan_type = AddType(module, &plan_spec);
  module.def(
      "make_flatten_plan",
      [](const py::object& look, const py::set& leaf_types, const std::vector<Py_ssize_t>& order,
         Py_ssize_t width) {
        auto plan = std::make_unique<Plan>();
        size_t leaves = 0;
        for (const Py_ssize_t place : order) {
          if (place < 0 || place >= width) throw py::value_error("order is not within width.");
        }
        plan->root = MakeNode(look, order, &leaves);
        plan->leaf_types = leaf_types;
        plan->width = width;
        plan->has_gaps = static_cast<Py_ssize_t>(leaves) != width;
        return py::reinterpret_steal<py::object>(PlanBox::Make(plan_type, std::move(plan)));
      },
      py::arg("look"), py::arg("leaf_types"), py::arg("order"), py::arg("width"));
}

}  // namespace gear_reverb::bindings
