// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/analysis/steadiness.hpp"

#include "orchestrator/analysis/outcome.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace plateau {

namespace {

constexpr std::size_t block_count = 30, shortest_run = 3;
constexpr std::size_t fewest_in_block = 8, most_in_block = 512; // latencies
constexpr double blocks_d = block_count;
constexpr double significant_line = 5, significant_best = 6.5; // the best of many looks good by chance
constexpr double residuals_bias = 0.05;                        // a fit's residuals look less correlated than they are
constexpr double finest = 1e-4;                                // no block's level is known better than this

using block_series = std::array<double, block_count>;

std::size_t first_of_block(std::size_t block, std::size_t requests) { return block * requests / block_count; }

std::size_t requests_of(measurement const& m) {
  std::size_t requests = 0;
  for (auto const& thread : m.latency_ns) requests += thread.size();
  return requests;
}

// The mean of the middle half. Reorders.
double middle_mean(std::vector<std::int64_t>& values) {
  auto const cut = static_cast<std::ptrdiff_t>(values.size() / 4);
  auto const low = values.begin() + cut, high = values.end() - cut;
  std::nth_element(values.begin(), low, values.end());
  std::nth_element(low, high, values.end());
  double sum = 0;
  for (auto at = low; at != high; ++at) sum += static_cast<double>(*at);
  return sum / static_cast<double>(high - low);
}

block_series levels_of(measurement const& m) {
  auto const step = requests_of(m) / (block_count * most_in_block) + 1;
  block_series levels{};
  std::vector<std::int64_t> block;
  for (std::size_t b = 0; b < block_count; ++b) {
    block.clear();
    for (auto const& thread : m.latency_ns)
      for (auto i = first_of_block(b, thread.size()); i < first_of_block(b + 1, thread.size()); i += step)
        block.push_back(thread[i]);
    levels[b] = std::log(std::max(middle_mean(block), 1.0));
  }
  return levels;
}

double mean_of(block_series const& y) {
  double sum = 0;
  for (auto const v : y) sum += v;
  return sum / blocks_d;
}

double sum_of_squares(block_series const& y) {
  double sum = 0;
  for (auto const v : y) sum += v * v;
  return sum;
}

block_series centred(block_series y) {
  auto const mean = mean_of(y);
  for (auto& v : y) v -= mean;
  return y;
}

/// A course fitted to the levels by least squares: y = constant + height * shape.
struct fit {
  latency_course course = latency_course::steady;
  std::size_t from = 0, to = block_count; // blocks
  double height = 0, per_noise = 0;       // the height's standard error is per_noise times the noise of a block
  double unexplained = 0;                 // sum of squares
  block_series residuals{};
};

// `levels` are centred.
fit fitted(block_series const& levels, latency_course course, block_series const& shape, std::size_t from,
           std::size_t to) {
  auto const x = centred(shape);
  auto const square = sum_of_squares(x);
  double product = 0;
  for (std::size_t b = 0; b < block_count; ++b) product += x[b] * levels[b];
  fit f{course, from, to, product / square, 1 / std::sqrt(square), 0, {}};
  for (std::size_t b = 0; b < block_count; ++b) f.residuals[b] = levels[b] - f.height * x[b];
  f.unexplained = sum_of_squares(f.residuals);
  return f;
}

// From 0 in the first block to 1 in the last.
fit fitted_line(block_series const& levels) {
  block_series shape{};
  for (std::size_t b = 0; b < block_count; ++b) shape[b] = static_cast<double>(b) / (blocks_d - 1);
  return fitted(levels, latency_course::drift, shape, 0, block_count);
}

// From 0 in the first block towards 1, most of it within a few blocks.
fit best_settling(block_series const& levels) {
  fit best;
  for (auto const blocks : {1.5, 3.0, 6.0}) {
    block_series shape{};
    for (std::size_t b = 0; b < block_count; ++b) shape[b] = -std::expm1(-static_cast<double>(b) / blocks);
    auto const f = fitted(levels, latency_course::settling, shape, 0, block_count);
    if (best.per_noise == 0 || f.unexplained < best.unexplained) best = f;
  }
  return best;
}

// 1 in a run of blocks, else 0. A run from the first block on is a shift after it, the other way about.
fit best_run(block_series const& levels) {
  fit best;
  for (std::size_t from = 1; from < block_count; ++from) {
    block_series shape{};
    for (auto to = from + 1; to <= block_count; ++to) {
      shape[to - 1] = 1;
      if (std::min(to - from, block_count - (to - from)) < shortest_run) continue;
      if (to == block_count && from < shortest_run) continue;
      auto const f =
          fitted(levels, to == block_count ? latency_course::shift : latency_course::episode, shape, from, to);
      if (best.per_noise == 0 || f.unexplained < best.unexplained) best = f;
    }
  }
  return best;
}

// Of one block. Neighbours that resemble each other tell less than as many independent blocks would.
double noise_of(fit const& f) {
  auto const noise = std::max(std::sqrt(f.unexplained / (blocks_d - 2)), finest);
  double products = 0;
  for (std::size_t b = 1; b < block_count; ++b) products += f.residuals[b - 1] * f.residuals[b];
  auto const r = std::clamp(f.unexplained > 0 ? products / f.unexplained + residuals_bias : 0, 0.0, 0.9);
  return noise * std::sqrt((1 + r) / (1 - r));
}

bool counts(fit const& f) {
  auto const significant = f.course == latency_course::drift ? significant_line : significant_best;
  return std::abs(f.height) >= std::max(std::log1p(notable_change), significant * noise_of(f) * f.per_noise);
}

bool enough(measurement const& m) {
  auto const each_enough = [](auto const& thread) { return thread.size() >= block_count; };
  return std::ranges::all_of(m.latency_ns, each_enough) && requests_of(m) >= fewest_in_block * block_count;
}

// When the first stream thread came to the block.
std::int64_t begin_ns(measurement const& m, std::size_t block) {
  auto first = INT64_MAX;
  for (auto const& thread : m.start_ns) first = std::min(first, thread[first_of_block(block, thread.size())]);
  return first;
}

std::string percent(double share) { return std::to_string(std::lround(100 * share)) + "%"; }

// "rank 3: latency rose by 12% after 47% of the timed window"
std::string told(steadiness const& s, std::int64_t rank) {
  auto const moved = (s.change > 0 ? "rose by " : "fell by ") + percent(std::abs(s.change));
  auto const still_warming = s.change < 0 && s.from <= 1.0 / 3;
  std::string text = rank_list(std::array{rank}) + ": latency ";
  switch (s.course) {
  case latency_course::steady: return text + "was steady";
  case latency_course::drift: return text + moved + ", evenly, over the timed window";
  case latency_course::episode:
    return text + moved + " from " + percent(s.from) + " to " + percent(s.to) + " of the timed window, and came back";
  case latency_course::settling: text += moved + " in the first part of the timed window"; break;
  case latency_course::shift: text += moved + " after " + percent(s.from) + " of the timed window"; break;
  }
  return text + (still_warming ? ": warm-up was not over, more `warmup` requests may help" : "");
}

json evidence_of(steadiness const& s, std::int64_t rank) {
  return {{"rank", rank}, {"course", name_of(s.course)}, {"change", s.change}, {"from", s.from},
          {"to", s.to},   {"from_ns", s.from_ns},        {"noise", s.noise},   {"detectable", s.detectable}};
}

} // namespace

