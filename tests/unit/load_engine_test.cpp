// SPDX-License-Identifier: Apache-2.0
#include "worker/load/load_engine.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>

namespace {

using namespace plateau;

// Counts its calls, remembers its threads, and fails at one of its requests if told to.
struct fake_request final : request {
  void submit() override {
    if (on_submit) on_submit();
    if (in_flight) order_broken = true;
    in_flight = true;
    if (submitted == fails_at) throw std::runtime_error("request " + std::to_string(submitted) + " failed");
    ++submitted;
    threads.insert(std::this_thread::get_id());
  }
  void wait() override { waited += in_flight; }
  void drop() override {
    dropped += in_flight;
    in_flight = false;
  }

  std::int64_t submitted = 0, waited = 0, dropped = 0, fails_at = -1;
  bool in_flight = false, order_broken = false;
  std::set<std::thread::id> threads;
  std::function<void()> on_submit;
};

// An engine over fake requests, and the number of times that a thread was set up for each of them.
struct load_engine_test : testing::TestWithParam<thread_life> {
  load_engine& engine(std::size_t threads, thread_life life) {
    fakes.resize(threads);
    set_ups.assign(threads, 0);
    std::vector<request*> requests;
    for (auto& fake : fakes) requests.push_back(&fake);
    auto const set_up = [this](std::size_t t, std::function<void()> const& rest) {
      ++set_ups[t];
      rest();
    };
    return current.emplace(requests, set_up, life, *shared);
  }

