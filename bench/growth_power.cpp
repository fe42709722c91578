// SPDX-License-Identifier: Apache-2.0
// What the judgement of growth finds and what it mistakes, on random memory curves of a noisy series: the figures of
// docs/measurement.md. Prints how many of 40,000 healthy and leaking curves are judged how, and the least leak that is
// GROWING in at least 95% of 500 curves, for several sizes of noise and lengths of the soak.
#include "tests/unit/analysis_traces.hpp"

#include <array>
#include <cstdio>
#include <functional>
#include <map>

namespace {

using namespace plateau;

using outcomes = std::map<growth_outcome, int>;

outcomes judge(int curves, std::function<trace()> const& next) {
  outcomes count;
  for (int i = 0; i < curves; ++i) {
    auto const ranks = judge_growth(record_of({curve_of(next(), "outside_bytes")}));
    ++count[outcome_of(ranks).value()];
  }
  return count;
}

void print_outcomes(char const* what, std::function<trace(trace_source&)> const& next) {
  trace_source random(1);
  auto count = judge(40'000, [&] { return next(random); });
  std::printf("%-55s PLATEAU %5d  INCONCLUSIVE %5d  GROWING %5d\n", what, count[growth_outcome::plateau],
              count[growth_outcome::inconclusive], count[growth_outcome::growing]);
}

// In thresholds over the soak, under normal noise of a standard deviation of `noise` thresholds.
double least_found(std::int64_t windows, double noise) {
  constexpr int curves = 500;
  for (double const leak : {1.0,  1.25, 1.5,  2.0,  2.5,  3.0,  4.0,  5.0,  6.0,  7.0, 8.0,
                            10.0, 12.0, 16.0, 20.0, 25.0, 32.0, 40.0, 50.0, 64.0, 80.0}) {
    trace_source random(1);
    auto const noise_windows = noise / leak * static_cast<double>(windows);
    auto count = judge(curves, [&] { return random.leak(windows, leak, noise_windows, noise_kind::white); });
    if (count[growth_outcome::growing] >= 0.95 * curves) return leak;
  }
  return INFINITY;
}

} // namespace

int main() {
  print_outcomes("healthy", [](auto& random) { return random.healthy(); });
  for (auto const& [name, kind] : {std::pair{"normal", noise_kind::white},
                                   {"autoregressive", noise_kind::autoregressive},
                                   {"heavy-tailed", noise_kind::heavy_tailed}}) {
    auto const what = std::string("leak of 2 to 20 thresholds, ") + name + " noise";
    print_outcomes(what.c_str(), [&](auto& random) {
      return random.leak(24, random.log_uniform(2, 20), random.uniform(0, 3), kind);
    });
  }
  print_outcomes("the same, any noise of 3 to 100 windows' rise", [](auto& random) {
    return random.leak(24, random.log_uniform(2, 20), random.log_uniform(3, 100), random.any_noise());
  });
  constexpr std::array<std::int64_t, 4> lengths{6, 12, 24, 48};
  std::printf("\n| noise, thresholds |");
  for (auto const windows : lengths) std::printf(" %d windows |", static_cast<int>(windows));
  std::printf("\n|---|---|---|---|---|\n");
  for (double const noise : {0.0, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0}) {
    std::printf("| %g |", noise);
    for (auto const windows : lengths) std::printf(" %g |", least_found(windows, noise));
    std::printf("\n");
  }
}
