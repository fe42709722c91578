// SPDX-License-Identifier: Apache-2.0
// A case that is ready keeps the clocks up, on a CPU that claims to slow down when it is idle.
#include "worker/prepared_case.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <c10/core/InferenceMode.h>
#include <memory>
#include <stdexcept>

namespace plateau {
namespace {

class tired_cpu final : public device {
public:
  device_info info() const override { return cpu_->info(); }
  c10::Device torch_device() const override { return cpu_->torch_device(); }
  std::unique_ptr<stream> make_stream() override { return cpu_->make_stream(); }
  void wait_idle() override { cpu_->wait_idle(); }
  counters read_counters() const override { return cpu_->read_counters(); }
  void reset_peak() override { cpu_->reset_peak(); }
  std::optional<std::string> counters_unavailable() const override { return cpu_->counters_unavailable(); }
  std::int64_t outside_bytes() const override { return cpu_->outside_bytes(); }
  bool slows_when_idle() const override { return tired; }

  bool tired = true;

private:
  std::unique_ptr<device> cpu_ = open_cpu();
};

struct at_the_gate : testing::TestWithParam<char const*> {
  static tired_cpu& cpu() { // Torch takes one allocator in a process
    static tired_cpu the_one;
    return the_one;
  }

  prepared_case& ready(std::string const& mode) {
    job j;
    j.hidden = 32;
    j.batch = 2;
    j.seq_len = 4;
    j.warmup = 2;
    j.requests_per_worker = 10;
    j.soak.windows = 0;
    j.stream_threads = GetParam();
    cpu().tired = true;
    context.emplace(worker_context{resolved_for(j, "cpu"), "a run", 0, cpu(), *main, *shared, {}});
    return the_case.emplace(*context, case_id{mode, 2, 0});
  }

  c10::InferenceMode const inference;
  std::unique_ptr<progress> shared = std::make_unique<progress>();
  std::unique_ptr<stream> main = cpu().make_stream();
  std::optional<worker_context> context;
  std::optional<prepared_case> the_case;
};

INSTANTIATE_TEST_SUITE_P(with, at_the_gate, testing::Values("persistent", "fresh"),
                         [](auto const& threads) { return threads.param + std::string("_threads"); });

case_result run(prepared_case& c) {
  return c.run([](memory_point const&) {});
}

TEST_P(at_the_gate, a_case_serves_until_it_is_over_and_what_it_served_is_not_in_the_window) {
  auto& c = ready("eager");
  std::atomic<int> asked = 0;
  c.keep_clocks_up([&] { return ++asked > 60; });
  auto const r = run(c);
  EXPECT_GT(r.measured->clock_requests.value(), 0);
  EXPECT_EQ(r.measured->post.allocation_events - r.measured->pre.allocation_events, 11 * 2 * 10);
}

TEST_P(at_the_gate, what_goes_wrong_is_said_when_the_case_is_started) {
  auto& c = ready("arena_planned");
  std::atomic<int> asked = 0;
  EXPECT_NO_THROW(c.keep_clocks_up([&]() -> bool {
    if (++asked > 20) throw std::runtime_error("a request failed at the gate");
    return false;
  }));
  EXPECT_EQ(shared->now, phase::waiting);
  EXPECT_THAT([&] { run(c); }, testing::ThrowsMessage<std::runtime_error>("a request failed at the gate"));
}

TEST_P(at_the_gate, a_device_that_does_not_slow_down_serves_nothing) {
  auto& c = ready("arena_planned");
  cpu().tired = false;
  c.keep_clocks_up([]() -> bool { throw std::logic_error("asked"); });
  EXPECT_EQ(run(c).measured->clock_requests, std::nullopt);
}

} // namespace
} // namespace plateau
