// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schemas/case_result.hpp"
#include "schemas/job.hpp"
#include "worker/device/device.hpp"
#include "worker/load/request.hpp"
#include "worker/programs/program.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace plateau {

/// A request that runs a program for one stream thread, on one input. The calling thread is in InferenceMode.
class executor : public request {
public:
  /// Called once before the first request, on the thread that serves this one's, with the stream entered; one executor
  /// after the other, no request under way.
  virtual void settle() {}
  void wait() final { stream_.wait(); }
  void run_once() { ///< a request whose result nobody looks at
    submit();
    wait();
    drop();
  }
  /// The last request's result, between wait() and drop(). Undefined for a program without one.
  virtual at::Tensor output() const = 0;

protected:
  explicit executor(stream& s) : stream_(s) {}

private:
  stream& stream_;
};

/// What a mode is given to prepare a case. The references outlive the mode.
struct mode_input {
  job const& run;
  case_id const& id;
  program const& prog;
  program_entry const& entry;
  std::vector<at::Tensor> const& weights;
  device& dev;
  std::function<void(bool)> compiling; ///< told true when a package is being compiled or waited for, false after
};

/// A mode made ready for one case. Outlives its executors.
class prepared_mode {
public:
  virtual ~prepared_mode() = default;
  /// Called for each stream thread in turn on the main thread, with the thread's stream entered.
  virtual std::unique_ptr<executor> make_executor(stream& s, at::Tensor input) = 0;
  virtual std::optional<std::string> arena_kind() const { return std::nullopt; }
  virtual std::optional<package_info> package() const { return std::nullopt; } ///< present: a package really runs
};

/// A mode cannot run this case here, and nothing else runs in its place: the case is skipped, with these
/// words.
struct unsupported : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// One way to execute a program.
struct mode {
  std::string_view name;
  std::unique_ptr<prepared_mode> (*prepare)(mode_input const&); ///< throws unsupported
};

mode const& mode_named(std::string_view name); ///< throws unsupported for a mode that this build does not have

} // namespace plateau
