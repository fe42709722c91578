// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schemas/progress.hpp"
#include "worker/load/request.hpp"
#include "worker/load/thread_team.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace plateau {

/// What the stream threads of a timed window write down: [stream thread][request], in nanoseconds.
struct timed_series {
  std::vector<std::vector<std::int64_t>> start_ns;   ///< submission, since the gate opened
  std::vector<std::vector<std::int64_t>> latency_ns; ///< submission to result ready
  std::int64_t gate_ns = 0;                          ///< CLOCK_MONOTONIC when the gate opened
  std::int64_t wall_ns = 0;                          ///< gate to the last result
};

/// Room for a timed window. Every page of it has been written, so that the timed window takes no page fault.
timed_series make_series(std::size_t threads, std::size_t requests_each);

/// Whose threads serve a window of requests.
enum class thread_life {
  persistent, ///< the same threads from warm-up to the last soak window
  fresh,      ///< new threads for every window; warm-up on the calling thread. As a server behaves that starts
              ///< threads with each burst of load: what a library keeps per thread is taken anew inside the window
};

/// Drives one request on each stream thread, again and again (closed loop: a thread submits when its last result was
/// ready). Counts each stream thread's completed requests into `shared`, and marks the threads that are within a
/// window. Between two calls all threads are parked and no request is in flight. Every call rethrows what a stream
/// thread threw first; the others then stop at their next request. Not thread-safe.
class load_engine {
public:
  /// `requests` holds one for each stream thread; they and `shared` outlive the engine. At most
  /// progress::max_threads.
  load_engine(std::vector<request*> requests, thread_setup set_up, thread_life life, progress& shared);

  std::size_t threads() const { return requests_.size(); }

  /// Untimed requests: on all threads at once if persistent, else on the calling thread, one stream after the other.
  void warm_up(std::int64_t requests_each);

  /// The timed window: fills `series`, as many requests as it has room for.
  void run_timed(timed_series& series);

  /// An untimed window. `around`, if given, encloses each thread's requests.
  void run_untimed(std::int64_t requests_each, thread_setup const& around = {});

  /// Untimed requests until `is_over`, which is asked before each and from every thread; how many they were. As with
  /// warm_up(), the calling thread stands for fresh threads.
  std::int64_t serve_until(std::function<bool()> const& is_over);

  /// Told the requests completed and the nanoseconds passed since the first quiet point of a soak.
  using quiet_point = std::function<void(std::int64_t requests, std::int64_t elapsed_ns)>;

  /// `windows` untimed windows, with a quiet point before the first and after each.
  void soak(std::int64_t windows, std::int64_t requests_each, quiet_point const& at_rest);

  /// The same by time: window w of W ends w/W of `duration_ns` after the soak began, once each thread has finished the
  /// request that it is in; each serves one at least, so a soak of slow requests takes longer.
  void soak_for(std::int64_t windows, std::int64_t duration_ns, quiet_point const& at_rest);

  /// One request on all threads at once; `look` is called on each between its wait() and drop().
  void look_at_results(std::function<void(std::size_t thread)> const& look);

  /// The same on the calling thread, one stream after the other.
  void look_at_results_in_turn(std::function<void(std::size_t thread)> const& look);

private:
  std::int64_t round(thread_team::work const& w);
  void soak_windows(std::int64_t windows, std::function<void(std::int64_t window, std::int64_t begin_ns)> const& serve,
                    quiet_point const& at_rest);
  std::int64_t completed() const;

  std::vector<request*> requests_;
  thread_setup set_up_;
  progress& shared_;
  std::optional<thread_team> team_; // of a persistent engine
};

/// The timed loop's own cost per request in nanoseconds: the very loop of run_timed over a request that does nothing,
/// on the calling thread.
double harness_cost_ns();

} // namespace plateau
