#include "native/selectors/selector.h"

#include <cmath>

#include "native/base/status.h"
#include "native/selectors/heap_selector.h"
#include "native/selectors/order_selector.h"
#include "native/selectors/prioritized_selector.h"
#include "native/selectors/uniform_selector.h"

namespace gear_reverb::selectors {
namespace {

template <typename... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <typename... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;

}  // namespace

bool IsDeterministic(const SelectorOptions& options) {
  return !std::holds_alternative<UniformOptions>(options) &&
         !std::holds_alternative<PrioritizedOptions>(options);
}

bool TakesNegative(const SelectorOptions& options) {
  return !std::holds_alternative<PrioritizedOptions>(options);
}

std::string ToString(const SelectorOptions& options) {
  return std::visit(Overloaded{
                        [](const FifoOptions&) { return std::string("Fifo"); },
                        [](const LifoOptions&) { return std::string("Lifo"); },
                        [](const UniformOptions&) { return std::string("Uniform"); },
                        [](const PrioritizedOptions& prioritized) {
                          return absl::StrCat(
                              "Prioritized(priority_exponent=", prioritized.exponent, ")");
                        },
                        [](const HeapOptions& heap) {
                          return std::string(heap.min_heap ? "MinHeap" : "MaxHeap");
                        },
                    },
                    options);
}

absl::StatusOr<std::unique_ptr<Selector>> MakeSelector(const SelectorOptions& options) {
  using Result = absl::StatusOr<std::unique_ptr<Selector>>;
  return std::visit(
      Overloaded{
          [](const FifoOptions&) -> Result {
            return std::make_unique<OrderSelector>(OrderSelector::Pick::kOldest);
          },
          [](const LifoOptions&) -> Result {
            return std::make_unique<OrderSelector>(OrderSelector::Pick::kYoungest);
          },
          [](const UniformOptions&) -> Result { return std::make_unique<UniformSelector>(); },
          [](const PrioritizedOptions& prioritized) -> Result {
            if (!(prioritized.exponent >= 0) || std::isinf(prioritized.exponent)) {
              return base::InvalidArgument("priority_exponent (", prioritized.exponent,
                                           ") must be finite and not negative.");
            }
            return std::make_unique<PrioritizedSelector>(prioritized.exponent);
          },
          [](const HeapOptions& heap) -> Result {
            return std::make_unique<HeapSelector>(heap.min_heap);
          },
      },
      options);
}

}  // namespace gear_reverb::selectors
