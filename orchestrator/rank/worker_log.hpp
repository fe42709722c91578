// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "orchestrator/rank/descriptor.hpp"

#include <cstdint>
#include <filesystem>
#include <string>

namespace plateau {

/// What a worker and its children print, taken from a pipe into a file, up to a limit: a worker that floods its output
/// fills no disk. What does not fit is dropped, and the file says so. A file that cannot be written loses nothing else.
class worker_log {
public:
  static constexpr std::int64_t largest_file = 8 << 20; ///< bytes; of all workers of a rank together

  /// Opens the file for appending. `pipe` is the reading end.
  worker_log(std::filesystem::path const& file, descriptor pipe);

  /// The pipe, for poll(); -1 once its other ends are closed.
  int fd() const { return pipe_.get(); }

  /// Takes what is there, without waiting.
  void drain();

  /// The last line printed that is not empty, cut to a readable length.
  std::string last_line() const;

private:
  descriptor pipe_, file_;
  std::int64_t room_;
  std::string tail_; ///< the end of what was printed

  void keep(char const* text, std::size_t size);
};

} // namespace plateau
