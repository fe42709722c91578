// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schemas/case_result.hpp"

#include <random>

namespace plateau {

/// A complete result of a case that passed: two stream threads, three requests each, every optional part
/// present.
inline case_result passed_result() {
  counters before, after;
  std::int64_t value = 1;
  for (auto const& field : counter_fields) {
    before.*field.member = value;
    after.*field.member = 2 * value;
    value += 3;
  }
  measurement m;
  m.start_ns = {{0, 10, 20}, {1, 11, 21}};
  m.latency_ns = {{9, 8, 7}, {6, 5, 4}};
  m.gate_ns = 1'000'000;
  m.wall_ns = 30;
  m.pre = before;
  m.post = after;
  m.soak = {{0, 0, before, 0, 4096}, {6, 60, after, 4096, 8192}};
  m.tracked = attribution{6, before, after, {{"aten::linear/aten::addmm", 4, 2048, 4, 2048}, {"", 1, 512, 0, 0}}};
  m.harness_ns = 46.8;

  case_result r;
  r.run_id = "20260304T101500Z-demo-7f3a";
  r.id = {"compiled", 2, 0};
  r.rank = 1;
  r.status = case_status::passed;
  r.started = "2026-03-04T10:15:00Z";
  r.seconds = 1.5;
  r.warnings = {"2 stream threads on 1 core"};
  r.device = device_info{"cpu", "a processor", {}, {}, {}, {}, 1 << 30, 0, "0-1", 2, {{"torch", "2.11.0"}}};
  r.compile_applied = true;
  r.package = package_info{"k", true, 0};
  r.outputs = output_check{true, {}, 2e-7, 3e-7, 1e-5, {"00000000", "00000001"}};
  r.measured = m;
  return r;
}

/// Turns over one bit of `bytes`, anywhere.
inline void flip(std::vector<std::uint8_t>& bytes, std::mt19937& random) {
  auto& byte = bytes[random() % bytes.size()];
  byte = static_cast<std::uint8_t>(byte ^ 1u << random() % 8);
}

} // namespace plateau
