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

// While it lives, the slot says that its thread is within a window.
class serving {
public:
  explicit serving(progress::slot& slot) : slot_(slot) { slot_.serving.store(true, relaxed); }
  ~serving() { slot_.serving.store(false, relaxed); }
  serving(serving const&) = delete;
  serving& operator=(serving const&) = delete;

private:
  progress::slot& slot_;
};

// The timing boundary. What is between the two clock reads is measured; everything else is the harness's own cost.
void timed_loop(request& r, thread_team::round const& round, std::vector<std::int64_t>& start_ns,
                std::vector<std::int64_t>& latency_ns, progress::slot& slot) {
  serving const now(slot);
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

// Requests for as long as `more` says so of the number served.
template <class More>
void untimed_loop(request& r, More const& more, std::atomic<bool> const& stopping, progress::slot& slot) {
  serving const now(slot);
  auto const before = slot.requests.load(relaxed);
  for (std::int64_t i = 0; more(i) && !stopping.load(relaxed); ++i) {
    r.submit();
    r.wait();
    r.drop();
    slot.requests.store(before + i + 1, relaxed);
  }
}

auto fewer_than(std::int64_t count) {
  return [count](std::int64_t served) { return served < count; };
}

// The first is served in any case.
auto until(std::int64_t end_ns) {
  return [end_ns](std::int64_t served) { return served == 0 || now_ns() < end_ns; };
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
    set_up_(t, [&] { untimed_loop(*requests_[t], fewer_than(requests_each), never, shared_.threads[t]); });
}

void load_engine::run_timed(timed_series& series) {
  series.gate_ns = round([&](std::size_t t, thread_team::round const& r) {
    timed_loop(*requests_[t], r, series.start_ns[t], series.latency_ns[t], shared_.threads[t]);
  });
  series.wall_ns = last_result(series);
}

void load_engine::run_untimed(std::int64_t requests_each, thread_setup const& around) {
  round([&](std::size_t t, thread_team::round const& r) {
    auto const loop = [&] { untimed_loop(*requests_[t], fewer_than(requests_each), r.stopping, shared_.threads[t]); };
    around ? around(t, loop) : loop();
  });
}

std::int64_t load_engine::serve_until(std::function<bool()> const& is_over) {
  auto const before = completed();
  auto const more = [&](std::int64_t) { return !is_over(); };
  if (team_) {
    round([&](std::size_t t, thread_team::round const& r) {
      untimed_loop(*requests_[t], more, r.stopping, shared_.threads[t]);
    });
    return completed() - before;
  }
  while (!is_over()) warm_up(1);
  return completed() - before;
}

void load_engine::soak(std::int64_t windows, std::int64_t requests_each, quiet_point const& at_rest) {
  soak_windows(
      windows, [&](std::int64_t, std::int64_t) { run_untimed(requests_each); }, at_rest);
}

void load_engine::soak_for(std::int64_t windows, std::int64_t duration_ns, quiet_point const& at_rest) {
  auto const share = static_cast<double>(duration_ns) / static_cast<double>(windows);
  auto const serve = [&](std::int64_t window, std::int64_t begin_ns) {
    auto const more = until(begin_ns + static_cast<std::int64_t>(share * static_cast<double>(window)));
    round([&](std::size_t t, thread_team::round const& r) {
      untimed_loop(*requests_[t], more, r.stopping, shared_.threads[t]);
    });
  };
  soak_windows(windows, serve, at_rest);
}

void load_engine::soak_windows(std::int64_t windows, std::function<void(std::int64_t, std::int64_t)> const& serve,
                               quiet_point const& at_rest) {
  shared_.soak_window.store(0, relaxed);
  auto const before = completed();
  auto const begin = now_ns();
  at_rest(0, 0);
  for (std::int64_t w = 1; w <= windows; ++w) {
    serve(w, begin);
    auto const elapsed = now_ns() - begin;
    at_rest(completed() - before, elapsed);
    shared_.soak_window.store(static_cast<std::uint32_t>(w), relaxed);
  }
}

std::int64_t load_engine::completed() const {
  std::int64_t sum = 0;
  for (std::size_t t = 0; t < threads(); ++t) sum += shared_.threads[t].requests.load(relaxed);
  return sum;
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
