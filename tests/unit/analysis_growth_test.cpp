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
  auto const late_onset = [=](double windows, double last) {
    return [=](double i) { return base + 100 * mib * std::max(0.0, i - (windows - last)); };
  };
  auto const dip = [=](double per_window, double size) {
    return [=](double i) { return base + per_window * i - (i == 9 ? size : 0); };
  };
  auto const phased = [=](double period, double phase) {
    return [=](double i) { return base + 64 * mib * std::fmod(i / period + phase, 1); };
  };
  auto const wobble = [=](double i) { return base + 7 * mib * std::fmod(i, 4) + 512 * std::fmod(i * 6, 11); };
  auto const creep = [=](double i) { return base + 4096 * ((i >= 1) + (i >= 2) + (i >= 8) + (i >= 11)); };
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
      {"ramp below the threshold", outside, noisy(1000, made(24, ramp(20'000))), inconclusive},
      {"ramp below the threshold, under noise", outside, noisy(0.1 * mib, made(24, ramp(10'000))), level},
      {"leak of 4 KiB every 20 ms for 4 seconds", resident, in_pages(noisy(4096, made(12, ramp(67'000)))),
       inconclusive},
      {"resident set that creeps by single pages", resident, made(12, creep), level},
      {"slow ramp under ten times its step, 12 windows", outside, noisy(2 * mib, made(12, ramp(0.2 * mib))),
       inconclusive},
      {"slow ramp under ten times its step, 24 windows", outside, noisy(2 * mib, made(24, ramp(0.2 * mib))),
       inconclusive},
      {"slow ramp under ten times its step, 96 windows", outside, noisy(2 * mib, made(96, ramp(0.2 * mib))), growing},
      {"slow ramp under ten times its step, 500 windows", outside, noisy(2 * mib, made(500, ramp(0.2 * mib))), growing},
      {"saw-tooth", allocated, made(24, saw(4, 40 * mib, 0)), level},
      {"leak with a dip", allocated, made(12, dip(4096, 4608)), growing},
      {"leak with a dip of many windows' rise", allocated, made(12, dip(4096, 20'000)), inconclusive},
      {"leak with a small saw-tooth", allocated, made(12, saw(3, 192 * 1024, 40'000)), growing},
      {"leak much slower than its saw-tooth", allocated, made(12, saw(3, 192 * 1024, 1024)), inconclusive},
      {"leak much slower than its saw-tooth, below an early peak", allocated,
       made(24, [=](double i) { return i == 2 ? 2 * base : saw(3, 192 * 1024, 1024)(i); }), inconclusive},
      {"leak under a saw-tooth of half of the soak", allocated,
       made(24, [=](double i) { return phased(14.4, 0.05)(i) + 0.3 * mib * i; }), inconclusive},
      {"dip, then a higher level", allocated,
       made(12, [=](double i) { return base + (i == 9  ? -mib
                                               : i > 9 ? mib
                                                       : 0); }), inconclusive},
      {"spike", allocated, made(12, [=](double i) { return base + (i == 9 ? mib : 0); }), level},
      {"saw-tooth that never takes a value twice", allocated, made(24, wobble), level},
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
      {"leak in the last 2 of 24 windows", outside, noisy(20'000, made(24, late_onset(24, 2))), inconclusive},
      {"leak in the last 3 of 36 windows", outside, noisy(20'000, made(36, late_onset(36, 3))), inconclusive},
      {"leak in the last 4 of 48 windows", outside, noisy(20'000, made(48, late_onset(48, 4))), inconclusive},
      {"leak in the last 4 of 64 windows", outside, noisy(20'000, made(64, late_onset(64, 4))), inconclusive},
      {"leak in the last 20 of 1000 windows", outside, noisy(20'000, made(1000, late_onset(1000, 20))), inconclusive},
      {"one step in the last quarter", outside, noisy(0.1 * mib, made(24, step(19))), inconclusive},
      {"garbage collected after half of the soak", outside, made(24, phased(20, 0.4)), inconclusive},
      {"garbage collected once, long ago", outside, made(24, phased(23, 0.8)), inconclusive},
      {"garbage collected at the very end", outside, made(24, phased(24, 0)), inconclusive},
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

// So many ranks of one host, each on a device of its own, or all on its CPU.
std::vector<rank_info> on_one_host(std::int64_t ranks, bool cpu) {
  std::vector<rank_info> infos(static_cast<std::size_t>(ranks));
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    auto& info = infos[static_cast<std::size_t>(rank)];
    info.rank = rank;
    info.host_id = "a";
    info.device = device_info{};
    if (!cpu) info.device->uuid = "GPU-" + std::to_string(rank);
  }
  return infos;
}

TEST(growth, says_how_long_until_the_device_is_full) {
  auto record = record_of({curve_of(made(24, [](double i) { return 100 * mib + mib * i; }), allocated)});
  auto const ranks = on_one_host(1, false);
  auto const growth = series_of(judge_growth(record, ranks)[0], allocated);
  // One MiB a window of one second; 80 GiB less 124 MiB and the 300 MiB that are not the allocator's.
  EXPECT_NEAR(*growth.seconds_to_full, 80 * 1024 - 124 - 300, 1e-6);
  EXPECT_THAT(growth.reason, testing::HasSubstr("; full in 22.6 h at this rate"));
  EXPECT_EQ(growth.bytes_per_1000_requests, 10 * mib);
  EXPECT_FALSE(growth.low);
  record.by_rank[0]->device.reset();
  EXPECT_FALSE(series_of(judge_growth(record, ranks)[0], allocated).seconds_to_full);
}

TEST(growth, of_the_resident_set_has_a_time_only_where_the_machines_memory_is_known) {
  auto record = record_of({curve_of(made(24, [](double i) { return 300 * mib + mib * i; }), resident)});
  record.by_rank[0]->device->kind = "cuda";
  EXPECT_FALSE(series_of(judge_growth(record, on_one_host(1, false))[0], resident).seconds_to_full);
  record.by_rank[0]->device->kind = "cpu";
  EXPECT_NEAR(*series_of(judge_growth(record, on_one_host(1, true))[0], resident).seconds_to_full, 80 * 1024 - 324,
              1e-6);
}

TEST(growth, of_ranks_that_share_a_machine_fills_it_together) {
  auto const leak = [](double per_window) {
    return curve_of(made(24, [=](double i) { return 300 * mib + per_window * i; }), resident);
  };
  auto record = record_of({leak(mib), leak(2 * mib), leak(0)});
  for (auto& result : record.by_rank) result->device->kind = "cpu";
  auto ranks = on_one_host(3, true);
  // Three MiB a second; 80 GiB less 324, 348 and 300 MiB.
  auto const together = (80 * 1024 - 324 - 348 - 300) / 3.0;
  EXPECT_NEAR(*series_of(judge_growth(record, ranks)[0], resident).seconds_to_full, together, 1e-6);
  EXPECT_NEAR(*series_of(judge_growth(record, ranks)[1], resident).seconds_to_full, together, 1e-6);
  ranks[0].host_id = "b";
  EXPECT_NEAR(*series_of(judge_growth(record, ranks)[0], resident).seconds_to_full, 80 * 1024 - 324, 1e-6);
  EXPECT_FALSE(series_of(judge_growth(record)[0], resident).seconds_to_full); // who shares is not known
}

TEST(growth, on_a_gpu_that_ranks_share_has_no_time_until_full) {
  auto const leak = curve_of(made(24, [](double i) { return 100 * mib + mib * i; }), allocated);
  auto record = record_of({leak, leak});
  for (auto& result : record.by_rank) result->device->kind = "cuda";
  auto ranks = on_one_host(2, false);
  EXPECT_TRUE(series_of(judge_growth(record, ranks)[0], allocated).seconds_to_full);
  ranks[1].device->uuid = ranks[0].device->uuid;
  EXPECT_FALSE(series_of(judge_growth(record, ranks)[0], allocated).seconds_to_full);
}

TEST(growth, is_not_judged_by_counters_that_cannot_tell) {
  auto record = record_of({curve_of(made(12, [](double) { return 300 * mib; }), resident)});
  auto& m = *record.by_rank[0]->measured;
  m.counters_unavailable = "caching is off";
  for (auto& point : m.soak) point.allocator = {};
  auto const ranks = judge_growth(record);
  ASSERT_EQ(ranks[0].series.size(), 2u);
  EXPECT_EQ(ranks[0].series[0].series, outside);
  EXPECT_EQ(ranks[0].series[1].series, resident);
  EXPECT_EQ(ranks[0].outcome, level);
}

TEST(growth, of_a_plateau_says_which_rate_it_cannot_exclude) {
  auto const constant = judged(made(12, [](double) { return 300 * mib; }), resident);
  // A page in 12 windows of 100 requests.
  EXPECT_THAT(constant.reason, testing::HasSubstr("up to 3.33 KiB per 1000 requests is not excluded"));
  auto const under_noise = judged(noisy(0.1 * mib, made(24, [](double) { return 300 * mib; })));
  EXPECT_EQ(under_noise.outcome, level);
  EXPECT_THAT(under_noise.reason, testing::ContainsRegex("up to .* per 1000 requests is not excluded"));
  EXPECT_THAT(judged(made(12, [](double) { return 300 * mib; }), allocated).reason,
              testing::Not(testing::HasSubstr("excluded")));
}

TEST(growth, too_small_yet_to_count_is_found_after_the_windows_that_it_asks_for) {
  auto const leak = [](int windows) {
    return in_pages(noisy(4096, made(windows, [](double i) { return 300 * mib + 67'000 * i; })));
  };
  auto const needed = judged(leak(12), resident).windows_needed;
  ASSERT_TRUE(needed);
  EXPECT_EQ(judged(leak(static_cast<int>(*needed)), resident).outcome, growing) << *needed;
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

TEST(growth_generator, of_a_saw_tooth_as_long_as_the_soak_is_hardly_ever_growing) {
  trace_source random(seed);
  for (auto const* series : {allocated, outside}) {
    int found = 0;
    for (int i = 0; i < 1000; ++i) {
      auto const windows = static_cast<int>(random.whole(12, 48));
      auto const period = windows * random.uniform(0.5, 1), phase = random.uniform(0, 1);
      auto const saw = [=](double at) { return 300 * mib + 64 * mib * std::fmod(at / period + phase, 1); };
      found += judged(made(windows, saw), series).outcome == growing;
    }
    EXPECT_LE(found, 1) << series;
  }
}

TEST(growth_generator, of_an_exact_leak_with_a_dip_is_never_a_plateau) {
  trace_source random(seed);
  for (int i = 0; i < 1000; ++i) {
    auto const windows = static_cast<int>(random.whole(12, 48));
    auto const rate = 512 * static_cast<double>(random.whole(1, 100)), dip = rate * random.uniform(1, 3);
    auto const at = static_cast<double>(random.whole(windows / 2, windows - 1));
    auto const leak = [=](double w) { return 50 * mib + rate * w - (w == at ? dip : 0); };
    EXPECT_NE(judged(made(windows, leak), allocated).outcome, level)
        << windows << ' ' << rate << ' ' << dip << ' ' << at;
  }
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
