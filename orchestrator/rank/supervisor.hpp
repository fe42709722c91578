// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "orchestrator/rank/worker_process.hpp"
#include "schemas/case_result.hpp"
#include "schemas/protocol.hpp"

#include <exception>
#include <optional>
#include <string>

namespace plateau {

/// A rank's worker over the whole run: started when a case needs one, watched, replaced when it is lost.
/// Whatever happens to a worker becomes a case_result. Throws out_of_step only.
class supervisor {
public:
  supervisor(worker_command command, protocol::hello hello);

  /// Starts a worker, if none is up, and hears of its device. A reason instead, when it refuses or is lost.
  struct no_worker {
    case_status status;
    std::string reason;
    bool refused; ///< it cannot be started, or said no itself: so would another one
  };
  std::variant<device_info, no_worker> bring_up(worker_process::look const& look);

  /// Workers that are started from now on run this job.
  void set_job(job run);

  /// Nothing when the worker is ready for the case; else the case's result on this rank.
  std::optional<case_result> prepare(case_id const& id, worker_process::look const& look);

  /// Opens the gate for the case that was prepared, and waits for its result.
  case_result measure(worker_process::look const& look);

  /// The worker of bring_up() loads NCCL, and then checks the fabric together with the other ranks' workers. What goes
  /// wrong, with the worker or with NCCL, is a failure.
  std::variant<nccl_info, fabric_failure> open_fabric(worker_process::look const& look);
  fabric_result check_fabric(std::string const& unique_id, int ranks, worker_process::look const& look);

  /// The worker of bring_up() compiles the package that the mode runs, or finds it in the cache. What goes wrong is a
  /// sentence.
  std::variant<protocol::package, std::string> compile(std::string const& mode, worker_process::look const& look);

  /// The worker is not needed for the next case.
  void release();

private:
  worker_command command_;
  protocol::hello hello_;
  std::optional<worker_process> worker_;
  std::optional<device_info> device_;
  case_id id_;
  std::string started_;
  std::chrono::steady_clock::time_point began_;

  template <class Event>
  std::variant<Event, std::string> ask(protocol::command const& command, worker_process::look const& look);
  case_result failed(protocol::failure const& failure);
  case_result broken_off(std::exception const& e);
  case_result result(case_status status, std::string reason) const;
};

} // namespace plateau
