// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schemas/case_id.hpp"
#include "schemas/job.hpp"
#include "schemas/json.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Faults that a worker plants in itself, so that a user can see each verdict fail before trusting it. Each is a text
/// in the job's `inject`:
///
///     KIND                      crash
///     KIND:key=value,...        leak:rank=1,case=eager.c2,bytes=4096,every=50
///
/// A fault acts from the timed window on, never in warm-up or while outputs are checked, and `after` counts a stream
/// thread's requests from there. leak and slow act on every stream thread, the others once, on the first.
namespace plateau {

enum class fault { leak, slow, hang, crash, oom, device_error, garbage };

constexpr auto names(fault) {
  return std::array{std::pair{fault::leak, "leak"},      std::pair{fault::slow, "slow"},
                    std::pair{fault::hang, "hang"},      std::pair{fault::crash, "crash"},
                    std::pair{fault::oom, "oom"},        std::pair{fault::device_error, "device_error"},
                    std::pair{fault::garbage, "garbage"}};
}

/// A fault and whom it hits.
struct injection {
  std::string text; ///< as the user wrote it
  fault kind = fault::leak;
  std::optional<std::int64_t> rank;  ///< absent: every rank
  std::optional<std::string> target; ///< a case's id; absent: every case
  std::int64_t after = 0;            ///< requests that a stream thread serves unharmed
  std::int64_t bytes = 4096;         ///< leak: of each tensor that is kept
  std::int64_t every = 50;           ///< leak: requests of a stream thread for each tensor
  std::optional<double> ms;          ///< slow: added to each request; absent: each takes twice its own time
};

/// What there is of one kind, for those who document it.
struct fault_entry {
  fault kind;
  std::string_view help;
  json schema; ///< of the object that its keys make
};
std::span<fault_entry const> fault_entries();

/// Reads one text. Appends a problem for everything that is wrong; `where` is the text's own pointer or flag.
injection read_injection(std::string const& text, std::string const& where, std::vector<problem>& problems);

/// What is planted in this case on this rank, in the job's order. Throws job_error when the job was not checked.
std::vector<injection> injections_for(job const& j, case_id const& id, std::int64_t rank);

/// What the result of a case in which it is planted must say among its warnings.
std::string warning_about(injection const& planted);

} // namespace plateau
