// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "orchestrator/launch/context.hpp"
#include "orchestrator/process/descendants.hpp"
#include "orchestrator/rank/descriptor.hpp"
#include "orchestrator/rank/worker_log.hpp"
#include "schemas/case_result.hpp"
#include "schemas/progress.hpp"
#include "schemas/protocol.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <sys/types.h>
#include <variant>

namespace plateau {

/// How a worker is started.
struct worker_command {
  std::filesystem::path program;
  environment env;           ///< all of it: without what launchers left, with what the job adds
  std::filesystem::path log; ///< where its output goes, appended; see worker_log
};

/// The worker can give no more events: how it ended, as the status and the reason of the case that it was on.
struct worker_lost {
  case_status status = case_status::crashed;
  std::string reason;
};

/// How long a worker may stay in a phase without progress, in seconds; and what it did not do in time, in
/// words.
struct patience {
  double seconds;
  std::string_view did_not;
};
patience patience_in(phase p, deadlines const& limits);

/// Notices that a worker makes no progress: neither the worker as a whole nor, within a window of requests, each stream
/// thread by itself, since the others' requests would hide the one that hangs.
class stall_watch {
public:
  using clock = std::chrono::steady_clock;

  /// Patience begins now.
  stall_watch(progress const& p, clock::time_point now);

  /// To be called often. Once patience_in() the worker's phase is over: what was not done in time, in words. A new
  /// phase begins anew, for each thread too.
  std::optional<std::string> look(progress const& p, deadlines const& limits, clock::time_point now);

private:
  struct thread {
    std::int64_t requests;
    bool serving;
    clock::time_point since; // when either was last seen to change
  };
  std::optional<std::string> overdue(deadlines const& limits, clock::time_point now) const;

  phase phase_;
  std::uint32_t window_;
  clock::time_point since_; // the worker's last progress
  std::array<thread, progress::max_threads> threads_;
};

/// "killed by SIGSEGV", "exited with code 3": a status of waitpid() in words.
std::string describe_end(int wait_status);

/// One worker: a process in a group of its own, which dies with this object, and with it whatever it started. Start it
/// from the main thread: its life hangs on the thread that started it. One at a time.
class worker_process {
public:
  /// Starts it. Throws std::system_error.
  explicit worker_process(worker_command const& command);
  ~worker_process(); ///< kills the whole group, whatever it is doing
  worker_process(worker_process const&) = delete;
  worker_process& operator=(worker_process const&) = delete;

  /// A worker that is gone is noticed by the next wait.
  void send(protocol::command const& command);

  /// Sleeps until the worker says something, ends, or overstays a deadline; the last two kill its group.
  /// `while_waiting` is called about ten times a second with what the worker is doing; when it gives a text,
  /// the worker is given up with status missing and this reason. Throws terminated on SIGTERM.
  using look = std::function<std::optional<std::string>(progress const&)>;
  std::variant<protocol::event, worker_lost> wait(deadlines const& limits, look const& while_waiting);

  /// Asks it to stop, and makes sure that it does.
  void stop();

private:
  struct unmap {
    void operator()(progress* p) const;
  };

  descendants started_;
  pid_t pid_ = -1;
  descriptor socket_;
  std::unique_ptr<progress, unmap> progress_;
  protocol::frame_buffer frames_;
  std::optional<worker_log> log_;
  std::string log_name_;

  std::optional<int> ended(std::chrono::milliseconds patience);
  std::optional<std::vector<std::uint8_t>> last_words(std::vector<std::uint8_t>& chunk);
  void kill_group();
  worker_lost lost(case_status status, std::string reason);
  worker_lost ended_by_itself(int wait_status);
  worker_lost lost_connection();
};

} // namespace plateau
