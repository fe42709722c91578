// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace plateau {

/// The ranks are no longer in step: another one was silent for longer than their patience, or MPI failed. After it no
/// collective can be used any more, and MPI_Finalize would hang.
struct out_of_step : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// SIGTERM came while this rank waited: seconds are left, and no collective can be relied on.
struct terminated : out_of_step {
  terminated() : out_of_step("told to terminate (SIGTERM)") {}
};

/// All ranks of the run. One thread only; only host memory is passed.
///
/// Every wait has a deadline that is no guess at how long another rank's work may take: a rank that works calls
/// beat(), one that waits beats by itself, and a wait ends with out_of_step when a rank was silent for longer
/// than the patience, or when for so long none was working. Rank 0 hears all ranks and the others hear rank 0, so a
/// silent rank is named. A wait sleeps between its looks, so that it takes no core from the measurement.
class communicator {
public:
  using seconds = std::chrono::duration<double>;

  /// Calls MPI_Init. Throws out_of_step.
  communicator();
  /// Calls MPI_Finalize, unless a collective failed.
  ~communicator();
  communicator(communicator const&) = delete;
  communicator& operator=(communicator const&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  int local_rank() const { return local_rank_; } ///< among the ranks of this host
  int local_size() const { return local_size_; }

  /// How long a rank may be silent; 60 s until it is set. The same on every rank.
  void set_patience(seconds patience) { patience_ = patience; }

  /// This rank is working, and has not hung. To be called several times within the patience, and cheap: four times
  /// within it a few bytes are sent, else it only looks at the clock.
  void beat();

  /// All of these throw out_of_step, naming `what`, and terminated.
  void barrier(char const* what);
  /// One number from each rank, in order of rank, on every rank.
  std::vector<std::int64_t> all_gather(std::int64_t mine, char const* what);
  /// One text from each rank, in order of rank, on every rank.
  std::vector<std::string> all_gather(std::string const& mine, char const* what);
  /// Rank 0's text on every rank.
  std::string broadcast(std::string const& text, char const* what);
  /// Bytes of any size, in pieces of at most 64 MiB. These waits do not sleep: sleeping costs a hundredfold
  /// where a container forbids ranks to read each other's memory.
  void send(std::span<std::uint8_t const> bytes, int to, char const* what);
  std::vector<std::uint8_t> receive(int from, char const* what);

private:
  using clock = std::chrono::steady_clock;
  enum class pace { sleeping, spinning };

  int rank_ = 0, size_ = 1, local_rank_ = 0, local_size_ = 1;
  bool broken_ = false;
  seconds patience_{60};
  clock::time_point beaten_{};           ///< when this rank last beat
  clock::time_point work_;               ///< when a rank was last known to be working
  std::vector<clock::time_point> heard_; ///< by rank: when it last beat

  template <class Start>
  void complete(Start start, char const* what, pace p = pace::sleeping);
  void beat(bool working);
  void listen();
  std::string overdue(clock::time_point since) const;
};

/// "Open MPI 4.1.4" and the like.
std::string mpi_version();

} // namespace plateau
