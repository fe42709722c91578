// SPDX-License-Identifier: Apache-2.0
#include "worker/load/load_engine.hpp"

#include "worker/load/clock.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <utility>

namespace plateau {

namespace {

constexpr auto relaxed = std::memory_order_relaxed;

// The timing boundary. What is between the two clock reads is measured; everything else is the harness's own cost.
void timed_loop(request& r, thread_team::round const& round, std::vector<std::int64_t>& start_ns,
                std::vector<std::int64_t>& latency_ns, progress::slot& slot) {
  auto const before = slot.requests.load(relaxed);
  auto const count = static_cast<std::int64_t>(latency_ns.size());
  auto* const starts = start_ns.data();
  auto* const latencies = latency_ns.data();
  for (std::int64_t i = 0; i < count && !round.stopping.load(relaxed); ++i) {
    auto const begin = now_ns();
    r.submit();
    r.wait();
    auto const end = now_ns();
    starts[i] = begin - round.gate_ns;
    latencies[i] = end - begin;
    r.drop();
    slot.requests.store(before + i + 1, relaxed);
  }
}

void untimed_loop(request& r, std::int64_t count, std::atomic<bool> const& stopping, progress::slot& slot) {
  auto const before = slot.requests.load(relaxed);
  for (std::int64_t i = 0; i < count && !stopping.load(relaxed); ++i) {
    r.submit();
    r.wait();
    r.drop();
    slot.requests.store(before + i + 1, relaxed);
  }
}

void look_at_one(request& r, progress::slot& slot, std::function<void()> const& look) {
  r.submit();
  r.wait();
  look();
  r.drop();
  slot.requests.store(slot.requests.load(relaxed) + 1, relaxed);
}

std::int64_t last_result(timed_series const& series) {
  std::int64_t last = 0;
  for (std::size_t t = 0; t < series.start_ns.size(); ++t)
    if (!series.start_ns[t].empty()) last = std::max(last, series.start_ns[t].back() + series.latency_ns[t].back());
  return last;
}

class no_request final : public request {
public:
  void submit() override {}
  void wait() override {}
  void drop() override {}
};

} // namespace

timed_series make_series(std::size_t threads, std::size_t requests_each) {
  std::vector<std::int64_t> const written(requests_each, -1);
  return {{threads, written}, {threads, written}, 0, 0};
}

load_engine::load_engine(std::vector<request*> requests, thread_setup set_up, thread_life life, progress& shared)
    : requests_(std::move(requests)), set_up_(std::move(set_up)), shared_(shared) {
  assert(requests_.size() <= progress::max_threads);
  if (life == thread_life::persistent) team_.emplace(requests_.size(), set_up_);
}

std::int64_t load_engine::round(thread_team::work const& w) {
  if (team_) return team_->run(w);
  return thread_team(requests_.size(), set_up_).run(w);
}

void load_engine::warm_up(std::int64_t requests_each) {
  if (team_) return run_untimed(requests_each);
  std::atomic<bool> const never = false;
  for (std::size_t t = 0; t < threads(); ++t)
    set_up_(t, [&] { untimed_loop(*requests_[t], requests_each, never, shared_.threads[t]); });
}

void load_engine::run_timed(timed_series& series) {
  series.gate_ns = round([&](std::size_t t, thread_team::round const& r) {
    timed_loop(*requests_[t], r, series.start_ns[t], series.latency_ns[t], shared_.threads[t]);
  });
  series.wall_ns = last_result(series);
}

void load_engine::run_untimed(std::int64_t requests_each, thread_setup const& around) {
  round([&](std::size_t t, thread_team::round const& r) {
    auto const loop = [&] { untimed_loop(*requests_[t], requests_each, r.stopping, shared_.threads[t]); };
    around ? around(t, loop) : loop();
  });
}

void load_engine::soak(std::int64_t windows, std::int64_t requests_each,
                       std::function<void(std::int64_t, std::int64_t)> const& quiet_point) {
  shared_.soak_window.store(0, relaxed);
  auto const begin = now_ns();
  quiet_point(0, 0);
  auto const requests_per_window = requests_each * static_cast<std::int64_t>(threads());
  for (std::int64_t w = 1; w <= windows; ++w) {
    run_untimed(requests_each);
    auto const elapsed = now_ns() - begin;
    quiet_point(w * requests_per_window, elapsed);
    shared_.soak_window.store(static_cast<std::uint32_t>(w), relaxed);
  }
}

void load_engine::look_at_results(std::function<void(std::size_t)> const& look) {
  round([&](std::size_t t, thread_team::round const&) {
    look_at_one(*requests_[t], shared_.threads[t], [&] { look(t); });
  });
}

void load_engine::look_at_results_in_turn(std::function<void(std::size_t)> const& look) {
  for (std::size_t t = 0; t < threads(); ++t)
    set_up_(t, [&] { look_at_one(*requests_[t], shared_.threads[t], [&] { look(t); }); });
}

double harness_cost_ns() {
  constexpr std::size_t batch = 20'000;
  auto series = make_series(1, batch);
  no_request nothing;
  request* volatile opaque = &nothing; // else the compiler sees through the virtual calls
  progress::slot slot{};
  std::atomic<bool> const never = false;
  std::array<double, 7> cost{};
  for (auto& c : cost) {
    auto const begin = now_ns();
    timed_loop(*opaque, {begin, never}, series.start_ns[0], series.latency_ns[0], slot);
    c = static_cast<double>(now_ns() - begin) / batch;
  }
  std::ranges::nth_element(cost, cost.begin() + cost.size() / 2);
  return cost[cost.size() / 2];
}

} // namespace plateau
