// SPDX-License-Identifier: Apache-2.0
// worker/device/nvml on the pretend GPU's library (worker/pretend_gpu/nvml.c).
#include "worker/device/nvml.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <unistd.h>

namespace plateau {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr auto uuid = "GPU-50524554-454e-4447-5055-303030303000";

// A GPU that does what the words say, for as long as it lives.
struct scripted_gpu {
  explicit scripted_gpu(char const* script) {
    setenv("PRETEND_NVML", script, 1);
    auto opened = open_nvml(uuid);
    gpu = std::move(opened.gpu);
    why_not = opened.why_not;
  }
  ~scripted_gpu() { unsetenv("PRETEND_NVML"); }
  scripted_gpu(scripted_gpu const&) = delete;
  scripted_gpu& operator=(scripted_gpu const&) = delete;

  std::unique_ptr<nvml_gpu> gpu;
  std::string why_not;
};

TEST(nvml, tells_clocks_power_and_temperature) {
  scripted_gpu const g("");
  auto const s = g.gpu->read();
  EXPECT_EQ(s.sm_clock_mhz, 1980);
  EXPECT_EQ(s.memory_clock_mhz, 3201);
  EXPECT_EQ(s.power_mw, 689'000);
  EXPECT_EQ(s.temperature_c, 61);
  EXPECT_THAT(s.clock_reasons.value(), ElementsAre("gpu_idle"));
  EXPECT_EQ(g.gpu->is_mig(), false);
  EXPECT_EQ(g.gpu->driver_version(), "580.00");
  EXPECT_EQ(g.gpu->library_version(), "13.580.00");
}

TEST(nvml, counts_for_how_long_the_clocks_were_held_down_and_by_what) {
  scripted_gpu const g("held_down");
  auto const s = g.gpu->read();
  ASSERT_EQ(s.held_down_by.size(), 4u);
  EXPECT_EQ(s.held_down_by[0].by, "power");
  EXPECT_GT(s.held_down_by[0].nanoseconds, 0);
  EXPECT_EQ(s.held_down_by[1].by, "thermal");
  EXPECT_EQ(s.held_down_by[1].nanoseconds, 0);
}

TEST(nvml, names_each_reason_where_the_gpu_counts_none) {
  scripted_gpu const g("uncounted");
  auto const s = g.gpu->read();
  EXPECT_THAT(s.held_down_by, IsEmpty());
  EXPECT_THAT(s.clock_reasons.value(), ElementsAre("sw_power_cap", "hw_thermal_slowdown"));
}

TEST(nvml, lists_other_processes_but_not_this_one) {
  EXPECT_THAT(scripted_gpu("").gpu->read().others.value(), IsEmpty());
  auto const others = scripted_gpu("foreign").gpu->read().others.value();
  ASSERT_EQ(others.size(), 2u);
  EXPECT_EQ(others[0].pid, 4242);
  EXPECT_EQ(others[0].bytes, std::int64_t{2} << 30);
  EXPECT_EQ(others[1].bytes, std::nullopt) << "not available is not 0";
}

TEST(nvml, does_not_know_of_others_where_the_list_lacks_this_process) {
  EXPECT_EQ(scripted_gpu("foreign,hidden").gpu->read().others, std::nullopt);
}

TEST(nvml, leaves_absent_what_the_gpu_does_not_tell) {
  scripted_gpu const g("silent");
  auto const s = g.gpu->read();
  EXPECT_EQ(s.sm_clock_mhz, std::nullopt);
  EXPECT_EQ(s.power_mw, std::nullopt);
  EXPECT_EQ(s.temperature_c, std::nullopt);
  EXPECT_EQ(s.clock_reasons, std::nullopt);
  EXPECT_EQ(s.others, std::nullopt);
  EXPECT_THAT(s.held_down_by, IsEmpty());
}

TEST(nvml, finds_a_part_of_a_gpu_and_gives_it_the_clocks_of_the_whole) {
  scripted_gpu const g("mig");
  EXPECT_EQ(g.gpu->is_mig(), true);
  EXPECT_EQ(g.gpu->read().sm_clock_mhz, 1980);
}

TEST(nvml, says_why_it_tells_nothing) {
  EXPECT_EQ(open_nvml(uuid).why_not, std::string("NVML knows no device ") + uuid);
  EXPECT_EQ(scripted_gpu("broken").why_not, "NVML does not start: Driver Not Loaded");
}

} // namespace
} // namespace plateau
