// SPDX-License-Identifier: Apache-2.0
#include "tests/torch/allocator_trace.hpp"

#include <algorithm>
#include <array>
#include <istream>
#include <ostream>
#include <random>

namespace plateau::trace {
namespace {

constexpr std::int64_t mib = 1 << 20;

class dice {
public:
  explicit dice(std::uint32_t seed) : bits_(seed) {}
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(bits_);
  }
  std::int64_t percent() { return between(0, 99); }
  template <std::size_t N>
  std::int64_t one_of(std::array<std::int64_t, N> const& choices) {
    return choices[static_cast<std::size_t>(between(0, N - 1))];
  }

private:
  std::mt19937 bits_;
};

std::int64_t random_size(dice& die) {
  auto const kind = die.percent();
  if (kind < 20) return die.between(0, 3000);
  if (kind < 50) return die.between(1, mib + 2000);
  if (kind < 55) return die.between(mib - 600, mib + 600);
  if (kind < 80) return die.between(mib, 11 * mib);
  if (kind < 95)
    return die.one_of(std::array<std::int64_t, 7>{1, 2, 4, 8, 10, 16, 20}) * mib +
           die.one_of(std::array<std::int64_t, 6>{0, 0, -512, -1, 1, 512});
  return die.between(10 * mib, 60 * mib);
}

} // namespace

void write(std::vector<step> const& steps, std::ostream& out) {
  for (step const& s : steps)
    out << static_cast<char>(s.what) << ' ' << s.block << ' ' << s.bytes << ' ' << s.stream << '\n';
}

std::vector<step> read(std::istream& in) {
  std::vector<step> steps;
  char what = 0;
  for (step s; in >> what >> s.block >> s.bytes >> s.stream;) {
    s.what = static_cast<action>(what);
    steps.push_back(s);
  }
  return steps;
}

void write(counters const& after, std::ostream& out) {
  for (auto const& field : counter_fields) out << after.*field.member << ' ';
  out << '\n';
}

std::vector<counters> read_counters(std::istream& in) {
  std::vector<counters> all;
  for (counters next;;) {
    for (auto const& field : counter_fields) in >> next.*field.member;
    if (!in) return all;
    all.push_back(next);
  }
}

std::vector<step> random_steps(std::uint32_t seed, std::size_t count, std::int64_t most_live_bytes) {
  dice die(seed);
  std::vector<step> steps;
  std::vector<step> live;
  std::int64_t live_bytes = 0;
  while (steps.size() < count) {
    auto const kind = die.between(0, 999);
    if (kind >= 998) {
      steps.push_back({.what = action::reset_peak});
    } else if (kind >= 995) {
      steps.push_back({.what = action::empty_cache});
    } else if (live.empty() || kind < (live_bytes < most_live_bytes ? 520 : 400)) {
      step const s{action::allocate, static_cast<std::int64_t>(steps.size()), random_size(die), die.between(0, 2)};
      live_bytes += s.bytes;
      live.push_back(s);
      steps.push_back(s);
    } else {
      std::swap(live[static_cast<std::size_t>(die.between(0, std::ssize(live) - 1))], live.back());
      live_bytes -= live.back().bytes;
      steps.push_back({.what = action::free, .block = live.back().block});
      live.pop_back();
    }
  }
  return steps;
}

} // namespace plateau::trace
