// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/analysis/latency.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

namespace plateau {

// Radix sort, the least significant digit first: times of up to four seconds take three passes.
void sort_times(std::vector<std::int64_t>& times) {
  constexpr int digit_bits = 11;
  constexpr std::size_t digits = std::size_t{1} << digit_bits;
  if (times.empty()) return;
  auto const largest = static_cast<std::uint64_t>(*std::ranges::max_element(times));
  std::vector<std::int64_t> other(times.size());
  for (int shift = 0; shift < 64 && largest >> shift != 0; shift += digit_bits) {
    auto const digit = [&](std::int64_t t) { return static_cast<std::uint64_t>(t) >> shift & (digits - 1); };
    std::array<std::size_t, digits> next{};
    for (auto const t : times) ++next[digit(t)];
    std::size_t begin = 0;
    for (auto& place : next) begin += std::exchange(place, begin);
    for (auto const t : times) other[next[digit(t)]++] = t;
    times.swap(other);
  }
}

// Finds the value by halving its range: how many samples are below a value is one binary search in each run.
std::int64_t nth_smallest(std::span<std::vector<std::int64_t> const> runs, std::int64_t k) {
  if (runs.size() == 1) return runs[0][static_cast<std::size_t>(k)];
  std::int64_t low = 0, high = INT64_MAX;
  while (low < high) {
    auto const middle = low + (high - low) / 2;
    std::int64_t not_above = 0;
    for (auto const& run : runs) not_above += std::ranges::upper_bound(run, middle) - run.begin();
    if (not_above > k)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

std::optional<latency_summary> summarise(std::span<std::vector<std::int64_t> const> runs) {
  latency_summary s;
  s.min = INT64_MAX;
  double sum = 0;
  for (auto const& run : runs) {
    if (run.empty()) continue;
    s.count += static_cast<std::int64_t>(run.size());
    s.min = std::min(s.min, run.front());
    s.max = std::max(s.max, run.back());
    for (auto const ns : run) sum += static_cast<double>(ns); // exact up to 2^53 ns
  }
  if (s.count == 0) return std::nullopt;
  s.mean = sum / static_cast<double>(s.count);
  auto const nth = [&](std::int64_t k) { return nth_smallest(runs, k); };
  for (std::size_t i = 0; i < percentiles.size(); ++i) s.at[i] = *quantile(s.count, nth, percentiles[i].q);
  return s;
}

latency_collector::latency_collector(std::size_t world) {
  out_.by_rank.resize(world);
  out_.steadiness_by_rank.resize(world);
}

void latency_collector::take(std::int64_t rank, measurement& m) {
  auto const place = static_cast<std::size_t>(rank);
  out_.steadiness_by_rank[place] = steadiness_of(m);
  auto& all = sorted_.emplace_back();
  for (auto const& thread : m.latency_ns) all.insert(all.end(), thread.begin(), thread.end());
  m.latency_ns = {};
  m.start_ns = {};
  sort_times(all);
  out_.by_rank[place] = summarise(std::span(sorted_).last(1));
}

case_latencies latency_collector::finish() {
  out_.pooled = summarise(sorted_);
  return std::move(out_);
}

} // namespace plateau