  std::unique_ptr<progress> shared = std::make_unique<progress>();
  std::vector<fake_request> fakes;
  std::vector<int> set_ups;
  std::optional<load_engine> current;
};

INSTANTIATE_TEST_SUITE_P(threads, load_engine_test, testing::Values(thread_life::persistent, thread_life::fresh),
                         [](auto const& p) { return p.param == thread_life::fresh ? "fresh" : "persistent"; });

TEST_P(load_engine_test, each_thread_serves_exactly_its_requests) {
  auto& e = engine(3, GetParam());
  auto series = make_series(3, 50);
  e.warm_up(7);
  e.run_timed(series);
  e.run_untimed(5);
  for (auto const& fake : fakes) {
    EXPECT_EQ(fake.submitted, 62);
    EXPECT_EQ(fake.waited, 62);
    EXPECT_EQ(fake.dropped, 62);
    EXPECT_FALSE(fake.order_broken);
  }
}

TEST_P(load_engine_test, serves_until_it_is_over_and_tells_how_many_requests_that_were) {
  auto& e = engine(3, GetParam());
  std::atomic<int> asked = 0;
  auto const served = e.serve_until([&] { return ++asked > 100; });
  std::int64_t sum = 0;
  for (auto const& fake : fakes) {
    EXPECT_FALSE(fake.in_flight);
    sum += fake.dropped;
  }
  EXPECT_EQ(served, sum);
  EXPECT_GT(served, 0);
  EXPECT_EQ(e.serve_until([] { return true; }), 0) << "over before it began";
}

TEST_F(load_engine_test, until_it_is_over_the_calling_thread_stands_for_fresh_threads) {
  auto& e = engine(2, thread_life::fresh);
  std::int64_t rounds = 0;
  EXPECT_EQ(e.serve_until([&] { return rounds++ == 5; }), 2 * 5);
  for (auto const& fake : fakes) EXPECT_EQ(fake.threads, std::set{std::this_thread::get_id()});
}

TEST_P(load_engine_test, what_fails_until_it_is_over_is_thrown) {
  auto& e = engine(2, GetParam());
  fakes[1].fails_at = 3;
  EXPECT_THROW(e.serve_until([] { return false; }), std::runtime_error);
}

TEST_P(load_engine_test, a_timed_window_fills_ascending_series_that_end_at_its_wall_time) {
  auto& e = engine(4, GetParam());
  auto series = make_series(4, 200);
  auto const before = series.gate_ns;
  e.run_timed(series);
  EXPECT_GT(series.gate_ns, before);
  std::int64_t last = 0;
  for (std::size_t t = 0; t < 4; ++t) {
    ASSERT_EQ(series.start_ns[t].size(), 200u);
    ASSERT_EQ(series.latency_ns[t].size(), 200u);
    for (std::size_t i = 0; i < 200; ++i) {
      EXPECT_GE(series.latency_ns[t][i], 0);
      auto const earliest = i == 0 ? 0 : series.start_ns[t][i - 1] + series.latency_ns[t][i - 1];
      EXPECT_GE(series.start_ns[t][i], earliest);
      last = std::max(last, series.start_ns[t][i] + series.latency_ns[t][i]);
    }
  }
  EXPECT_EQ(series.wall_ns, last);
}

TEST_P(load_engine_test, progress_counts_the_requests_of_a_worker_s_whole_life) {
  shared->threads[1].requests = 1000; // an earlier case's
  auto& e = engine(2, GetParam());
  auto series = make_series(2, 20);
  e.warm_up(3);
  e.run_timed(series);
  e.look_at_results([](std::size_t) {});
  EXPECT_EQ(shared->threads[0].requests, 24);
  EXPECT_EQ(shared->threads[1].requests, 1024);
  EXPECT_EQ(shared->threads[2].requests, 0);
}

TEST_P(load_engine_test, threads_are_marked_while_they_have_requests_to_serve_and_no_longer) {
  auto& e = engine(2, GetParam());
  auto series = make_series(2, 20);
  bool seen[2] = {};
  for (std::size_t t = 0; t < 2; ++t) fakes[t].on_submit = [&, t] { seen[t] = shared->threads[t].serving; };
  auto const none_left = [&] { return !shared->threads[0].serving && !shared->threads[1].serving; };
  for (auto const& window : {std::function<void()>([&] { e.warm_up(3); }),
                             {[&] { e.run_timed(series); }},
                             {[&] { e.run_untimed(5); }},
                             {[&] { e.soak_for(1, 1, [](auto, auto) {}); }}}) {
    seen[0] = seen[1] = false;
    window();
    EXPECT_TRUE(seen[0] && seen[1]);
    EXPECT_TRUE(none_left());
  }
  fakes[1].fails_at = fakes[1].submitted + 1;
  EXPECT_THROW(e.run_untimed(10), std::runtime_error);
  EXPECT_TRUE(none_left());
}

TEST_P(load_engine_test, a_soak_has_a_quiet_point_before_its_first_window_and_after_each) {
  auto& e = engine(2, GetParam());
  std::vector<std::int64_t> counts, times;
  std::vector<std::uint32_t> windows;
  e.soak(3, 10, [&](std::int64_t requests, std::int64_t elapsed) {
    counts.push_back(requests);
    times.push_back(elapsed);
    windows.push_back(shared->soak_window);
    EXPECT_EQ(fakes[0].dropped + fakes[1].dropped, requests); // nothing in flight, nothing to come
  });
  EXPECT_THAT(counts, testing::ElementsAre(0, 20, 40, 60));
  EXPECT_EQ(times.front(), 0);
  EXPECT_TRUE(std::ranges::is_sorted(times));
  EXPECT_THAT(windows, testing::ElementsAre(0, 0, 1, 2));
  EXPECT_EQ(shared->soak_window, 3u);
}

TEST_P(load_engine_test, a_soak_by_time_has_as_many_windows_and_counts_what_each_thread_served) {
  constexpr std::int64_t duration = 30'000'000;
  auto& e = engine(2, GetParam());
  std::vector<std::int64_t> counts, times;
  std::vector<std::uint32_t> windows;
  e.soak_for(3, duration, [&](std::int64_t requests, std::int64_t elapsed) {
    counts.push_back(requests);
    times.push_back(elapsed);
    windows.push_back(shared->soak_window);
    EXPECT_EQ(fakes[0].dropped + fakes[1].dropped, requests);
    EXPECT_EQ(shared->threads[0].requests + shared->threads[1].requests, requests);
    EXPECT_GE(std::min(fakes[0].dropped, fakes[1].dropped), std::ssize(counts) - 1); // of each thread, one a window
  });
  ASSERT_EQ(counts.size(), 4u);
  EXPECT_EQ(counts.front(), 0);
  for (std::size_t w = 1; w < counts.size(); ++w) EXPECT_GE(counts[w], counts[w - 1] + 2);
  for (std::size_t w = 1; w < times.size(); ++w) EXPECT_GE(times[w], duration * static_cast<std::int64_t>(w) / 3);
  EXPECT_THAT(windows, testing::ElementsAre(0, 0, 1, 2));
  EXPECT_EQ(shared->soak_window, 3u);
}

TEST_P(load_engine_test, a_soak_whose_time_is_over_at_once_still_serves_one_request_per_thread_and_window) {
  auto& e = engine(3, GetParam());
  std::vector<std::int64_t> counts;
  e.soak_for(4, 1, [&](std::int64_t requests, std::int64_t) { counts.push_back(requests); });
  EXPECT_THAT(counts, testing::ElementsAre(0, 3, 6, 9, 12));
}

TEST_P(load_engine_test, what_one_thread_throws_ends_a_soak_by_time_too) {
  auto& e = engine(2, GetParam());
  fakes[1].fails_at = 5;
  EXPECT_THROW(e.soak_for(2, 3'600'000'000'000, [](auto, auto) {}), std::runtime_error);
  EXPECT_EQ(fakes[1].submitted, 5);
}

TEST_P(load_engine_test, what_one_thread_throws_stops_the_others_and_reaches_the_caller) {
  auto& e = engine(3, GetParam());
  fakes[1].fails_at = 5;
  auto series = make_series(3, 1'000'000);
  try {
    e.run_timed(series);
    FAIL() << "nothing was thrown";
  } catch (std::runtime_error const& failure) {
    EXPECT_STREQ(failure.what(), "request 5 failed");
  }
  EXPECT_EQ(fakes[1].submitted, 5);
  EXPECT_LT(fakes[0].submitted, std::ssize(series.latency_ns[0]));
  EXPECT_LT(fakes[2].submitted, std::ssize(series.latency_ns[2]));
}

TEST_P(load_engine_test, an_engine_goes_on_after_a_failed_window) {
  auto& e = engine(2, GetParam());
  fakes[0].fails_at = 0;
  EXPECT_THROW(e.run_untimed(10), std::runtime_error);
  fakes[0] = {};
  fakes[1] = {};
  e.run_untimed(10);
  EXPECT_EQ(fakes[0].submitted, 10);
  EXPECT_EQ(fakes[1].submitted, 10);
}

TEST_P(load_engine_test, results_are_looked_at_before_they_are_dropped) {
  auto& e = engine(3, GetParam());
  std::vector<int> looks(3, 0);
  auto const look = [&](std::size_t t) {
    EXPECT_TRUE(fakes[t].in_flight);
    EXPECT_EQ(fakes[t].waited, fakes[t].dropped + 1);
    ++looks[t];
  };
  e.look_at_results(look);
  e.look_at_results_in_turn(look);
  EXPECT_THAT(looks, testing::Each(2));
}

TEST_P(load_engine_test, a_window_can_be_enclosed_on_each_thread) {
  auto& e = engine(2, GetParam());
  std::mutex lock;
  std::vector<std::size_t> enclosed;
  e.run_untimed(4, [&](std::size_t t, std::function<void()> const& rest) {
    EXPECT_EQ(fakes[t].submitted, 0);
    rest();
    EXPECT_EQ(fakes[t].submitted, 4);
    std::lock_guard const guard(lock);
    enclosed.push_back(t);
  });
  EXPECT_THAT(enclosed, testing::UnorderedElementsAre(0, 1));
}

TEST_F(load_engine_test, persistent_threads_are_set_up_once_and_serve_every_window) {
  auto& e = engine(2, thread_life::persistent);
  auto series = make_series(2, 10);
  e.warm_up(5);
  e.run_timed(series);
  e.soak(3, 5, [](auto, auto) {});
  EXPECT_THAT(set_ups, testing::Each(1));
  for (auto const& fake : fakes) {
    EXPECT_EQ(fake.threads.size(), 1u);
    EXPECT_FALSE(fake.threads.contains(std::this_thread::get_id()));
  }
}

TEST_F(load_engine_test, fresh_threads_are_new_for_every_window_and_warm_up_is_on_the_calling_thread) {
  auto& e = engine(2, thread_life::fresh);
  auto series = make_series(2, 10);
  e.warm_up(5);
  for (auto const& fake : fakes) EXPECT_THAT(fake.threads, testing::ElementsAre(std::this_thread::get_id()));
  e.run_timed(series);
  e.soak(3, 5, [](auto, auto) {});
  EXPECT_THAT(set_ups, testing::Each(5)); // warm-up, timed, three windows
}

TEST_F(load_engine_test, a_warm_up_of_no_requests_runs_none) {
  auto& e = engine(2, thread_life::fresh);
  e.warm_up(0);
  EXPECT_EQ(fakes[0].submitted + fakes[1].submitted, 0);
}

TEST(thread_team, a_thread_that_cannot_be_set_up_is_reported_and_leaves_no_thread) {
  int torn_down = 0;
  auto const set_up = [&](std::size_t t, std::function<void()> const& rest) {
    if (t == 1) throw std::runtime_error("no stream for thread 1");
    rest();
    ++torn_down;
  };
  try {
    thread_team const team(2, set_up);
    FAIL() << "nothing was thrown";
  } catch (std::runtime_error const& failure) {
    EXPECT_STREQ(failure.what(), "no stream for thread 1");
  }
  EXPECT_EQ(torn_down, 1);
}

TEST(thread_team, no_thread_works_before_all_are_at_the_gate) {
  constexpr std::size_t size = 16; // more than the CPUs of most machines
  std::atomic<int> rounds_begun = 0;
  thread_team team(size, [](std::size_t, auto const& rest) { rest(); });
  for (int round = 1; round <= 200; ++round) {
    std::int64_t told = 0;
    auto const gate = team.run([&](std::size_t t, thread_team::round const& r) {
      ++rounds_begun;
      if (t == 0) told = r.gate_ns;
    });
    EXPECT_EQ(rounds_begun, round * static_cast<int>(size));
    EXPECT_EQ(told, gate);
  }
}

TEST(harness_cost, is_the_cost_of_two_clock_reads_and_little_more) {
  auto const cost = harness_cost_ns();
  EXPECT_GT(cost, 1);
  EXPECT_LT(cost,
            5'000); // far above any machine's clock: catches a lock, a log line or a system call in the loop
}

} // namespace
