// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schemas/case_result.hpp"
#include "schemas/job.hpp"
#include "schemas/progress.hpp"
#include "worker/device/device.hpp"
#include "worker/load/load_engine.hpp"
#include "worker/modes/mode.hpp"
#include "worker/output_check.hpp"
#include "worker/planted_fault.hpp"
#include "worker/programs/program.hpp"

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace plateau {

/// What all cases of a worker have in common. Outlives them.
struct worker_context {
  job run; ///< device and dtype resolved
  std::string run_id;
  std::int64_t rank = 0;
  device& dev;
  stream& main_stream; ///< of the thread that prepares and runs the cases, when no stream thread's is entered
  progress& shared;
  std::vector<std::string> warnings;
};

/// One case, ready at the gate: weights, inputs and the mode are made, the requests warm, the outputs right. Its
/// destructor gives everything back to the allocator, whose cache the next case of this worker inherits.
class prepared_case {
public:
  /// Throws unsupported when the mode cannot run here, c10::OutOfMemoryError, std::runtime_error when an output is
  /// wrong.
  prepared_case(worker_context const& context, case_id id);
  prepared_case(prepared_case const&) = delete;
  prepared_case& operator=(prepared_case const&) = delete;

  /// Once ready, on a device that slows when it is idle: untimed requests on the prepared streams until `is_over`,
  /// which is asked before each and from every stream thread. They are over before run() reads its first counters. What
  /// goes wrong with them is thrown by run().
  void keep_clocks_up(std::function<bool()> const& is_over);

  /// The timed window, the soak (each point is reported as it is taken), the tracked window, the outputs once more.
  /// Call once. Throws as the constructor does.
  case_result run(std::function<void(memory_point const&)> const& report);

private:
  void make_workspace();
  void settle();
  std::vector<request*> make_requests();
  void arm_faults(bool armed);
  void warm_up();
  void compute_references();
  void check_outputs(std::string_view when);
  void judge_output(std::size_t thread, output_copy const& output, std::string_view when);

  void measure_timed(measurement& m);
  void soak(measurement& m, std::function<void(memory_point const&)> const& report);
  attribution track(std::int64_t requests_each);
  counters quiet_counters();
  memory_point quiet_point(std::int64_t requests, std::int64_t elapsed_ns);
  void now_in(phase p) { context_.shared.now.store(p, std::memory_order_relaxed); }
  std::size_t threads() const { return static_cast<std::size_t>(id_.concurrency); }

  worker_context const& context_;
  case_id id_;
  std::string started_;
  std::int64_t begin_ns_;
  std::vector<std::string> warnings_;

  program_entry const& entry_;
  program program_;
  std::vector<std::unique_ptr<stream>> streams_; // of the stream threads
  std::vector<at::Tensor> weights_, inputs_;
  std::unique_ptr<prepared_mode> mode_;
  std::vector<std::unique_ptr<executor>> executors_;
  std::vector<std::unique_ptr<faulty_request>> faulty_; // around executors, where something is planted
  std::optional<load_engine> engine_;

  timed_series series_; // room for the timed window
  std::optional<std::int64_t> clock_requests_;
  std::exception_ptr failed_at_the_gate_;

  std::vector<std::vector<double>> references_; // by stream thread; empty for a program without an output
  output_check outputs_;
};

} // namespace plateau
