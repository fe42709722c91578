// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/torch/allocator_trace.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace plateau::trace {

struct seed_case {
  std::string mode;
  std::int64_t concurrency = 0;
  std::size_t steps_before_timing = 0, steps_after_timing = 0;
};

struct seed_trace {
  std::vector<step> steps;
  std::vector<seed_case> cases;
};

/// What the run behind tests/data/seed_result.json asked of its allocator, eager and compiled, as inferred
/// from its figures: one model in float16 (hidden 1024, batch 16, seq_len 128), 30 warm-up and 120 timed
/// requests a thread.
seed_trace seed_run();

} // namespace plateau::trace
