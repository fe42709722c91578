// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/analysis/growth.hpp"

#include "tests/unit/analysis_traces.hpp"

#include <gmock/gmock.h>

#include <functional>
#include <map>

namespace plateau {
namespace {

constexpr std::int64_t seed = 20260304;

std::string_view name_of(growth_outcome outcome) { return names(outcome)[static_cast<std::size_t>(outcome)].second; }

series_growth judged(trace const& values, std::string_view series = "outside_bytes") {
  auto const ranks = judge_growth(record_of({curve_of(values, series)}));
  return *std::ranges::find(ranks.at(0).series, series, &series_growth::series);
}

std::map<growth_outcome, int> count(int traces, std::function<trace()> const& next) {
  std::map<growth_outcome, int> outcomes;
  for (int i = 0; i < traces; ++i) ++outcomes[judged(next()).outcome];
  return outcomes;
}

constexpr auto growing = growth_outcome::growing;
constexpr auto inconclusive = growth_outcome::inconclusive;
constexpr auto level = growth_outcome::plateau;
constexpr auto allocated = "allocated_bytes", outside = "outside_bytes", resident = "host_resident_bytes";

// A curve of so many windows from a function of the window.
trace made(int windows, std::function<double(double)> const& bytes) {
  trace values;
  for (int i = 0; i <= windows; ++i) values.push_back(bytes(i));
  return values;
}
// The same under normal noise of a standard deviation.
trace noisy(double sd, trace values) {
  auto const noise = trace_source(seed).noise(values.size(), noise_kind::white);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] += sd * noise[i];
  return values;
}
trace in_pages(trace values) {
  for (auto& value : values) value = 4096 * std::floor(value / 4096);
  return values;
}

struct named_trace {
  std::string name;
  std::string_view series;
  trace values;
  growth_outcome outcome;
};
std::vector<named_trace> library() {
  auto const base = 300 * mib;
  auto const step = [=](double at) { return [=](double i) { return base + (i >= at ? 20 * mib : 0); }; };
  auto const stairs = [=](double until) {
    return [=](double i) { return base + 4 * mib * std::floor(std::min(i, until) / 2); };
  };
  auto const ramp = [=](double per_window) { return [=](double i) { return base + per_window * i; }; };
  auto const saw = [=](double period, double size, double drift) {
    return [=](double i) { return base + size * std::fmod(i, period) / period + drift * i; };
  };
  auto const saturating = [=](double windows) {
    return [=](double i) { return base - 50 * mib * std::exp(-i / windows); };
  };
  auto const logarithm = [=](double until) {
    return [=](double i) { return base + 10 * mib * std::log1p(std::min(i, until)); };
  };
  auto const onset = [=](double at) { return [=](double i) { return base + mib * std::max(0.0, i - at); }; };
  auto const late_plateau = [=](double i) { return base + 5 * mib * std::clamp(i - 5, 0.0, 14.0); };
  auto const warm_up_and_leak = [=](double i) { return base - 20 * mib * std::exp(-i) + mib * i; };
  auto const one_off_and_leak = [=](double i) { return base + (i >= 8 ? 30 * mib : 0) + mib * i; };
  return {
      {"constant", allocated, made(12, ramp(0)), level},
      {"constant outside", outside, made(12, ramp(0)), level},
      {"constant under noise", outside, noisy(0.1 * mib, made(12, ramp(0))), level},
      {"zero", outside, made(12, [](double) { return 0; }), level},
      {"one step, then flat", allocated, made(12, step(3)), level},
      {"one late step", allocated, made(12, step(9)), inconclusive},
      {"one step under noise", outside, noisy(0.1 * mib, made(24, step(8))), level},
      {"one late step under noise", outside, noisy(0.1 * mib, made(24, step(18))), level},
      {"staircase that ends", allocated, made(24, stairs(10)), level},
      {"staircase that ends, under noise", outside, noisy(0.1 * mib, made(24, stairs(10))), level},
      {"staircase that ends late", allocated, made(24, stairs(18)), inconclusive},
      {"staircase", allocated, made(24, stairs(24)), growing},
      {"staircase under noise", outside, noisy(0.1 * mib, made(24, stairs(24))), growing},
      {"ramp", allocated, made(12, ramp(mib)), growing},
      {"ramp of 512 bytes a window", allocated, made(12, ramp(512)), growing},
      {"ramp outside", outside, made(12, ramp(mib)), growing},
      {"ramp under noise", outside, noisy(mib, made(24, ramp(mib))), growing},
      {"ramp below the threshold", outside, noisy(1000, made(24, ramp(20'000))), level},
      {"slow ramp under ten times its step, 12 windows", outside, noisy(2 * mib, made(12, ramp(0.2 * mib))),
       inconclusive},
      {"slow ramp under ten times its step, 24 windows", outside, noisy(2 * mib, made(24, ramp(0.2 * mib))),
       inconclusive},
      {"slow ramp under ten times its step, 96 windows", outside, noisy(2 * mib, made(96, ramp(0.2 * mib))), growing},
      {"slow ramp under ten times its step, 500 windows", outside, noisy(2 * mib, made(500, ramp(0.2 * mib))), growing},
      {"saw-tooth", allocated, made(24, saw(4, 40 * mib, 0)), level},
      {"saw-tooth outside", outside, made(24, saw(8, 40 * mib, 0)), inconclusive},
      {"small saw-tooth outside", outside, made(24, saw(4, 0.5 * mib, 0)), level},
      {"saw-tooth with drift", allocated, made(24, saw(4, 4 * mib, mib)), growing},
      {"saw-tooth with drift outside", outside, made(24, saw(4, 4 * mib, mib)), growing},
      {"exponential rise that saturates", outside, noisy(0.1 * mib, made(24, saturating(2))), level},
      {"exponential rise that still rises", allocated, made(24, saturating(4)), inconclusive},
      {"exponential rise that still rises, outside", outside, noisy(0.01 * mib, made(24, saturating(5))), inconclusive},
      {"logarithmic rise that saturates", allocated, made(24, logarithm(10)), level},
      {"logarithmic rise that saturates, under noise", outside, noisy(0.1 * mib, made(24, logarithm(10))), level},
      {"late onset", allocated, made(24, onset(16)), growing},
      {"late onset under noise", outside, noisy(0.1 * mib, made(24, onset(12))), growing},
      {"late onset outside", outside, made(24, onset(14)), growing},
      {"late plateau", outside, noisy(0.1 * mib, made(24, late_plateau)), inconclusive},
      {"growth from zero", allocated, made(12, [](double i) { return mib * i; }), growing},
      {"growth from zero outside", outside, made(12, [](double i) { return mib * i; }), growing},
      {"resident set that jitters by pages", resident, in_pages(noisy(20'000, made(12, ramp(0)))), level},
      {"resident set that leaks by pages", resident, in_pages(noisy(20'000, made(24, ramp(100'000)))), growing},
      {"leak after a warm-up", allocated, made(24, warm_up_and_leak), growing},
      {"leak after a warm-up, under noise", outside, noisy(0.1 * mib, made(24, warm_up_and_leak)), growing},
      {"leak and a one-off", outside, noisy(0.1 * mib, made(24, one_off_and_leak)), growing},
      {"peak, then a leak below it", allocated, made(12, [=](double i) { return i == 2 ? 2 * base : base + mib * i; }),
       inconclusive},
      {"shrinking", allocated, made(12, ramp(-mib)), level},
      {"shrinking under noise", outside, noisy(0.1 * mib, made(12, ramp(-mib))), level},
      {"too short", outside, made(4, ramp(mib)), inconclusive},
  };
}

TEST(growth, of_each_trace_of_the_library_is_as_required) {
  for (auto const& t : library()) {
    auto const growth = judged(t.values, t.series);
    EXPECT_EQ(name_of(growth.outcome), name_of(t.outcome)) << t.name << ": " << growth.reason;
    EXPECT_EQ(growth.outcome == level, growth.plateau_from.has_value()) << t.name;
    EXPECT_EQ(growth.outcome == growing, growth.onset.has_value()) << t.name;
    EXPECT_TRUE(growth.outcome == inconclusive || !growth.windows_needed) << t.name;
  }
}

series_growth series_of(rank_growth const& rank, std::string_view name) {
  return *std::ranges::find(rank.series, name, &series_growth::series);
}

// The curves of 64 ranks whose resident sets all jitter; that of rank 17 leaks.
case_record one_of_64_leaks() {
  trace_source random(seed);
  std::vector<std::vector<memory_point>> curves;
  for (int rank = 0; rank < 64; ++rank) {
    auto values = random.noise(13, noise_kind::white);
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = 300 * mib + 40'000 * values[i] + (rank == 17 ? 0.5 * mib * static_cast<double>(i) : 0);
    curves.push_back(curve_of(values, resident));
  }
  return record_of(curves);
}

TEST(growth, of_one_rank_of_64_is_found_and_named) {
  auto const ranks = judge_growth(one_of_64_leaks());
  ASSERT_EQ(ranks.size(), 64u);
  for (auto const& rank : ranks) EXPECT_EQ(name_of(rank.outcome), rank.rank == 17 ? "GROWING" : "PLATEAU") << rank.rank;
  EXPECT_EQ(series_of(ranks[17], resident).outcome, growing);
  EXPECT_EQ(series_of(ranks[17], allocated).outcome, level);
  EXPECT_EQ(outcome_of(ranks), growing);
}

TEST(growth, among_many_noisy_ranks_takes_more_evidence_than_on_one) {
  trace_source random(seed);
  int alone = 0, among_many = 0;
  std::vector<std::vector<memory_point>> others;
  for (int rank = 1; rank < 64; ++rank) {
    auto values = random.noise(25, noise_kind::white);
    for (auto& value : values) value = 300 * mib + mib * value;
    others.push_back(curve_of(values, resident));
  }
  for (int i = 0; i < 100; ++i) {
    auto curves = others;
    curves.insert(curves.begin(), curve_of(random.leak(24, 10, 4, noise_kind::white), resident));
    alone += judge_growth(record_of({curves[0]}))[0].outcome == growing;
    among_many += judge_growth(record_of(curves))[0].outcome == growing;
  }
  EXPECT_GT(alone, 70);
  EXPECT_LT(among_many, alone - 20);
}

TEST(growth, is_found_although_some_points_are_missing) {
  for (auto const* series : {allocated, outside}) {
    auto points = curve_of(made(24, [](double i) { return 300 * mib + mib * i; }), series);
    for (auto const missing : {20, 13, 12, 5}) points.erase(points.begin() + missing);
    auto const growth = series_of(judge_growth(record_of({points}))[0], series);
    EXPECT_EQ(growth.outcome, growing) << growth.reason;
    EXPECT_NEAR(growth.bytes_per_1000_requests, 10 * mib, 1) << series;
  }
}

TEST(growth, says_when_it_began) {
  auto const late = [](double at) {
    return made(24, [=](double i) { return 300 * mib + mib * std::max(0.0, i - at); });
  };
  EXPECT_EQ(judged(late(16), allocated).onset, 17);
  EXPECT_EQ(judged(late(10), outside).onset, 11);
  EXPECT_EQ(judged(late(0), allocated).onset, 1);
  EXPECT_NEAR(static_cast<double>(*judged(noisy(0.2 * mib, late(10)), outside).onset), 11, 2);
}

TEST(growth, names_a_step_that_it_does_not_count) {
  auto const growth = judged(noisy(0.05 * mib, made(24, [](double i) { return (i >= 18 ? 320 : 300) * mib; })));
  EXPECT_EQ(growth.plateau_from, 18);
  EXPECT_THAT(growth.reason, testing::HasSubstr("a single step of 20 MiB in window 18 is not counted"));
}

TEST(growth, of_an_allocator_series_ignores_what_grew_before_a_long_pause) {
  auto const values = made(24, [](double i) { return 300 * mib + mib * (std::min(i, 3.0) + std::max(0.0, i - 14)); });
  EXPECT_EQ(judged(values, allocated).onset, 15);
}

TEST(growth, says_how_long_until_the_device_is_full) {
  auto record = record_of({curve_of(made(24, [](double i) { return 100 * mib + mib * i; }), allocated)});
  auto const growth = series_of(judge_growth(record)[0], allocated);
  // One MiB a window of one second; 80 GiB less 124 MiB and the 300 MiB that are not the allocator's.
  EXPECT_NEAR(*growth.seconds_to_full, 80 * 1024 - 124 - 300, 1e-6);
  EXPECT_EQ(growth.bytes_per_1000_requests, 10 * mib);
  EXPECT_FALSE(growth.low);
  record.by_rank[0]->device.reset();
  EXPECT_FALSE(series_of(judge_growth(record)[0], allocated).seconds_to_full);
}

TEST(growth, of_the_resident_set_has_a_time_only_where_the_machines_memory_is_known) {
  auto record = record_of({curve_of(made(24, [](double i) { return 300 * mib + mib * i; }), resident)});
  record.by_rank[0]->device->kind = "cuda";
  EXPECT_FALSE(series_of(judge_growth(record)[0], resident).seconds_to_full);
  record.by_rank[0]->device->kind = "cpu";
  EXPECT_NEAR(*series_of(judge_growth(record)[0], resident).seconds_to_full, 80 * 1024 - 324, 1e-6);
}

TEST(growth, of_a_noisy_series_has_an_interval_around_its_slope) {
  auto const growth = judged(noisy(mib, made(24, [](double i) { return 300 * mib + mib * i; })));
  EXPECT_LT(*growth.low, 10 * mib);
  EXPECT_GT(*growth.high, 10 * mib);
  EXPECT_GT(*growth.low, 5 * mib);
}

TEST(growth, of_a_soak_that_cannot_tell_says_how_many_windows_it_takes) {
  auto const steps_at = [](std::vector<double> at) {
    return made(12, [=](double i) {
      return 300 * mib + mib * static_cast<double>(std::ranges::count_if(at, [=](double a) { return i >= a; }));
    });
  };
  EXPECT_EQ(judged(steps_at({9}), allocated).windows_needed, 48);
  EXPECT_EQ(judged(steps_at({8, 11}), allocated).windows_needed, 24);
  EXPECT_EQ(judged(made(3, [](double) { return 1; }), allocated).windows_needed, 12);
  auto const hidden = [](int windows) {
    return noisy(2 * mib, made(windows, [](double i) { return 300 * mib + 0.2 * mib * i; }));
  };
  auto const needed = judged(hidden(24)).windows_needed;
  ASSERT_TRUE(needed);
  EXPECT_EQ(judged(hidden(static_cast<int>(*needed))).outcome, growing) << *needed;
  auto const wild = made(12, [](double i) { return 1e10 + (std::fmod(i, 2) > 0 ? 1e9 : 0); });
  EXPECT_FALSE(judged(wild).windows_needed); // more than anyone would run
}

TEST(growth, of_a_case_that_ran_out_of_memory_is_judged_by_the_curve_until_then) {
  auto record = record_of({curve_of(made(12, [](double i) { return 300 * mib + mib * i; }), allocated)});
  auto& result = *record.by_rank[0];
  result.soak_so_far = result.measured->soak;
  result.measured.reset();
  result.status = case_status::out_of_memory;
  EXPECT_EQ(outcome_of(judge_growth(record)), growing);
}

TEST(growth, of_a_rank_without_a_curve_is_not_judged) {
  auto record = record_of({curve_of(made(12, [](double) { return 300 * mib; }), allocated), {}});
  record.by_rank.emplace_back();
  auto const ranks = judge_growth(record);
  ASSERT_EQ(ranks.size(), 1u);
  EXPECT_EQ(ranks[0].rank, 0);
  EXPECT_FALSE(outcome_of({}));
}

TEST(growth, of_a_curve_without_requests_is_inconclusive) {
  auto points = curve_of(made(12, [](double i) { return i; }), outside);
  for (auto& point : points) point.requests = 0;
  EXPECT_EQ(outcome_of(judge_growth(record_of({points}))), inconclusive);
}

TEST(growth, of_a_case_is_the_worst_of_its_ranks) {
  std::vector<rank_growth> ranks{{0, level, {}}, {1, inconclusive, {}}};
  EXPECT_EQ(outcome_of(ranks), inconclusive);
  ranks.push_back({2, growing, {}});
  EXPECT_EQ(outcome_of(ranks), growing);
}

TEST(practical_threshold, is_one_mebibyte_or_a_thousandth_of_the_level) {
  EXPECT_EQ(practical_threshold(0), mib);
  EXPECT_EQ(practical_threshold(1000 * mib), mib);
  EXPECT_EQ(practical_threshold(50'000 * mib), 50 * mib);
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
