// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/analysis/latency.hpp"
#include "orchestrator/analysis/quantile.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace plateau {
namespace {

std::vector<std::int64_t> samples(std::int64_t count) {
  std::uint64_t x = 12345;
  std::vector<std::int64_t> out;
  while (static_cast<std::int64_t>(out.size()) < count) {
    x = x * 6364136223846793005u + 1442695040888963407u;
    out.push_back(400000 + static_cast<std::int64_t>(x >> 40) % 300000);
  }
  std::ranges::sort(out);
  return out;
}

/// numpy.percentile of samples(count), and the ranks of the interval from the binomial distribution in exact fractions;
/// 0 and count + 1 are no bound.
struct golden {
  std::int64_t count;
  double q, value;
  std::int64_t low, high;
};
constexpr golden table[] = {
    {1, 0.5, 438423.0, 0, 2},       {1, 0.95, 438423.0, 0, 2},        {1, 0.99, 438423.0, 1, 2},
    {2, 0.5, 545424.5, 0, 3},       {2, 0.95, 641725.85, 1, 3},       {2, 0.99, 650285.97, 2, 3},
    {5, 0.5, 558305.0, 0, 6},       {5, 0.95, 646210.2, 4, 6},        {5, 0.99, 651182.84, 4, 6},
    {6, 0.5, 530734.0, 1, 6},       {6, 0.95, 644656.25, 4, 7},       {6, 0.99, 650872.05, 5, 7},
    {71, 0.5, 533045.0, 27, 45},    {71, 0.95, 684061.5, 63, 72},     {71, 0.99, 691634.5, 68, 72},
    {72, 0.5, 539956.0, 28, 45},    {72, 0.95, 685810.75, 64, 72},    {72, 0.99, 693937.43, 69, 73},
    {240, 0.5, 551603.0, 105, 136}, {240, 0.95, 683113.6, 221, 235},  {240, 0.99, 693954.86, 234, 241},
    {367, 0.5, 544154.0, 165, 203}, {367, 0.95, 678348.3, 340, 357},  {367, 0.99, 693704.84, 359, 368},
    {368, 0.5, 544161.5, 165, 204}, {368, 0.95, 678299.85, 341, 358}, {368, 0.99, 693695.58, 360, 368},
    {480, 0.5, 547067.5, 219, 262}, {480, 0.95, 678688.95, 446, 466}, {480, 0.99, 694368.08, 471, 480},
};

TEST(quantile, is_numpys_to_the_last_bit) {
  for (auto const& g : table) EXPECT_EQ(quantile(samples(g.count), g.q)->value, g.value) << g.count << " " << g.q;
}

TEST(quantile, has_the_interval_of_the_exact_binomial_ranks) {
  for (auto const& g : table) {
    auto const sorted = samples(g.count);
    auto const at = [&](std::int64_t rank) {
      return rank < 1 || rank > g.count ? std::nullopt : std::optional(sorted[static_cast<std::size_t>(rank - 1)]);
    };
    auto const e = *quantile(sorted, g.q);
    EXPECT_EQ(e.low, at(g.low)) << g.count << " " << g.q;
    EXPECT_EQ(e.high, at(g.high)) << g.count << " " << g.q;
    EXPECT_EQ(e.enough, e.low && e.high);
    EXPECT_EQ(e.enough, g.count >= e.samples_needed) << g.count << " " << g.q;
  }
}

TEST(quantile, says_how_many_samples_it_needs) {
  EXPECT_EQ(samples_needed(0.5), 6);
  EXPECT_EQ(samples_needed(0.95), 72);
  EXPECT_EQ(samples_needed(0.99), 368);
  EXPECT_EQ(samples_needed(0.999), 3688);
}

TEST(quantile, of_nothing_is_nothing) { EXPECT_FALSE(quantile(std::span<std::int64_t const>{}, 0.5)); }

TEST(quantile, intervals_cover_the_true_value_at_least_as_often_as_they_claim) {
  std::mt19937_64 random(3);
  constexpr int rounds = 2000;
  for (double const q : {0.5, 0.95}) {
    int covered = 0;
    for (int round = 0; round < rounds; ++round) {
      std::vector<std::int64_t> s(100);
      for (auto& x : s) x = static_cast<std::int64_t>(random() % 1'000'000);
      std::ranges::sort(s);
      auto const e = *quantile(s, q);
      auto const truth = q * 1e6;
      covered += static_cast<double>(*e.low) <= truth && truth <= static_cast<double>(*e.high);
    }
    EXPECT_GT(covered, rounds * 0.94) << q;
  }
}

TEST(quantile, takes_a_billion_samples) {
  std::int64_t const count = 1'000'000'000;
  auto const e = *quantile(
      count, [](std::int64_t k) { return k; }, 0.99);
  EXPECT_NEAR(e.value, 0.99e9, 1);
  auto const half_width = 1.959964 * std::sqrt(0.99 * 0.01 * 1e9); // normal at this size
  EXPECT_NEAR(static_cast<double>(*e.high), 0.99e9 + half_width, 5);
  EXPECT_NEAR(static_cast<double>(*e.low), 0.99e9 - half_width, 5);
}

TEST(sort_times, sorts_times_of_every_magnitude) {
  std::mt19937_64 random(4);
  for (auto const largest : {std::int64_t{1}, std::int64_t{3000}, std::int64_t{5'000'000'000}, INT64_MAX})
    for (std::size_t const count : {0u, 1u, 2u, 1000u}) {
      std::vector<std::int64_t> times(count);
      for (auto& t : times) t = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(largest));
      auto expected = times;
      std::ranges::sort(expected);
      sort_times(times);
      EXPECT_EQ(times, expected);
    }
}

TEST(nth_smallest, of_several_runs_is_that_of_the_pool) {
  std::mt19937_64 random(5);
  std::vector<std::vector<std::int64_t>> runs{{}, {}, {7}, {}};
  for (auto& run : runs)
    for (auto count = random() % 200; count > 0; --count) run.push_back(static_cast<std::int64_t>(random() % 90));
  std::vector<std::int64_t> pool;
  for (auto& run : runs) {
    std::ranges::sort(run);
    pool.insert(pool.end(), run.begin(), run.end());
  }
  std::ranges::sort(pool);
  for (std::size_t k = 0; k < pool.size(); ++k) EXPECT_EQ(nth_smallest(runs, static_cast<std::int64_t>(k)), pool[k]);
}

TEST(summarise, several_runs_as_if_they_were_one) {
  auto const all = samples(480);
  std::vector<std::vector<std::int64_t>> runs(3);
  for (std::size_t i = 0; i < all.size(); ++i) runs[i * i % 3].push_back(all[i]);
  std::vector<std::vector<std::int64_t>> const pooled{all};
  auto const a = *summarise(runs), b = *summarise(pooled);
  EXPECT_EQ(a.count, 480);
  EXPECT_EQ(a.mean, b.mean);
  EXPECT_EQ(a.min, all.front());
  EXPECT_EQ(a.max, all.back());
  for (std::size_t i = 0; i < percentiles.size(); ++i) {
    EXPECT_EQ(a.at[i].value, b.at[i].value);
    EXPECT_EQ(a.at[i].low, b.at[i].low);
    EXPECT_EQ(a.at[i].high, b.at[i].high);
  }
}

} // namespace
} // namespace plateau