std::optional<steadiness> steadiness_of(measurement const& m) {
  if (!enough(m)) return std::nullopt;
  auto const levels = centred(levels_of(m));
  std::array fits{fitted_line(levels), best_settling(levels), best_run(levels)};
  std::ranges::sort(fits, {}, &fit::unexplained);
  auto const found = std::ranges::find_if(fits, counts);

  steadiness s;
  s.noise = noise_of(found != fits.end() ? *found : fits[0]);
  s.detectable = std::max(notable_change, std::expm1(significant_best * s.noise * std::sqrt(4 / blocks_d)));
  if (found == fits.end()) return s;
  s.course = found->course;
  s.change = std::expm1(found->height);
  s.from = static_cast<double>(found->from) / blocks_d;
  s.to = static_cast<double>(found->to) / blocks_d;
  s.from_ns = begin_ns(m, found->from);
  return s;
}

std::optional<finding> unsteady(std::span<std::optional<steadiness> const> by_rank) {
  finding f{checks::unsteady.name, {}, "", json{{"ranks", json::array()}}};
  steadiness const* worst = nullptr;
  for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
    auto const& s = by_rank[rank];
    if (!s || s->course == latency_course::steady) continue;
    f.ranks.push_back(static_cast<std::int64_t>(rank));
    f.evidence["ranks"].push_back(evidence_of(*s, f.ranks.back()));
    if (worst && std::abs(std::log1p(s->change)) <= std::abs(std::log1p(worst->change))) continue;
    worst = &*s;
    f.reason = told(*s, f.ranks.back());
  }
  if (!worst) return std::nullopt;
  if (f.ranks.size() > 1) f.reason += "; unsteady on " + rank_list(f.ranks);
  return f;
}

} // namespace plateau
