// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/analysis/quantile.hpp"
#include "orchestrator/analysis/trend.hpp"
#include "schemas/json.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>

namespace plateau {
namespace {

using testing::DoubleEq;
using testing::ElementsAre;

json golden(std::string const& name) {
  std::ifstream file(PLATEAU_SOURCE_DIR "/tests/data/" + name);
  return json::parse(file);
}

void expect_close(double ours, double theirs, std::string const& what) {
  EXPECT_NEAR(ours, theirs, 1e-9 * std::abs(theirs)) << what;
}
void expect_close(std::optional<double> ours, json const& theirs, std::string const& what) {
  ASSERT_EQ(ours.has_value(), !theirs.is_null()) << what;
  if (ours) expect_close(*ours, theirs.get<double>(), what);
}

// pymannkendall takes p from 1 - a probability near 1, which leaves it an absolute precision only.
constexpr double p_precision = 1e-15;

TEST(mann_kendall, is_pymannkendalls_to_1e_9) {
  for (auto const& g : golden("golden_trend.json")) {
    auto const name = g["name"].get<std::string>();
    auto const test = mann_kendall(g["y"].get<std::vector<double>>());
    EXPECT_EQ(test.s, g["s"].get<std::int64_t>()) << name;
    expect_close(test.variance, g["variance"].get<double>(), name);
    expect_close(test.z, g["z"].get<double>(), name);
    auto const p = g["p_two_sided"].get<double>();
    EXPECT_NEAR(test.p_two_sided, p, 1e-9 * p + p_precision) << name;
    expect_close(test.p_rising, g["p_rising"].get<double>(), name);
  }
}

TEST(mann_kendall, with_hamed_and_raos_variance_is_pymannkendalls_to_1e_9) {
  int compared = 0;
  for (auto const& g : golden("golden_trend.json")) {
    auto const name = g["name"].get<std::string>();
    auto const y = g["y"].get<std::vector<double>>();
    auto const factor = hamed_rao_factor(y);
    if (g["hamed_rao"].is_null()) { // a constant: they have no number
      EXPECT_EQ(factor, 1) << name;
      continue;
    }
    auto const& theirs = g["hamed_rao"];
    expect_close(factor, theirs["factor"].get<double>(), name);
    if (theirs["z"].is_null()) continue; // a negative variance
    auto const test = mann_kendall(y, factor);
    expect_close(test.z, theirs["z"].get<double>(), name);
    auto const p = theirs["p_two_sided"].get<double>();
    EXPECT_NEAR(test.p_two_sided, p, 1e-9 * p + p_precision) << name;
    ++compared;
  }
  EXPECT_GT(compared, 50);
}

TEST(chance_of_rise, is_scipys_exact_probability_to_1e_9) {
  int compared = 0;
  for (auto const& g : golden("golden_trend.json")) {
    if (g["p_exact"].is_null()) continue;
    auto const y = g["y"].get<std::vector<double>>();
    auto const name = g["name"].get<std::string>();
    expect_close(chance_of_rise(mann_kendall(y).z, y.size()), g["p_exact"].get<double>(), name);
    ++compared;
  }
  EXPECT_GT(compared, 20);
  EXPECT_EQ(chance_of_rise(100, 4), 1.0 / 24); // no greater z is possible: one permutation of 24
  EXPECT_NEAR(chance_of_rise(2, 31), chance_of_rise(2, 30), 0.003);
}

TEST(mann_kendall, of_a_constant_says_that_there_is_no_trend) {
  auto const test = mann_kendall(std::vector<double>(10, 3.0));
  EXPECT_EQ(test.z, 0);
  EXPECT_EQ(test.p_two_sided, 1);
  EXPECT_EQ(test.p_rising, 0.5);
}

TEST(theil_sen, is_scipys_to_1e_9_also_for_uneven_and_equal_x) {
  int compared = 0;
  for (auto const& g : golden("golden_trend.json"))
    for (auto const& theirs : g["theil_sen"]) {
      auto const name = g["name"].get<std::string>();
      auto const ours = theil_sen(theirs["x"].get<std::vector<double>>(), g["y"].get<std::vector<double>>());
      ASSERT_TRUE(ours) << name;
      expect_close(ours->slope, theirs["slope"].get<double>(), name);
      expect_close(ours->low, theirs["low"], name);
      expect_close(ours->high, theirs["high"], name);
      ++compared;
    }
  EXPECT_GT(compared, 200);
}

TEST(theil_sen, of_points_of_one_x_is_nothing) {
  std::vector<double> const x{3, 3, 3}, y{1, 2, 3};
  EXPECT_FALSE(theil_sen(x, y));
  EXPECT_FALSE(theil_sen({}, {}));
}

TEST(autoregression_factor, is_one_for_alternating_values_and_great_for_a_slow_wave) {
  std::vector<double> alternating, wave;
  for (int i = 0; i < 40; ++i) {
    alternating.push_back(i % 2);
    wave.push_back(std::sin(i / 4.0));
  }
  EXPECT_EQ(autoregression_factor(alternating), 1);
  EXPECT_GT(autoregression_factor(wave), 5);
  EXPECT_EQ(autoregression_factor(std::vector<double>(9, 1.0)), 1);
}

TEST(holm, multiplies_the_least_by_their_number_and_never_falls) {
  std::vector<double> const p{0.01, 0.04, 0.03, 0.005};
  EXPECT_THAT(holm(p), ElementsAre(DoubleEq(0.03), DoubleEq(0.06), DoubleEq(0.06), DoubleEq(0.02)));
  EXPECT_THAT(holm(std::vector<double>{0.6, 0.5}), ElementsAre(1, 1));
  EXPECT_TRUE(holm({}).empty());
}

TEST(quantile, is_numpys_and_its_interval_has_the_ranks_of_scipys_binomial) {
  for (auto const& g : golden("golden_quantile.json")) {
    auto state = g["seed"].get<std::uint64_t>();
    std::vector<std::int64_t> samples;
    for (auto count = g["count"].get<std::int64_t>(); count > 0; --count) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      samples.push_back(400000 + static_cast<std::int64_t>((state >> 32) * 300000 >> 32));
    }
    std::ranges::sort(samples);
    auto const where = g.dump();
    auto const ours = *quantile(samples, g["q"].get<double>());
    EXPECT_EQ(ours.value, g["value"].get<double>()) << where;
    auto const at = [&](json const& rank) {
      auto const k = rank.get<std::int64_t>() - 1;
      return k < 0 || k >= std::ssize(samples) ? std::nullopt : std::optional(samples[static_cast<std::size_t>(k)]);
    };
    EXPECT_EQ(ours.low, at(g["low_rank"])) << where;
    EXPECT_EQ(ours.high, at(g["high_rank"])) << where;
  }
}

} // namespace
} // namespace plateau
