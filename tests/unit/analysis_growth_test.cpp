// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/analysis/growth.hpp"

#include "tests/unit/analysis_traces.hpp"

#include <gmock/gmock.h>

#include <functional>
#include <map>

namespace plateau {
namespace {

constexpr std::int64_t seed = 20260304;

series_growth judged(trace const& values, std::string_view series = "outside_bytes") {
  auto const ranks = judge_growth(record_of({curve_of(values, series)}));
  return *std::ranges::find(ranks.at(0).series, series, &series_growth::series);
}

std::map<growth_outcome, int> count(int traces, std::function<trace()> const& next) {
  std::map<growth_outcome, int> outcomes;
  for (int i = 0; i < traces; ++i) ++outcomes[judged(next()).outcome];
  return outcomes;
}

TEST(growth_generator, of_2000_healthy_traces_at_most_two_are_growing) {
  trace_source random(seed);
  auto outcomes = count(2000, [&] { return random.healthy(); });
  EXPECT_LE(outcomes[growth_outcome::growing], 2);
  EXPECT_GE(outcomes[growth_outcome::plateau], 600); // most of the others have noise of more than the threshold
}

TEST(growth_generator, of_2000_leaking_traces_at_least_1990_are_growing_and_none_is_a_plateau) {
  trace_source random(seed);
  auto outcomes =
      count(2000, [&] { return random.leak(24, random.log_uniform(2, 20), random.uniform(0, 3), random.any_noise()); });
  EXPECT_GE(outcomes[growth_outcome::growing], 1990);
  EXPECT_EQ(outcomes[growth_outcome::plateau], 0);
}

TEST(growth_generator, under_greater_noise_a_leak_is_not_taken_for_a_plateau) {
  trace_source random(seed);
  auto outcomes = count(
      2000, [&] { return random.leak(24, random.log_uniform(2, 20), random.log_uniform(3, 100), random.any_noise()); });
  EXPECT_LE(outcomes[growth_outcome::plateau], 1);
  EXPECT_GE(outcomes[growth_outcome::inconclusive], 1000);
}

} // namespace
} // namespace plateau
