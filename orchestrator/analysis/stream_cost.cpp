// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/analysis/stream_cost.hpp"

#include "orchestrator/analysis/attempts.hpp"
#include "orchestrator/analysis/units.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace plateau {

namespace {

/// What was measured of one mode.
struct measured_mode {
  std::string mode;
  std::map<std::int64_t, std::int64_t> reserved; // by concurrency
  std::optional<std::int64_t> capacity;          // of the rank that has least
  bool capacity_known = true;                    // on every rank
};

std::int64_t most_reserved(measurement const& m) {
  auto most = std::max(m.pre.reserved_bytes, m.post.reserved_bytes);
  for (auto const& point : m.soak) most = std::max(most, point.allocator.reserved_bytes);
  return most;
}

std::int64_t most_outside(measurement const& m) {
  auto most = std::max(m.outside_pre_bytes, m.outside_post_bytes);
  for (auto const& point : m.soak) most = std::max(most, point.outside_bytes);
  return most;
}

// How many ranks of the run use the device of this one. A CPU has no uuid.
std::int64_t sharers(run_info const& info, rank_info const& rank) {
  return std::ranges::count_if(info.ranks, [&](rank_info const& other) {
    return ran_together(other, rank) && other.host_id == rank.host_id && other.device &&
           other.device->uuid == rank.device->uuid;
  });
}

std::optional<std::int64_t> capacity_on(run_info const& info, case_result const& result) {
  auto const& rank = info.ranks[static_cast<std::size_t>(result.rank)];
  if (!rank.device || rank.device->memory_bytes <= 0) return std::nullopt;
  auto const ranks = sharers(info, rank);
  if (rank.device->kind != "cpu" && ranks > 1) return std::nullopt;
  return std::max<std::int64_t>(0, rank.device->memory_bytes / ranks - most_outside(*result.measured));
}

void add(measured_mode& mode, run_info const& info, std::int64_t concurrency, case_result const& result) {
  auto& reserved = mode.reserved[concurrency];
  reserved = std::max(reserved, most_reserved(*result.measured));
  auto const capacity = capacity_on(info, result);
  mode.capacity_known = mode.capacity_known && capacity;
  if (capacity) mode.capacity = std::min(mode.capacity.value_or(INT64_MAX), *capacity);
}

std::vector<measured_mode> measured_modes(run_record const& run) {
  std::vector<measured_mode> modes;
  for (auto const& record : run.cases)
    for (auto const& result : record.by_rank) {
      if (!result || !result->measured || result->measured->counters_unavailable) continue;
      auto at = std::ranges::find(modes, record.id.mode, &measured_mode::mode);
      if (at == modes.end()) at = modes.insert(at, measured_mode{record.id.mode, {}, {}});
      add(*at, run.info, record.id.concurrency, *result);
    }
  return modes;
}

void fit_line(stream_cost& c) {
  auto const n = static_cast<double>(c.concurrency.size());
  double mean_x = 0, mean_y = 0, square = 0, product = 0;
  for (std::size_t i = 0; i < c.concurrency.size(); ++i) {
    mean_x += static_cast<double>(c.concurrency[i]) / n;
    mean_y += static_cast<double>(c.reserved_bytes[i]) / n;
  }
  for (std::size_t i = 0; i < c.concurrency.size(); ++i) {
    auto const x = static_cast<double>(c.concurrency[i]) - mean_x;
    square += x * x;
    product += x * (static_cast<double>(c.reserved_bytes[i]) - mean_y);
  }
  c.bytes_per_stream = product / square;
  c.bytes_at_none = mean_y - c.bytes_per_stream * mean_x;
  if (c.concurrency.size() == 2) return; // exact, but for rounding
  for (std::size_t i = 0; i < c.concurrency.size(); ++i) {
    auto const on_line = c.bytes_at_none + c.bytes_per_stream * static_cast<double>(c.concurrency[i]);
    c.residual_bytes = std::max(c.residual_bytes, std::abs(static_cast<double>(c.reserved_bytes[i]) - on_line));
  }
}

stream_cost cost_of(measured_mode const& mode) {
  stream_cost c;
  c.mode = mode.mode;
  for (auto const& [concurrency, reserved] : mode.reserved) {
    c.concurrency.push_back(concurrency);
    c.reserved_bytes.push_back(reserved);
  }
  fit_line(c);
  if (mode.capacity_known) c.capacity_bytes = mode.capacity;
  if (!c.capacity_bytes || c.bytes_per_stream <= 0) return c;
  auto const left = static_cast<double>(*c.capacity_bytes) - c.bytes_at_none;
  c.most_streams = std::max(c.concurrency.back(), static_cast<std::int64_t>(std::floor(left / c.bytes_per_stream)));
  return c;
}

} // namespace

stream_costs stream_costs_of(run_record const& run) {
  if (run.run.isolation != "case")
    return {{}, "one worker ran all cases, so that a case holds what those before it reserved: use --isolation case"};
  stream_costs out;
  for (auto const& mode : measured_modes(run))
    if (mode.reserved.size() >= 2) out.modes.push_back(cost_of(mode));
  if (out.modes.empty()) out.why_none = "no mode has counters at two levels of concurrency";
  return out;
}

std::optional<unfit> first_unfit(stream_cost const& c) {
  if (!c.most_streams) return std::nullopt;
  auto const concurrency = *c.most_streams + 1;
  return unfit{concurrency, c.bytes_at_none + c.bytes_per_stream * static_cast<double>(concurrency)};
}

std::string told(stream_cost const& c) {
  if (c.bytes_per_stream <= 0)
    return c.mode + ": more streams cost no measurable memory, up to " + std::to_string(c.concurrency.back());
  auto text = c.mode + ": each stream adds " + bytes_text(c.bytes_per_stream) + " to " + bytes_text(c.bytes_at_none);
  if (c.residual_bytes > 0) text += " (give or take " + bytes_text(c.residual_bytes) + ")";
  auto const u = first_unfit(c);
  if (!u) return text;
  return text + "; c" + std::to_string(u->concurrency) + " would not fit: " + std::to_string(*c.most_streams) +
         " streams fill the " + bytes_text(static_cast<double>(*c.capacity_bytes)) + " that the allocator can have";
}

} // namespace plateau
