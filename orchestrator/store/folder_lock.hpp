// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "orchestrator/store/run_folder.hpp"

namespace plateau {

/// Held by the one process that writes the results of a run: rank 0 while the run goes on, whoever assembles what its
/// ranks left. A flock() on the folder's run.lock, so the kernel takes it away when the process ends, however
/// it ends. Whether it holds between the nodes of a cluster is up to the file system: NFS hands it on to its server,
/// unless it is mounted with local_lock; the file names who took it last.
class folder_lock {
public:
  /// Throws input_error, naming the holder, when another process has it; std::system_error when there can be no such
  /// file.
  explicit folder_lock(run_folder const& folder);
  folder_lock(folder_lock const&) = delete;
  folder_lock& operator=(folder_lock const&) = delete;
  ~folder_lock();

private:
  int fd_;
};

/// For those who only read: throws input_error, naming the holder, while another process writes the run's results.
/// Leaves no trace in the folder, and may be asked where that cannot be written.
void refuse_if_held(run_folder const& folder);

} // namespace plateau
