// SPDX-License-Identifier: Apache-2.0
#include "worker/modes/plan.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

namespace plateau {

namespace {

std::int64_t aligned(std::int64_t bytes) { return (bytes + plan_alignment - 1) / plan_alignment * plan_alignment; }

bool meet(lifetime const& a, lifetime const& b) { return a.first_use <= b.last_use && b.first_use <= a.last_use; }

// The start of the tightest gap of at least `bytes` between `taken` ranges, which are sorted by start; else
// their end.
std::int64_t tightest_gap(std::vector<std::pair<std::int64_t, std::int64_t>> const& taken, std::int64_t bytes) {
  std::int64_t end = 0, best = -1, best_size = std::numeric_limits<std::int64_t>::max();
  for (auto const& [from, to] : taken) {
    if (auto const gap = from - end; gap >= bytes && gap < best_size) {
      best = end;
      best_size = gap;
    }
    end = std::max(end, to);
  }
  return best >= 0 ? best : end;
}

} // namespace

placement plan_offsets(std::span<lifetime const> lifetimes) {
  std::vector<std::size_t> order(lifetimes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater{}, [&](std::size_t i) { return lifetimes[i].bytes; });

  placement plan{.offsets = std::vector<std::int64_t>(lifetimes.size(), 0), .bytes = 0};
  for (std::size_t rank = 0; rank < order.size(); ++rank) {
    auto const i = order[rank];
    auto const bytes = aligned(lifetimes[i].bytes);
    std::vector<std::pair<std::int64_t, std::int64_t>> taken;
    for (std::size_t earlier = 0; earlier < rank; ++earlier)
      if (auto const k = order[earlier]; meet(lifetimes[i], lifetimes[k]))
        taken.emplace_back(plan.offsets[k], plan.offsets[k] + aligned(lifetimes[k].bytes));
    std::ranges::sort(taken);
    plan.offsets[i] = tightest_gap(taken, bytes);
    plan.bytes = std::max(plan.bytes, plan.offsets[i] + bytes);
  }
  return plan;
}

std::optional<std::pair<std::size_t, std::size_t>> find_overlap(std::span<lifetime const> lifetimes,
                                                                placement const& plan) {
  for (std::size_t a = 0; a < lifetimes.size(); ++a)
    for (std::size_t b = a + 1; b < lifetimes.size(); ++b)
      if (meet(lifetimes[a], lifetimes[b]) && plan.offsets[a] < plan.offsets[b] + lifetimes[b].bytes &&
          plan.offsets[b] < plan.offsets[a] + lifetimes[a].bytes)
        return std::pair{a, b};
  return std::nullopt;
}

} // namespace plateau
