// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schemas/case_result.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace plateau {

/// Which operator allocates and frees what. While tracking is on, each stream thread that holds an
/// `op_tracker` keeps a stack of the operators it is in, and every allocator event of that thread is booked
/// on that stack's path; events of other threads are booked on "". A free is booked on the path that allocated the
/// block, wherever it is freed, so that what a path keeps is what it allocated less what it freed; on "" when the block
/// is older than the tracking. Off, an event costs one relaxed load. Start and stop at quiet points; what was booked in
/// between adds up to the difference of the allocator's counters exactly. On CUDA the events of threads without an
/// op_tracker are not seen: in between, only those that have one may use the device.
void start_tracking();                  ///< forgets what was booked before
std::vector<op_events> stop_tracking(); ///< by path, those with events only; trackers may be gone by now

/// Makes the calling thread's operators known (a thread-local RecordFunction callback), and its events on a device
/// (thread-local profiler state, so Torch's profiler must be off). Hold one only while
/// tracking, one at a time on a thread, and let it go on the thread that made it.
class op_tracker {
public:
  op_tracker();
  ~op_tracker();
  op_tracker(op_tracker const&) = delete;
  op_tracker& operator=(op_tracker const&) = delete;

  struct table; ///< what this thread has booked

private:
  std::unique_ptr<table> table_;
  std::uint64_t handle_;
};

/// Called by the measured allocator on the thread of the event, of a block while it is live; bytes after rounding.
void book_allocation(void const* block, std::int64_t bytes);
void book_free(void const* block, std::int64_t bytes);

} // namespace plateau
