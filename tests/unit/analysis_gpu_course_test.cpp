// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/analysis/gpu_course.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace plateau {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::int64_t window_ns = 1'000'000'000;

// A window of a second, in which power held the clocks down for so long.
measurement held_down_for(std::int64_t ns) {
  measurement m;
  m.wall_ns = window_ns;
  m.gpu.emplace();
  m.gpu->before.held_down_by = {{"power", 7}, {"thermal", 5}};
  m.gpu->after.held_down_by = {{"power", 7 + ns}, {"thermal", 5}};
  return m;
}

TEST(gpu_warnings, are_none_where_nvml_told_nothing) {
  EXPECT_THAT(gpu_warnings(measurement{}), IsEmpty());
  EXPECT_TRUE(gpu_entry(measurement{}).is_null());
}

TEST(gpu_warnings, are_of_clocks_that_were_held_down_for_a_hundredth_of_the_window) {
  EXPECT_THAT(gpu_warnings(held_down_for(window_ns / 100)),
              ElementsAre("the GPU's clocks were held down in the timed window by: power"));
  EXPECT_THAT(gpu_warnings(held_down_for(window_ns / 200)), IsEmpty());
}

TEST(gpu_warnings, believe_the_counters_rather_than_the_moment) {
  auto m = held_down_for(0);
  m.gpu->after.clock_reasons = {"sw_power_cap"};
  EXPECT_THAT(gpu_warnings(m), IsEmpty());
  m.gpu->before.held_down_by = m.gpu->after.held_down_by = {};
  EXPECT_THAT(gpu_warnings(m), ElementsAre(testing::EndsWith("by: sw_power_cap")));
}

TEST(gpu_warnings, are_not_of_a_gpu_that_is_idle_or_set_to_a_clock) {
  auto m = held_down_for(0);
  m.gpu->before.held_down_by = m.gpu->after.held_down_by = {};
  m.gpu->after.clock_reasons = {"gpu_idle", "application_clocks"};
  EXPECT_THAT(gpu_warnings(m), IsEmpty());
}

TEST(gpu_warnings, name_each_other_process_once_with_the_most_that_it_had) {
  auto m = held_down_for(0);
  m.gpu->before.others = {{42, 1 << 20}};
  m.gpu->after.others = {{42, 3 << 20}, {43, std::nullopt}};
  m.gpu->after_soak.emplace().others = {{42, 2 << 20}};
  EXPECT_THAT(gpu_warnings(m), ElementsAre("other processes had memory on the GPU: pid 42 (3 MiB), pid 43"));
}

TEST(gpu_entry, has_the_share_of_the_window_by_cause) {
  auto const entry = gpu_entry(held_down_for(window_ns / 4));
  EXPECT_EQ(entry["held_down_in_window"], json({{"power", 0.25}, {"thermal", 0.0}}));
  EXPECT_FALSE(entry["before"].contains("sm_clock_mhz")) << "absent, not 0";
  EXPECT_FALSE(entry.contains("after_soak"));
}

} // namespace
} // namespace plateau
