// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "worker/fabric/fabric_device.hpp"
#include "worker/fabric/nccl_library.hpp"

#include <chrono>
#include <cstddef>

namespace plateau {

/// When a wait of the check ends without success.
struct fabric_deadline {
  using clock = std::chrono::steady_clock;
  std::chrono::duration<double> allowed; ///< from the beginning of the check, for all of it
  clock::time_point end = clock::now() + std::chrono::duration_cast<clock::duration>(allowed);
};

/// One rank's end of an NCCL communicator over all ranks, non-blocking: no call waits for another rank without a look
/// at the deadline and at what NCCL reports meanwhile (ncclCommGetAsyncError). On one thread only, since an abort from
/// another one has been seen to hang.
///
/// Whatever goes wrong throws fabric_error with NCCL's own words. An object that goes without close() aborts the
/// communicator (ncclCommAbort): destroying it could wait for ranks that are gone.
class nccl_communicator {
public:
  /// Finds the other ranks. `nccl` outlives this.
  nccl_communicator(nccl_library const& nccl, ncclUniqueId const& id, int rank, int ranks,
                    fabric_deadline const& deadline);
  ~nccl_communicator();
  nccl_communicator(nccl_communicator const&) = delete;
  nccl_communicator& operator=(nccl_communicator const&) = delete;

  /// Sums the first `floats` of every rank's contribution into its sum, `repetitions` times, and waits for it.
  void all_reduce(fabric_device& gpu, std::size_t floats, int repetitions);

  /// Waits until no rank needs this one any more, and frees what NCCL holds.
  void close();

private:
  nccl_library const& nccl_;
  ncclComm_t comm_ = nullptr;
  fabric_deadline const& deadline_;

  void finish(ncclResult_t result, fabric_step step, char const* call);
  template <class Done>
  void wait_until(Done done, fabric_step step, char const* call);
  [[noreturn]] void fail(ncclResult_t result, fabric_step step, char const* call);
};

} // namespace plateau
