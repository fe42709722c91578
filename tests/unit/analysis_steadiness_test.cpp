// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/analysis/steadiness.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <functional>
#include <random>

namespace plateau {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// How a made-up latency comes about, around 400 us: lognormal, its logarithm autocorrelated from request to request;
/// some requests are much slower; some take another path.
struct noise_model {
  std::size_t threads = 4, requests = 240;
  double sigma = 0.05;               ///< of the logarithm
  double correlation = 0;            ///< of a thread's successive requests
  bool shared = false;               ///< all threads are slow together
  double outliers = 0.01;            ///< share of requests that take up to 50 times as long
  double other_path = 0, factor = 1; ///< share of requests that take `factor` times as long
};

using course = std::function<double(double)>; ///< the level, relative, at a share of the window

measurement trace(noise_model const& n, course const& level, std::mt19937_64& random) {
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform;
  auto const correlated = [&] {
    std::vector<double> out;
    double x = normal(random);
    while (out.size() < n.requests) {
      out.push_back(x);
      x = n.correlation * x + std::sqrt(1 - n.correlation * n.correlation) * normal(random);
    }
    return out;
  };
  measurement m;
  auto const common = correlated();
  for (std::size_t thread = 0; thread < n.threads; ++thread) {
    auto const own = n.shared ? common : correlated();
    auto& latencies = m.latency_ns.emplace_back();
    auto& starts = m.start_ns.emplace_back();
    std::int64_t now = 0;
    for (std::size_t i = 0; i < n.requests; ++i) {
      auto ns = 400'000 * std::exp(n.sigma * own[i]) * level(static_cast<double>(i) / static_cast<double>(n.requests));
      if (uniform(random) < n.outliers) ns *= 1 + 50 * uniform(random);
      if (uniform(random) < n.other_path) ns *= n.factor;
      starts.push_back(now);
      latencies.push_back(static_cast<std::int64_t>(ns));
      now += latencies.back();
    }
  }
  return m;
}

double flat(double) { return 1; }
course shift(double at, double change) {
  return [=](double t) { return t < at ? 1 : 1 + change; };
}
course drift(double change) {
  return [=](double t) { return 1 + change * t; };
}

steadiness judged(noise_model const& n, course const& level, std::uint64_t seed = 1) {
  std::mt19937_64 random(seed);
  return *steadiness_of(trace(n, level, random));
}

TEST(steadiness, latencies_that_are_all_equal_are_steady) {
  auto const s = judged({4, 240, 0, 0, false, 0}, flat);
  EXPECT_EQ(s.course, latency_course::steady);
  EXPECT_EQ(s.change, 0);
  EXPECT_EQ(s.detectable, notable_change);
}

TEST(steadiness, names_a_shift_its_size_place_and_time) {
  noise_model n;
  n.outliers = 0;
  auto const s = judged(n, shift(0.6, 0.2));
  EXPECT_EQ(s.course, latency_course::shift);
  EXPECT_NEAR(s.change, 0.2, 0.03);
  EXPECT_NEAR(s.from, 0.6, 0.04);
  EXPECT_EQ(s.to, 1);
  EXPECT_NEAR(static_cast<double>(s.from_ns), s.from * 240 * 400'000, 2e6);
}

TEST(steadiness, names_a_fall_as_a_fall) { EXPECT_NEAR(judged({}, shift(0.5, -0.2)).change, -0.2, 0.03); }

TEST(steadiness, names_a_drift_over_the_whole_window) {
  auto const s = judged({}, drift(0.3));
  EXPECT_EQ(s.course, latency_course::drift);
  EXPECT_NEAR(s.change, 0.3, 0.04);
}

TEST(steadiness, names_a_slow_while_that_came_and_went) {
  auto const s = judged({}, [](double t) { return t >= 0.3 && t < 0.5 ? 1.25 : 1.0; });
  EXPECT_EQ(s.course, latency_course::episode);
  EXPECT_NEAR(s.change, 0.25, 0.03);
  EXPECT_NEAR(s.from, 0.3, 0.04);
  EXPECT_NEAR(s.to, 0.5, 0.04);
}

TEST(steadiness, names_a_warm_up_that_is_not_over) {
  auto const s = judged({}, [](double t) { return 1 + 0.4 * std::exp(-t / 0.1); });
  EXPECT_EQ(s.course, latency_course::settling);
  EXPECT_LT(s.change, -0.15);
}

TEST(steadiness, a_thread_slower_than_the_others_is_no_change) {
  std::mt19937_64 random(1);
  auto m = trace({}, flat, random);
  for (auto& ns : m.latency_ns[2]) ns = ns * 3 / 2;
  EXPECT_EQ(steadiness_of(m)->course, latency_course::steady);
}

TEST(steadiness, a_stall_of_all_threads_is_no_change) {
  std::mt19937_64 random(1);
  auto m = trace({}, flat, random);
  for (auto& thread : m.latency_ns) thread[100] = thread[101] = 1'000'000'000;
  EXPECT_EQ(steadiness_of(m)->course, latency_course::steady);
}

TEST(steadiness, a_change_too_small_to_matter_is_none_however_sure) {
  EXPECT_EQ(judged({4, 20'000}, shift(0.5, 0.03)).course, latency_course::steady);
}

TEST(steadiness, says_how_small_a_change_it_would_have_found) {
  EXPECT_LT(judged({4, 240, 0.05}, flat).detectable, 0.06);
  EXPECT_GT(judged({4, 240, 0.5}, flat).detectable, 0.15);
}

TEST(steadiness, needs_30_requests_per_thread_and_240_in_all) {
  EXPECT_TRUE(steadiness_of([] {
    std::mt19937_64 r;
    return trace({8, 30}, flat, r);
  }()));
  EXPECT_FALSE(steadiness_of([] {
    std::mt19937_64 r;
    return trace({9, 29}, flat, r);
  }()));
  EXPECT_FALSE(steadiness_of([] {
    std::mt19937_64 r;
    return trace({2, 119}, flat, r);
  }()));
  EXPECT_FALSE(steadiness_of({}));
}

// Lognormal tails up to sigma 0.3, correlation up to 0.5, alone or of all threads together, outliers, two paths.
TEST(steadiness, raises_at_most_2_alarms_on_2000_steady_traces) {
  std::mt19937_64 random(2026);
  std::uniform_real_distribution<double> uniform;
  int alarms = 0;
  for (int i = 0; i < 2000; ++i) {
    noise_model n;
    n.threads = 2 + random() % 7;
    n.requests = 120 + random() % 400;
    n.sigma = 0.02 + 0.28 * uniform(random);
    n.correlation = 0.5 * uniform(random);
    n.shared = random() % 2 == 0;
    n.outliers = 0.03 * uniform(random);
    if (random() % 3 == 0) {
      n.other_path = 0.5 * uniform(random);
      n.factor = 1 + uniform(random);
    }
    alarms += steadiness_of(trace(n, flat, random))->course != latency_course::steady;
  }
  EXPECT_LE(alarms, 2);
}

// A correlation of 0.8, common to all threads, over as few as 120 requests: blocks resemble their neighbours.
TEST(steadiness, seldom_takes_noise_that_is_slower_than_its_blocks_for_a_change) {
  std::mt19937_64 random(2026);
  int alarms = 0;
  for (int i = 0; i < 1000; ++i)
    alarms += steadiness_of(trace({4, 120, 0.15, 0.8, true}, flat, random))->course != latency_course::steady;
  EXPECT_LE(alarms, 20);
}

// Ordinary noise: sigma up to 0.05, correlation up to 0.3, 1% outliers; 960 requests.
TEST(steadiness, finds_at_least_1990_of_2000_changes_of_ten_percent) {
  std::mt19937_64 random(2026);
  std::uniform_real_distribution<double> uniform;
  int found = 0;
  for (int i = 0; i < 2000; ++i) {
    noise_model n;
    n.sigma = 0.02 + 0.03 * uniform(random);
    n.correlation = 0.3 * uniform(random);
    auto const change = i % 4 < 2 ? 0.1 : -0.1;
    auto const level = i % 2 == 0 ? drift(change) : shift(0.15 + 0.7 * uniform(random), change);
    auto const s = *steadiness_of(trace(n, level, random));
    found += s.course != latency_course::steady && s.change * change > 0;
  }
  EXPECT_GE(found, 1990);
}

TEST(unsteady, is_one_finding_that_names_the_ranks_and_tells_the_worst) {
  steadiness steady, small, large;
  small.course = large.course = latency_course::shift;
  small.change = 0.1;
  large.change = 0.5;
  large.from = 0.4;
  auto const f = *unsteady(std::array<std::optional<steadiness>, 5>{steady, small, std::nullopt, large, steady});
  EXPECT_EQ(f.check, "unsteady");
  EXPECT_THAT(f.ranks, ElementsAre(1, 3));
  EXPECT_EQ(f.reason, "rank 3: latency rose by 50% after 40% of the timed window; unsteady on ranks 1,3");
  EXPECT_EQ(f.evidence["ranks"].size(), 2u);
  EXPECT_EQ(f.evidence["ranks"][1]["course"], "shift");
}

TEST(unsteady, is_nothing_when_all_ranks_are_steady_or_cannot_be_judged) {
  EXPECT_FALSE(unsteady(std::array<std::optional<steadiness>, 2>{steadiness{}, std::nullopt}));
}

TEST(unsteady, says_when_the_warm_up_was_not_over) {
  steadiness s;
  s.course = latency_course::shift;
  s.change = -0.2;
  s.from = 0.1;
  EXPECT_THAT(unsteady(std::array{std::optional(s)})->reason, HasSubstr("warm-up was not over"));
  s.from = 0.8;
  EXPECT_THAT(unsteady(std::array{std::optional(s)})->reason, Not(HasSubstr("warm-up")));
}

} // namespace
} // namespace plateau
