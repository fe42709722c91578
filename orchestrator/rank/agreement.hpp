// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "orchestrator/rank/communicator.hpp"
#include "schemas/error.hpp"

#include <chrono>
#include <functional>
#include <future>
#include <string>

/// What the ranks decide, and how one of them works while the others wait.
namespace plateau {

/// All ranks agreed not to run, so all are still in step.
struct refused : input_error {
  using input_error::input_error;
};

/// What rank 0 decides for all: the text that `decide` gives there. When it throws there, every rank throws refused
/// with its words. A collective; `what` names it.
std::string decided_by_rank_0(communicator& ranks, std::function<std::string()> const& decide, char const* what);

/// Does work that takes as long as there is data, and as a disk pleases. A thread does it, so that this one can tell
/// the others that this rank lives; but not for ever, since a file system may hang.
template <class Work>
auto beating(communicator& ranks, Work work) {
  constexpr auto longest = std::chrono::hours(1);
  auto const began = std::chrono::steady_clock::now();
  auto done = std::async(std::launch::async, work);
  while (done.wait_for(std::chrono::milliseconds(10)) != std::future_status::ready)
    if (std::chrono::steady_clock::now() - began < longest) ranks.beat();
  return done.get();
}

} // namespace plateau
