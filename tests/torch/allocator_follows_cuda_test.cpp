// SPDX-License-Identifier: Apache-2.0
#include "tests/torch/allocator_seed_run.hpp"
#include "tests/torch/allocator_trace.hpp"
#include "worker/memory/cpu_allocator.hpp"

#include <c10/util/Exception.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <unordered_map>
#include <vector>

namespace plateau {
namespace {

using trace::action;

// What the pretend GPU says it has.
constexpr std::int64_t gib = std::int64_t(1) << 30;

class our_replay {
public:
  explicit our_replay(std::int64_t gibibytes)
      : allocator_({.capacity_bytes = static_cast<std::size_t>(gibibytes * gib), .populate = false}) {}

  counters run(trace::step const& step) {
    switch (step.what) {
    case action::allocate: allocate(step); break;
    case action::free: free(step.block); break;
    case action::empty_cache: allocator_.empty_cache(); break;
    case action::reset_peak: allocator_.reset_peak(); break;
    }
    return allocator_.read();
  }

private:
  void allocate(trace::step const& step) {
    cpu_allocator::enter_stream(step.stream);
    try {
      live_[step.block] = allocator_.allocate(static_cast<std::size_t>(step.bytes));
    } catch (c10::OutOfMemoryError const&) { // counted by the allocator; the block is not live
    }
  }

  void free(std::int64_t block) {
    auto const found = live_.find(block);
    if (found == live_.end()) return;
    allocator_.free(found->second);
    live_.erase(found);
  }

  cpu_allocator allocator_;
  std::unordered_map<std::int64_t, void*> live_;
};

/// The steps through PyTorch's own allocator, in a process of its own since the pretend GPU has to be preloaded.
std::vector<counters> cuda_replay(std::vector<trace::step> const& steps, std::int64_t gibibytes) {
  std::string folder = testing::TempDir() + "plateau-oracle-XXXXXX";
  EXPECT_NE(mkdtemp(folder.data()), nullptr) << folder;
  std::ofstream steps_file(folder + "/steps");
  trace::write(steps, steps_file);
  steps_file.close();
  std::string const command = "PRETEND_MIB=" + std::to_string(gibibytes * 1024) +
                              " LD_LIBRARY_PATH=" PRETEND_GPU " LD_PRELOAD=" PRETEND_GPU
                              "/libpretend_cuda.so " ALLOCATOR_ORACLE " < " +
                              folder + "/steps > " + folder + "/counters";
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
  std::ifstream counters_file(folder + "/counters");
  auto all = trace::read_counters(counters_file);
  std::filesystem::remove_all(folder);
  return all;
}

std::string differences(counters const& ours, counters const& cuda) {
  std::string text;
  for (auto const& field : counter_fields)
    if (ours.*field.member != cuda.*field.member)
      text += std::string(field.name) + ": " + std::to_string(ours.*field.member) + ", CUDA " +
              std::to_string(cuda.*field.member) + "\n";
  return text;
}

/// Every counter after every step; returns the last.
counters expect_same_counters(std::vector<trace::step> const& steps, std::int64_t gibibytes) {
  auto const cuda = cuda_replay(steps, gibibytes);
  our_replay ours(gibibytes);
  counters last;
  EXPECT_EQ(cuda.size(), steps.size());
  for (std::size_t i = 0; i < std::min(steps.size(), cuda.size()); ++i) {
    last = ours.run(steps[i]);
    if (last == cuda[i]) continue;
    ADD_FAILURE() << "step " << i << " (" << static_cast<char>(steps[i].what) << ' ' << steps[i].bytes
                  << " bytes, stream " << steps[i].stream << ")\n"
                  << differences(last, cuda[i]);
    break;
  }
  return last;
}

class random_trace : public testing::TestWithParam<std::uint32_t> {};

TEST_P(random_trace, gives_every_counter_of_the_cuda_allocator_after_every_step) {
  auto const last = expect_same_counters(trace::random_steps(GetParam(), 100'000, 4 * gib), 140);
  EXPECT_GT(last.allocation_events, 40'000);
  EXPECT_GT(last.device_frees, 1'000) << "the trace must flush the cache";
  EXPECT_EQ(last.ooms, 0);
}

TEST_P(random_trace, runs_out_of_memory_where_the_cuda_allocator_does) {
  auto const last = expect_same_counters(trace::random_steps(GetParam(), 20'000, 2 * gib), 1);
  EXPECT_GT(last.ooms, 100);
  EXPECT_GT(last.alloc_retries, last.ooms) << "some must succeed after a flush";
}

INSTANTIATE_TEST_SUITE_P(seeds, random_trace, testing::Values(1, 2, 3));

nlohmann::json seed_results() {
  std::ifstream file(PLATEAU_SOURCE_DIR "/tests/data/seed_result.json");
  return nlohmann::json::parse(file).at("results");
}

void expect_figures_of(nlohmann::json const& seed, counters const& ours, std::string const& where) {
  EXPECT_EQ(ours.allocated_bytes, seed.at("allocated_bytes")) << where;
  EXPECT_EQ(ours.reserved_bytes, seed.at("reserved_bytes")) << where;
  EXPECT_EQ(ours.segment_alloc_events, seed.at("segment_alloc_events")) << where;
}

TEST(seed_run, gives_every_counter_of_the_cuda_allocator_after_every_step) {
  expect_same_counters(trace::seed_run().steps, 140);
}

TEST(seed_run, has_the_seeds_own_figures_for_eager_and_compiled) {
  auto const run = trace::seed_run();
  auto const results = seed_results();
  our_replay ours(140);
  std::vector<counters> after;
  for (auto const& step : run.steps) after.push_back(ours.run(step));
  ASSERT_EQ(run.cases.size(), 4u);
  for (std::size_t i = 0; i < run.cases.size(); ++i) {
    auto const& point = run.cases[i];
    ASSERT_EQ(results[i].at("mode"), point.mode);
    ASSERT_EQ(results[i].at("concurrency"), point.concurrency);
    std::string const name = point.mode + ".c" + std::to_string(point.concurrency);
    expect_figures_of(results[i].at("memory_pre"), after[point.steps_before_timing - 1], name + " pre");
    expect_figures_of(results[i].at("memory_post"), after[point.steps_after_timing - 1], name + " post");
  }
}

} // namespace
} // namespace plateau
