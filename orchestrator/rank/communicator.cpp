// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/rank/communicator.hpp"

#include "orchestrator/rank/signals.hpp"

#include <algorithm>
#include <cmath>
#include <mpi.h>
#include <thread>
#include <unistd.h>

namespace plateau {

namespace {

constexpr std::size_t largest_piece = std::size_t{64} << 20;
constexpr int result_tag = 1, beat_tag = 2;
constexpr int beats_within_patience = 4;

// MPI's own waits for the other ranks have no deadline: SIGALRM ends the process that waits too long, and the launcher
// then ends the others.
constexpr unsigned longest_init_s = 300;

void check(int code, char const* what) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw out_of_step(std::string(what) + ": MPI says: " + std::string(text, static_cast<std::size_t>(length)));
}

// A beat's content. It is sent from here and not waited for, so it must outlive everything.
std::int64_t const beat_working = 1, beat_waiting = 0;

int as_count(std::size_t n) { return static_cast<int>(n); } // pieces and texts are far below 2^31

} // namespace

communicator::communicator() {
  alarm(longest_init_s);
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
  alarm(0);
  work_ = clock::now();
  heard_.assign(static_cast<std::size_t>(size_), work_);
}

communicator::~communicator() {
  if (broken_) return;
  alarm(1 + static_cast<unsigned>(patience_.count()));
  MPI_Finalize();
  alarm(0);
}

void communicator::beat() {
  work_ = clock::now();
  beat(true);
}

// Rank 0 passes on that another rank is working, so that all wait for it.
void communicator::beat(bool working) {
  auto const now = clock::now();
  auto const period = patience_ / beats_within_patience;
  if (now - beaten_ < period) return;
  beaten_ = now;
  listen();
  auto const* content = working || (rank_ == 0 && now - work_ < 2 * period) ? &beat_working : &beat_waiting;
  for (int to = rank_ == 0 ? 1 : 0, last = rank_ == 0 ? size_ - 1 : 0; to <= last; ++to) {
    MPI_Request request = MPI_REQUEST_NULL;
    check(MPI_Isend(content, 1, MPI_INT64_T, to, beat_tag, MPI_COMM_WORLD, &request), "a sign of life");
    check(MPI_Request_free(&request), "a sign of life");
  }
}

void communicator::listen() {
  for (int there = 0;;) {
    MPI_Status status;
    check(MPI_Iprobe(MPI_ANY_SOURCE, beat_tag, MPI_COMM_WORLD, &there, &status), "a sign of life");
    if (there == 0) return;
    std::int64_t content = 0;
    check(MPI_Recv(&content, 1, MPI_INT64_T, status.MPI_SOURCE, beat_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE),
          "a sign of life");
    heard_[static_cast<std::size_t>(status.MPI_SOURCE)] = clock::now();
    if (content == beat_working) work_ = clock::now();
  }
}

// Who keeps a wait that began at `since` from its end, in words; nothing while all is well.
std::string communicator::overdue(clock::time_point since) const {
  auto const now = clock::now();
  auto const first = rank_ == 0 ? 1 : 0, last = rank_ == 0 ? size_ - 1 : 0;
  std::string silent;
  for (int rank = first; rank <= last; ++rank)
    if (now - std::max(since, heard_[static_cast<std::size_t>(rank)]) > patience_)
      silent += (silent.empty() ? "rank " : ", rank ") + std::to_string(rank);
  if (!silent.empty())
    return silent + " gave no sign of life for " + std::to_string(std::lround(std::ceil(patience_.count()))) + " s";
  if (now - std::max(since, work_) > 2 * patience_) return "all ranks wait, and none is working";
  return "";
}

// Polls briefly, since most collectives are over at once, then looks every millisecond.
template <class Start>
void communicator::complete(Start start, char const* what, pace p) {
  constexpr auto polled_for = std::chrono::microseconds(200);
  constexpr auto between_looks = std::chrono::milliseconds(10);
  MPI_Request request = MPI_REQUEST_NULL;
  auto const began = clock::now();
  auto looked = began;
  try {
    check(start(&request), what);
    for (int done = 0;;) {
      check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), what);
      if (done != 0) return;
      if (requested_stop() == stop_request::now) throw terminated();
      auto const now = clock::now();
      if (now - looked > between_looks) {
        looked = now;
        listen();
        beat(false);
        if (auto const why = overdue(began); !why.empty()) throw out_of_step(std::string(what) + ": " + why);
      }
      if (p == pace::spinning)
        std::this_thread::yield(); // to the rank that is waited for, where it has no core of its own
      if (p == pace::sleeping && now - began > polled_for) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  } catch (...) {
    broken_ = true;
    throw;
  }
}

void communicator::barrier(char const* what) {
  complete([](MPI_Request* r) { return MPI_Ibarrier(MPI_COMM_WORLD, r); }, what);
}

std::vector<std::int64_t> communicator::all_gather(std::int64_t mine, char const* what) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(size_));
  complete(
      [&](MPI_Request* r) {
        return MPI_Iallgather(&mine, 1, MPI_INT64_T, all.data(), 1, MPI_INT64_T, MPI_COMM_WORLD, r);
      },
      what);
  return all;
}

std::vector<std::string> communicator::all_gather(std::string const& mine, char const* what) {
  auto const sizes = all_gather(static_cast<std::int64_t>(mine.size()), what);
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
      what);
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < counts.size(); ++i)
    texts.push_back(joined.substr(static_cast<std::size_t>(offsets[i]), static_cast<std::size_t>(counts[i])));
  return texts;
}

std::string communicator::broadcast(std::string const& text, char const* what) {
  auto size = static_cast<std::int64_t>(text.size());
  complete([&](MPI_Request* r) { return MPI_Ibcast(&size, 1, MPI_INT64_T, 0, MPI_COMM_WORLD, r); }, what);
  std::string received = text;
  received.resize(static_cast<std::size_t>(size));
  complete(
      [&](MPI_Request* r) {
        return MPI_Ibcast(received.data(), as_count(received.size()), MPI_CHAR, 0, MPI_COMM_WORLD, r);
      },
      what);
  return received;
}

void communicator::send(std::span<std::uint8_t const> bytes, int to, char const* what) {
  auto size = static_cast<std::int64_t>(bytes.size());
  complete([&](MPI_Request* r) { return MPI_Isend(&size, 1, MPI_INT64_T, to, result_tag, MPI_COMM_WORLD, r); }, what,
           pace::spinning);
  for (std::size_t at = 0; at < bytes.size(); at += largest_piece) {
    auto const piece = bytes.subspan(at, std::min(largest_piece, bytes.size() - at));
    complete(
        [&](MPI_Request* r) {
          return MPI_Isend(piece.data(), as_count(piece.size()), MPI_BYTE, to, result_tag, MPI_COMM_WORLD, r);
        },
        what, pace::spinning);
  }
}

std::vector<std::uint8_t> communicator::receive(int from, char const* what) {
  std::int64_t size = 0;
  complete([&](MPI_Request* r) { return MPI_Irecv(&size, 1, MPI_INT64_T, from, result_tag, MPI_COMM_WORLD, r); }, what,
           pace::spinning);
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(size));
  for (std::size_t at = 0; at < bytes.size(); at += largest_piece) {
    auto const piece = std::span(bytes).subspan(at, std::min(largest_piece, bytes.size() - at));
    complete(
        [&](MPI_Request* r) {
          return MPI_Irecv(piece.data(), as_count(piece.size()), MPI_BYTE, from, result_tag, MPI_COMM_WORLD, r);
        },
        what, pace::spinning);
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
