// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schemas/case_result.hpp"
#include "schemas/job.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace plateau {

/// What the tests of the real worker count by.
constexpr std::int64_t warmup = 3, timed = 40, windows = 4, per_window = 10;

/// A job of a fraction of a second, all of it on one worker.
inline job small_job(std::string device) {
  job j;
  j.name = "small";
  j.device = std::move(device);
  j.hidden = 64;
  j.batch = 2;
  j.seq_len = 8;
  j.warmup = warmup;
  j.requests_per_worker = timed;
  j.soak = {windows, per_window, {}};
  j.isolation = "run";
  return j;
}

/// By how much a counter rose.
template <auto Member>
std::int64_t change(counters const& pre, counters const& post) {
  return post.*Member - pre.*Member;
}

template <auto Member>
std::int64_t sum_of(std::vector<op_events> const& ops) {
  std::int64_t sum = 0;
  for (auto const& op : ops) sum += op.*Member;
  return sum;
}

} // namespace plateau
