// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace plateau {

/// Another rank did not answer within a collective's deadline. After it no collective can be used any more,
/// and MPI_Finalize would hang.
struct collective_timeout : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// SIGTERM came while this rank waited: seconds are left, and no collective can be relied on.
struct terminated : std::runtime_error {
  terminated() : std::runtime_error("told to terminate (SIGTERM)") {}
};

/// All ranks of the run. Every wait has a deadline, and sleeps between its looks so that it takes no core
/// from the measurement. Only host memory is passed. One thread only.
class communicator {
public:
  using seconds = std::chrono::duration<double>;

  /// Calls MPI_Init. Throws std::runtime_error.
  communicator();
  /// Calls MPI_Finalize, unless a collective failed.
  ~communicator();
  communicator(communicator const&) = delete;
  communicator& operator=(communicator const&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  int local_rank() const { return local_rank_; } ///< among the ranks of this host
  int local_size() const { return local_size_; }

  /// All of these throw collective_timeout, naming `what`, and terminated.
  void barrier(seconds deadline, char const* what);
  /// One number from each rank, in order of rank, on every rank.
  std::vector<std::int64_t> all_gather(std::int64_t mine, seconds deadline, char const* what);
  /// One text from each rank, in order of rank, on every rank.
  std::vector<std::string> all_gather(std::string const& mine, seconds deadline, char const* what);
  /// Rank 0's text on every rank.
  std::string broadcast(std::string const& text, seconds deadline, char const* what);
  /// Bytes of any size, in pieces of at most 64 MiB. These waits do not sleep: sleeping costs a hundredfold
  /// where a container forbids ranks to read each other's memory.
  void send(std::span<std::uint8_t const> bytes, int to, seconds deadline, char const* what);
  std::vector<std::uint8_t> receive(int from, seconds deadline, char const* what);

private:
  int rank_ = 0, size_ = 1, local_rank_ = 0, local_size_ = 1;
  bool broken_ = false;

  enum class pace { sleeping, spinning };
  template <class Start>
  void complete(Start start, seconds deadline, char const* what, pace p = pace::sleeping);
};

/// "Open MPI 4.1.4" and the like.
std::string mpi_version();

} // namespace plateau
