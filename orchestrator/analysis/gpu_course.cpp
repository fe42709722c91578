// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/analysis/gpu_course.hpp"

#include "orchestrator/analysis/units.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string_view>

namespace plateau {

namespace {

constexpr double worth_a_warning = 0.01; // of the timed window

// The others of nvmlClocksEventReasons are settings, or that there is nothing to do.
constexpr std::array<std::string_view, 5> slowdowns{"sw_power_cap", "hw_slowdown", "sw_thermal_slowdown",
                                                    "hw_thermal_slowdown", "hw_power_brake"};

std::string joined(std::vector<std::string> const& parts) {
  std::string text;
  for (auto const& part : parts) text += (text.empty() ? "" : ", ") + part;
  return text;
}

// Each process once, with the most that it had.
std::vector<std::string> other_processes(gpu_course const& gpu) {
  std::map<std::int64_t, std::optional<std::int64_t>> most;
  auto const look = [&](gpu_state const& s) {
    for (auto const& p : s.others.value_or(std::vector<gpu_process>{})) {
      auto& bytes = most[p.pid];
      bytes = std::max(bytes, p.bytes);
    }
  };
  look(gpu.before);
  look(gpu.after);
  if (gpu.after_soak) look(*gpu.after_soak);
  std::vector<std::string> told;
  for (auto const& [pid, bytes] : most)
    told.push_back("pid " + std::to_string(pid) + (bytes ? " (" + bytes_text(static_cast<double>(*bytes)) + ")" : ""));
  return told;
}

std::vector<std::string> causes_of_slowness(measurement const& m) {
  std::vector<std::string> causes;
  for (auto const& [by, share] : held_down_in_window(m))
    if (share >= worth_a_warning) causes.push_back(by);
  if (!m.gpu->after.held_down_by.empty()) return causes;
  for (auto const& reason : m.gpu->after.clock_reasons.value_or(std::vector<std::string>{}))
    if (std::ranges::find(slowdowns, reason) != slowdowns.end()) causes.push_back(reason);
  return causes;
}

} // namespace

std::vector<held_down_share> held_down_in_window(measurement const& m) {
  std::vector<held_down_share> shares;
  if (!m.gpu || m.wall_ns <= 0) return shares;
  for (auto const& after : m.gpu->after.held_down_by) {
    auto const before = std::ranges::find(m.gpu->before.held_down_by, after.by, &held_down::by);
    if (before == m.gpu->before.held_down_by.end()) continue;
    auto const during = static_cast<double>(after.nanoseconds - before->nanoseconds);
    shares.push_back({after.by, std::clamp(during / static_cast<double>(m.wall_ns), 0.0, 1.0)});
  }
  return shares;
}

std::vector<std::string> gpu_warnings(measurement const& m) {
  std::vector<std::string> warnings;
  if (!m.gpu) return warnings;
  if (auto const others = other_processes(*m.gpu); !others.empty())
    warnings.push_back("other processes had memory on the GPU: " + joined(others));
  if (auto const causes = causes_of_slowness(m); !causes.empty())
    warnings.push_back("the GPU's clocks were held down in the timed window by: " + joined(causes));
  return warnings;
}

json gpu_entry(measurement const& m) {
  if (!m.gpu) return nullptr;
  auto out = encode(*m.gpu);
  auto& shares = out["held_down_in_window"] = json::object();
  for (auto const& [by, share] : held_down_in_window(m)) shares[by] = share;
  return out;
}

} // namespace plateau
