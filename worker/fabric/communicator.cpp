// SPDX-License-Identifier: Apache-2.0
#include "worker/fabric/communicator.hpp"

#include <cstdio>
#include <thread>

namespace plateau {

namespace {

std::string seconds_text(std::chrono::duration<double> time) {
  char text[32];
  std::snprintf(text, sizeof text, "%g s", time.count());
  return text;
}

} // namespace

nccl_communicator::nccl_communicator(nccl_library const& nccl, ncclUniqueId const& id, int rank, int ranks,
                                     fabric_deadline const& deadline)
    : nccl_(nccl), deadline_(deadline) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  auto const result = nccl_.comm_init_rank_config(&comm_, ranks, id, rank, &config);
  try {
    finish(result, fabric_step::initialising, "ncclCommInitRankConfig");
  } catch (...) { // no destructor runs for an object that was not made
    if (comm_ != nullptr) nccl_.comm_abort(comm_);
    throw;
  }
}

nccl_communicator::~nccl_communicator() {
  if (comm_ != nullptr) nccl_.comm_abort(comm_);
}

void nccl_communicator::all_reduce(fabric_device& gpu, std::size_t floats, int repetitions) {
  constexpr auto call = "ncclAllReduce";
  for (int i = 0; i < repetitions; ++i)
    finish(nccl_.all_reduce(gpu.contribution(), gpu.sum(), floats, ncclFloat32, ncclSum, comm_, gpu.stream()),
           fabric_step::reducing, call);
  wait_until([&] { return gpu.idle(); }, fabric_step::reducing, call);
}

void nccl_communicator::close() {
  constexpr auto call = "ncclCommFinalize";
  finish(nccl_.comm_finalize(comm_), fabric_step::reducing, call);
  nccl_.comm_destroy(comm_);
  comm_ = nullptr;
}

// In non-blocking mode any call may go on in the background, and no other may be made until it is done.
void nccl_communicator::finish(ncclResult_t result, fabric_step step, char const* call) {
  if (result != ncclSuccess && result != ncclInProgress) fail(result, step, call);
  wait_until(
      [&] {
        ncclResult_t state = ncclInProgress;
        nccl_.comm_get_async_error(comm_, &state);
        return state == ncclSuccess;
      },
      step, call);
}

template <class Done>
void nccl_communicator::wait_until(Done done, fabric_step step, char const* call) {
  constexpr auto polled_for = std::chrono::milliseconds(50); // then a thread that sleeps is enough
  auto const began = fabric_deadline::clock::now();
  while (!done()) {
    ncclResult_t state = ncclSuccess;
    auto const asked = nccl_.comm_get_async_error(comm_, &state);
    if (asked != ncclSuccess) fail(asked, step, call);
    if (state != ncclSuccess && state != ncclInProgress) fail(state, step, call);
    auto const now = fabric_deadline::clock::now();
    if (now > deadline_.end)
      throw fabric_error(step, std::string(call) + " was not done " + seconds_text(deadline_.allowed) +
                                   " after the check began (timeouts_s.fabric)");
    if (now - began > polled_for)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    else
      std::this_thread::yield();
  }
}

void nccl_communicator::fail(ncclResult_t result, fabric_step step, char const* call) {
  std::string reason = std::string(call) + ": " + nccl_.get_error_string(result);
  auto const* const more = nccl_.get_last_error(comm_);
  if (more != nullptr && *more != '\0') reason += ": " + std::string(more);
  throw fabric_error(step, reason);
}

} // namespace plateau
