// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

/// What the fabric check finds: whether all GPUs of a run can talk to each other through NCCL, how fast, and what
/// memory NCCL takes for it. docs/fabric.md is the page for users.
namespace plateau {

/// The steps of the check, in order. A failure names the one that it happened in.
enum class fabric_step {
  loading,      ///< finding libnccl, and the same version of it on every rank
  initialising, ///< all ranks find each other
  reducing,     ///< all-reduces that have to finish
  comparing,    ///< their values
};

constexpr auto names(fabric_step) {
  return std::array{std::pair{fabric_step::loading, "loading"}, std::pair{fabric_step::initialising, "initialising"},
                    std::pair{fabric_step::reducing, "reducing"}, std::pair{fabric_step::comparing, "comparing"}};
}

/// The NCCL that a worker has loaded.
struct nccl_info {
  std::string version;                         ///< as the library itself says: "2.28.9"
  std::string library;                         ///< the file that it was loaded from
  std::string unique_id;                       ///< rank 0: names a communicator to be made, in hexadecimal; else empty
  std::map<std::string, std::string> settings; ///< NCCL_* variables of the worker, and files that NCCL reads, too

  template <class Visit>
  friend void describe(nccl_info& x, Visit&& visit) {
    visit("version", x.version);
    visit("library", x.library);
    visit("unique_id", x.unique_id);
    visit("settings", x.settings);
  }
};

/// Why the check failed on a rank.
struct fabric_failure {
  fabric_step step = fabric_step::loading;
  std::string reason; ///< in words, without the rank

  template <class Visit>
  friend void describe(fabric_failure& x, Visit&& visit) {
    visit("step", x.step);
    visit("reason", x.reason);
  }
};

/// All-reduces of one size, submitted one after the other and waited for together.
struct all_reduce_timing {
  std::int64_t bytes = 0; ///< of the buffer that each rank contributes
  std::int64_t repetitions = 0;
  std::int64_t elapsed_ns = 0; ///< of all repetitions, from the first submission until the stream was idle

  template <class Visit>
  friend void describe(all_reduce_timing& x, Visit&& visit) {
    visit("bytes", x.bytes);
    visit("repetitions", x.repetitions);
    visit("elapsed_ns", x.elapsed_ns);
  }
};

/// What one rank's worker found. What it did not get to is absent. The memory is the whole device's in use, of all
/// processes (cudaMemGetInfo); the check's own buffers are in each of the four.
struct fabric_result {
  std::optional<fabric_failure> failure;        ///< absent: all is well
  std::optional<std::int64_t> initialised_ns;   ///< how long it took until NCCL was ready
  std::optional<std::int64_t> used_before;      ///< bytes
  std::optional<std::int64_t> used_initialised; ///< bytes, with NCCL ready
  std::optional<std::int64_t> used_first;       ///< bytes, after the first all-reduce, for which NCCL takes buffers
  std::optional<std::int64_t> used_last;        ///< bytes, after the last one
  std::vector<all_reduce_timing> all_reduces;   ///< by size, ascending

  template <class Visit>
  friend void describe(fabric_result& x, Visit&& visit) {
    visit("failure", x.failure);
    visit("initialised_ns", x.initialised_ns);
    visit("used_before", x.used_before);
    visit("used_initialised", x.used_initialised);
    visit("used_first", x.used_first);
    visit("used_last", x.used_last);
    visit("all_reduces", x.all_reduces);
  }
};

/// One rank's part in the check.
struct fabric_on_rank {
  std::int64_t rank = 0;
  std::string host;
  std::optional<nccl_info> nccl; ///< absent when it could not be loaded
  fabric_result result;

  template <class Visit>
  friend void describe(fabric_on_rank& x, Visit&& visit) {
    visit("rank", x.rank);
    visit("host", x.host);
    visit("nccl", x.nccl);
    visit("result", x.result);
  }
};

enum class fabric_status { passed, failed, not_checked };

constexpr auto names(fabric_status) {
  return std::array{std::pair{fabric_status::passed, "passed"}, std::pair{fabric_status::failed, "failed"},
                    std::pair{fabric_status::not_checked, "not_checked"}};
}

/// The check of a run.
struct fabric_record {
  fabric_status status = fabric_status::not_checked;
  std::string reason;                ///< in words, unless it passed
  std::vector<fabric_on_rank> ranks; ///< of the world, in order; none when it was not checked

  template <class Visit>
  friend void describe(fabric_record& x, Visit&& visit) {
    visit("status", x.status);
    visit("reason", x.reason);
    visit("ranks", x.ranks);
  }
};

} // namespace plateau
