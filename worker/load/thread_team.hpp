// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace plateau {

/// Called once on each new thread of a team with its number. It sets up what lives as long as the thread, calls
/// `rest` exactly once (the thread's whole work), and tears down. This is how threads get their stream and Torch's
/// guards without the team knowing of either.
using thread_setup = std::function<void(std::size_t thread, std::function<void()> const& rest)>;

/// Threads that work in rounds and sleep between them. In a round all wait at a gate until the last one is there,
/// which opens it; so none begins before all can.
class thread_team {
public:
  /// What a thread is told of the round that it works in.
  struct round {
    std::int64_t gate_ns;              ///< CLOCK_MONOTONIC when the gate opened
    std::atomic<bool> const& stopping; ///< true once a thread of this round has thrown: the others return soon
  };
  using work = std::function<void(std::size_t thread, round const&)>;

  /// Returns when every thread is set up. Throws what a thread's set-up threw first, or std::runtime_error when the
  /// machine has no more threads; no thread is left then.
  thread_team(std::size_t size, thread_setup set_up);
  ~thread_team();
  thread_team(thread_team const&) = delete;
  thread_team& operator=(thread_team const&) = delete;

  std::size_t size() const { return threads_.size(); }

  /// One round: `w` on every thread. Returns when all have returned, with the time at which the gate opened; rethrows
  /// the exception that was thrown first.
  std::int64_t run(work const& w);

private:
  void live(std::size_t thread);
  void work_rounds(std::size_t thread);
  void pass_gate();
  void await_all();
  void report_done();
  void record_failure();
  void rethrow_failure();
  void dismiss();

  thread_setup set_up_;
  std::int64_t longest_spin_ns_;
  work const* work_ = nullptr;
  bool dismissed_ = false;
  std::int64_t gate_ns_ = 0;

  std::atomic<std::uint32_t> round_ = 0;   // counts up to begin one
  std::atomic<std::uint32_t> at_gate_ = 0; // threads that wait at it
  std::atomic<std::uint32_t> gate_ = 0;    // counts up to open it
  std::atomic<std::uint32_t> running_ = 0; // threads that have not finished the round
  std::atomic<bool> stopping_ = false;

  std::mutex failure_lock_;
  std::exception_ptr failure_;
  std::vector<std::thread> threads_;
};

} // namespace plateau
