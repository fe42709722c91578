// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/rank/communicator.hpp"

#include "orchestrator/rank/signals.hpp"

#include <algorithm>
#include <mpi.h>
#include <thread>

namespace plateau {

namespace {

constexpr std::size_t largest_piece = std::size_t{64} << 20;
constexpr int result_tag = 1;

void check(int code, char const* what) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw std::runtime_error(std::string(what) + ": MPI says: " + std::string(text, static_cast<std::size_t>(length)));
}

int as_count(std::size_t n) { return static_cast<int>(n); } // pieces and texts are far below 2^31

} // namespace

communicator::communicator() {
  int provided = 0;
  check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided), "MPI_Init");
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &size_);
  MPI_Comm host = MPI_COMM_NULL;
  check(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host),
        "finding this host's ranks");
  MPI_Comm_rank(host, &local_rank_);
  MPI_Comm_size(host, &local_size_);
  MPI_Comm_free(&host);
}

communicator::~communicator() {
  if (!broken_) MPI_Finalize();
}

// Polls briefly, since most collectives are over at once, then looks every millisecond.
template <class Start>
void communicator::complete(Start start, seconds deadline, char const* what, pace p) {
  using clock = std::chrono::steady_clock;
  constexpr auto polled_for = std::chrono::microseconds(200);
  MPI_Request request = MPI_REQUEST_NULL;
  auto const began = clock::now();
  try {
    check(start(&request), what);
    for (int done = 0;;) {
      check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), what);
      if (done != 0) return;
      if (requested_stop() == stop_request::now) throw terminated();
      auto const waited = clock::now() - began;
      if (waited > deadline)
        throw collective_timeout(std::string(what) + ": another rank did not answer within " +
                                 std::to_string(static_cast<long>(deadline.count())) + " s");
      if (p == pace::sleeping && waited > polled_for) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  } catch (...) {
    broken_ = true;
    throw;
  }
}

void communicator::barrier(seconds deadline, char const* what) {
  complete([](MPI_Request* r) { return MPI_Ibarrier(MPI_COMM_WORLD, r); }, deadline, what);
}

std::vector<std::int64_t> communicator::all_gather(std::int64_t mine, seconds deadline, char const* what) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(size_));
  complete(
      [&](MPI_Request* r) {
        return MPI_Iallgather(&mine, 1, MPI_INT64_T, all.data(), 1, MPI_INT64_T, MPI_COMM_WORLD, r);
      },
      deadline, what);
  return all;
}

std::vector<std::string> communicator::all_gather(std::string const& mine, seconds deadline, char const* what) {
  auto const sizes = all_gather(static_cast<std::int64_t>(mine.size()), deadline, what);
  std::vector<int> counts, offsets;
  int total = 0;
  for (auto const size : sizes) {
    counts.push_back(static_cast<int>(size));
    offsets.push_back(total);
    total += counts.back();
  }
  std::string joined(static_cast<std::size_t>(total), '\0');
  complete(
      [&](MPI_Request* r) {
        return MPI_Iallgatherv(mine.data(), as_count(mine.size()), MPI_CHAR, joined.data(), counts.data(),
                               offsets.data(), MPI_CHAR, MPI_COMM_WORLD, r);
      },
      deadline, what);
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < counts.size(); ++i)
    texts.push_back(joined.substr(static_cast<std::size_t>(offsets[i]), static_cast<std::size_t>(counts[i])));
  return texts;
}

std::string communicator::broadcast(std::string const& text, seconds deadline, char const* what) {
  auto size = static_cast<std::int64_t>(text.size());
  complete([&](MPI_Request* r) { return MPI_Ibcast(&size, 1, MPI_INT64_T, 0, MPI_COMM_WORLD, r); }, deadline, what);
  std::string received = text;
  received.resize(static_cast<std::size_t>(size));
  complete(
      [&](MPI_Request* r) {
        return MPI_Ibcast(received.data(), as_count(received.size()), MPI_CHAR, 0, MPI_COMM_WORLD, r);
      },
      deadline, what);
  return received;
}

void communicator::send(std::span<std::uint8_t const> bytes, int to, seconds deadline, char const* what) {
  auto size = static_cast<std::int64_t>(bytes.size());
  complete([&](MPI_Request* r) { return MPI_Isend(&size, 1, MPI_INT64_T, to, result_tag, MPI_COMM_WORLD, r); },
           deadline, what, pace::spinning);
  for (std::size_t at = 0; at < bytes.size(); at += largest_piece) {
    auto const piece = bytes.subspan(at, std::min(largest_piece, bytes.size() - at));
    complete(
        [&](MPI_Request* r) {
          return MPI_Isend(piece.data(), as_count(piece.size()), MPI_BYTE, to, result_tag, MPI_COMM_WORLD, r);
        },
        deadline, what, pace::spinning);
  }
}

std::vector<std::uint8_t> communicator::receive(int from, seconds deadline, char const* what) {
  std::int64_t size = 0;
  complete([&](MPI_Request* r) { return MPI_Irecv(&size, 1, MPI_INT64_T, from, result_tag, MPI_COMM_WORLD, r); },
           deadline, what, pace::spinning);
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(size));
  for (std::size_t at = 0; at < bytes.size(); at += largest_piece) {
    auto const piece = std::span(bytes).subspan(at, std::min(largest_piece, bytes.size() - at));
    complete(
        [&](MPI_Request* r) {
          return MPI_Irecv(piece.data(), as_count(piece.size()), MPI_BYTE, from, result_tag, MPI_COMM_WORLD, r);
        },
        deadline, what, pace::spinning);
  }
  return bytes;
}

std::string mpi_version() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(text, &length);
  std::string const whole(text, static_cast<std::size_t>(length));
  return whole.substr(0, whole.find(',')); // Open MPI adds who built it, and where
}

} // namespace plateau
