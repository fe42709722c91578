// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "orchestrator/analysis/growth.hpp"
#include "orchestrator/analysis/growth_evidence.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <random>
#include <string_view>
#include <utility>
#include <vector>

namespace plateau {

/// A made-up memory curve: bytes at each quiet point, the first before the first window.
using trace = std::vector<double>;

inline constexpr std::int64_t requests_per_window = 100;
inline constexpr double mib = 1 << 20;

enum class noise_kind { white, autoregressive, heavy_tailed };

/// Random curves. The same seed gives the same curves.
class trace_source {
public:
  explicit trace_source(std::uint64_t seed) : random_(seed) {}

  double uniform(double low, double high) {
    return low + (high - low) * static_cast<double>(random_() >> 11) * 0x1p-53;
  }
  double log_uniform(double low, double high) { return std::exp(uniform(std::log(low), std::log(high))); }
  std::int64_t whole(std::int64_t low, std::int64_t high) { // both included
    return low + static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(high - low + 1));
  }
  double normal() { // Box and Muller
    return std::sqrt(-2 * std::log(1 - uniform(0, 1))) * std::cos(2 * std::numbers::pi * uniform(0, 1));
  }

  /// `count` values of the standard deviation 1: independent normal, a first-order autoregression with a coefficient of
  /// up to 0.5, or Student's t with three degrees of freedom.
  trace noise(std::size_t count, noise_kind kind) {
    trace values(count);
    auto const r = kind == noise_kind::autoregressive ? uniform(0, 0.5) : 0;
    auto before = normal();
    for (auto& value : values) {
      value = before = r * before + std::sqrt(1 - r * r) * normal();
      if (kind == noise_kind::heavy_tailed)
        value /= std::sqrt(std::pow(normal(), 2) + std::pow(normal(), 2) + std::pow(normal(), 2));
    }
    return values;
  }
  noise_kind any_noise() { return static_cast<noise_kind>(whole(0, 2)); }

  /// A server whose memory levels off: 12 to 48 windows of noise of any kind and size on a constant, on up to three
  /// steps in the first half, on a rise that saturates with a time constant of at most a tenth of the soak, or on a
  /// saw-tooth with a period of up to all of it.
  trace healthy() {
    auto const windows = static_cast<std::size_t>(whole(12, 48));
    auto const level = log_uniform(10 * mib, 10'000 * mib), unit = practical_threshold(level);
    auto values = noise(windows + 1, any_noise());
    auto const sd = unit * log_uniform(0.01, 10);
    for (auto& value : values) value = level + sd * value;
    auto const size = unit * log_uniform(0.1, 100), soak = static_cast<double>(windows);
    switch (whole(0, 3)) {
    case 0: break;
    case 1:
      for (auto steps = whole(1, 3); steps > 0; --steps)
        for (auto i = static_cast<std::size_t>(whole(1, static_cast<std::int64_t>(windows) / 2)); i <= windows; ++i)
          values[i] += size;
      break;
    case 2: {
      auto const time_constant = soak * uniform(0.01, 0.1);
      for (std::size_t i = 0; i <= windows; ++i) values[i] -= size * std::exp(-static_cast<double>(i) / time_constant);
      break;
    }
    case 3: {
      auto const period = uniform(2, soak), phase = uniform(0, 1);
      for (std::size_t i = 0; i <= windows; ++i)
        values[i] += size * std::fmod(static_cast<double>(i) / period + phase, 1);
    }
    }
    return values;
  }

  /// A leak of `thresholds` practical thresholds over the soak, under noise of a standard deviation of
  /// `noise_windows` windows' rise.
  trace leak(std::int64_t windows, double thresholds, double noise_windows, noise_kind kind) {
    auto const level = log_uniform(10 * mib, 10'000 * mib);
    auto const rise = practical_threshold(level) * thresholds / static_cast<double>(windows);
    auto values = noise(static_cast<std::size_t>(windows) + 1, kind);
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = level + rise * (static_cast<double>(i) + noise_windows * values[i]);
    return values;
  }

private:
  std::mt19937_64 random_;
};

/// The memory curve with this trace as the series of this name; the others are constant.
inline std::vector<memory_point> curve_of(trace const& values, std::string_view series) {
  std::vector<memory_point> points;
  for (auto const value : values) {
    auto const window = std::ssize(points);
    memory_point point;
    point.requests = window * requests_per_window;
    point.elapsed_ns = window * 1'000'000'000;
    point.allocator.allocated_bytes = 50 << 20;
    point.allocator.reserved_bytes = 64 << 20;
    point.outside_bytes = point.host_resident_bytes = 300 << 20;
    auto& changed = series == "allocated_bytes"  ? point.allocator.allocated_bytes
                    : series == "reserved_bytes" ? point.allocator.reserved_bytes
                    : series == "outside_bytes"  ? point.outside_bytes
                                                 : point.host_resident_bytes;
    changed = std::llround(value);
    points.push_back(point);
  }
  return points;
}

/// A case of ranks with these memory curves.
inline case_record record_of(std::vector<std::vector<memory_point>> curves) {
  case_record record{{}, {}};
  for (auto& curve : curves) {
    case_result result;
    result.rank = std::ssize(record.by_rank);
    result.status = case_status::passed;
    result.device = device_info{};
    result.device->memory_bytes = std::int64_t{80} << 30;
    result.measured = measurement{};
    result.measured->soak = std::move(curve);
    record.by_rank.emplace_back(std::move(result));
  }
  return record;
}

} // namespace plateau
