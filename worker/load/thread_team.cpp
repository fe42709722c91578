// SPDX-License-Identifier: Apache-2.0
#include "worker/load/thread_team.hpp"

#include "worker/load/clock.hpp"

#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

namespace plateau {

namespace {

// A thread that sleeps takes tens of microseconds to wake; one that spins takes none, but keeps a CPU from the
// threads that have yet to arrive. So spin only where each thread can have a CPU, and not for long.
std::int64_t spin_for(std::size_t threads) { return threads <= std::thread::hardware_concurrency() ? 100'000 : 0; }

std::string no_more_threads(std::size_t thread, std::size_t size, std::system_error const& e) {
  return "cannot start stream thread " + std::to_string(thread) + " of " + std::to_string(size) + ": " +
         e.code().message() + "; use a lower concurrency level or raise the limit on processes (ulimit -u)";
}

} // namespace

thread_team::thread_team(std::size_t size, thread_setup set_up)
    : set_up_(std::move(set_up)), longest_spin_ns_(spin_for(size)) {
  running_ = static_cast<std::uint32_t>(size);
  threads_.reserve(size);
  try {
    for (std::size_t t = 0; t < size; ++t) threads_.emplace_back([this, t] { live(t); });
  } catch (std::system_error const& e) {
    auto const started = threads_.size();
    dismiss();
    throw std::runtime_error(no_more_threads(started, size, e));
  }
  await_all();
  if (failure_) {
    dismiss();
    rethrow_failure();
  }
}

thread_team::~thread_team() { dismiss(); }

std::int64_t thread_team::run(work const& w) {
  work_ = &w;
  stopping_.store(false, std::memory_order_relaxed);
  running_.store(static_cast<std::uint32_t>(size()), std::memory_order_relaxed);
  at_gate_.store(0, std::memory_order_relaxed);
  round_.fetch_add(1, std::memory_order_release);
  round_.notify_all();
  await_all();
  rethrow_failure();
  return gate_ns_;
}

void thread_team::live(std::size_t thread) {
  bool set_up = false;
  try {
    set_up_(thread, [&] {
      set_up = true;
      report_done();
      work_rounds(thread);
    });
  } catch (...) {
    record_failure();
  }
  if (!set_up) report_done();
}

void thread_team::work_rounds(std::size_t thread) {
  for (std::uint32_t seen = 0;; ++seen) {
    round_.wait(seen, std::memory_order_acquire);
    if (dismissed_) return;
    pass_gate();
    try {
      (*work_)(thread, {gate_ns_, stopping_});
    } catch (...) {
      record_failure();
    }
    report_done();
  }
}

void thread_team::pass_gate() {
  auto const closed = gate_.load(std::memory_order_relaxed);
  if (at_gate_.fetch_add(1, std::memory_order_acq_rel) + 1 == size()) {
    gate_ns_ = now_ns();
    gate_.store(closed + 1, std::memory_order_release);
    gate_.notify_all();
    return;
  }
  for (auto const begin = now_ns(); now_ns() - begin < longest_spin_ns_;)
    if (gate_.load(std::memory_order_acquire) != closed) return;
  gate_.wait(closed, std::memory_order_acquire);
}

void thread_team::await_all() {
  while (auto const left = running_.load(std::memory_order_acquire)) running_.wait(left, std::memory_order_acquire);
}

void thread_team::report_done() {
  if (running_.fetch_sub(1, std::memory_order_acq_rel) == 1) running_.notify_one();
}

void thread_team::record_failure() {
  std::lock_guard const lock(failure_lock_);
  if (!failure_) failure_ = std::current_exception();
  stopping_.store(true, std::memory_order_relaxed);
}

void thread_team::rethrow_failure() {
  if (auto const failure = std::exchange(failure_, nullptr)) std::rethrow_exception(failure);
}

void thread_team::dismiss() {
  dismissed_ = true;
  round_.fetch_add(1, std::memory_order_release);
  round_.notify_all();
  for (auto& thread : threads_) thread.join();
  threads_.clear();
}

} // namespace plateau
