// SPDX-License-Identifier: Apache-2.0
// The harness's own cost of a request, the timed loop over a request that does nothing, beside the least that timing a
// request can be: two clock reads and a store. Measured in turn; prints the medians in nanoseconds, as JSON, and that
// of the ratios of the pairs.
#include "worker/load/clock.hpp"
#include "worker/load/load_engine.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <vector>

namespace {

double bare_cost_ns() {
  constexpr std::size_t batch = 20'000;
  std::vector<std::int64_t> latencies(batch, -1);
  std::array<double, 7> cost{};
  for (auto& c : cost) {
    auto const begin = plateau::now_ns();
    for (auto& latency : latencies) {
      auto const start = plateau::now_ns();
      latency = plateau::now_ns() - start;
    }
    c = static_cast<double>(plateau::now_ns() - begin) / batch;
  }
  std::ranges::nth_element(cost, cost.begin() + cost.size() / 2);
  return cost[cost.size() / 2];
}

double median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + std::ssize(values) / 2);
  return values[values.size() / 2];
}

} // namespace

int main() {
  std::vector<double> bare, harness, ratio;
  for (int pair = 0; pair < 101; ++pair) {
    bare.push_back(bare_cost_ns());
    harness.push_back(plateau::harness_cost_ns());
    ratio.push_back(harness.back() / bare.back());
  }
  std::printf("{\"bare_ns\": %.2f, \"harness_ns\": %.2f, \"ratio\": %.4f}\n", median(bare), median(harness),
              median(ratio));
}
