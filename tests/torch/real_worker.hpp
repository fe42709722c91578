// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schemas/progress.hpp"
#include "schemas/protocol.hpp"

#include <sys/types.h>

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace plateau {

/// The real plateau-worker, started as a rank starts it. Killed with its group when this goes out of scope.
class real_worker {
public:
  /// `environment` is set on top of the caller's own.
  explicit real_worker(std::map<std::string, std::string> const& environment = {});
  ~real_worker();
  real_worker(real_worker const&) = delete;
  real_worker& operator=(real_worker const&) = delete;

  void send(protocol::command const& c);
  std::optional<protocol::event> receive(); ///< nothing when the worker has closed

  bool says_something_within(std::chrono::milliseconds patience); ///< an event, or that it has closed

  /// The next event, which is to be a T. Throws std::runtime_error, with the reason of a failure, when it is not.
  template <class T>
  T receive_a();

  /// hello with this job, and its answer.
  device_info greet(job const& run);

  /// start of the case that is ready, to its result; its points go to `points` as they come.
  case_result start(std::vector<memory_point>* points = nullptr);

  /// prepare and start of one case; its points go to `points` as they come.
  case_result run(case_id const& id, std::vector<memory_point>* points = nullptr);

  void close();    ///< this end of the socket
  int exit_code(); ///< waits for the worker to exit by itself; -N when signal N ended it

  pid_t pid() const { return pid_; }
  progress const& seen() const { return *progress_; }

private:
  pid_t pid_ = -1;
  int socket_ = -1;
  progress* progress_ = nullptr;
  protocol::frame_buffer received_;
};

/// In the child of a fork: becomes plateau-worker with these as its socket and, unless -1, its progress file.
[[noreturn]] void become_worker(int socket, int progress_file);

/// Throws std::runtime_error with what `e` is instead.
[[noreturn]] void throw_unexpected(std::optional<protocol::event> const& e);

template <class T>
T real_worker::receive_a() {
  auto e = receive();
  if (!e || !std::holds_alternative<T>(*e)) throw_unexpected(e);
  return std::get<T>(std::move(*e));
}

} // namespace plateau
