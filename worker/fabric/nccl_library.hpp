// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schemas/fabric.hpp"

#include <nccl.h>

#include <map>
#include <stdexcept>
#include <string>

namespace plateau {

/// What keeps the check from passing on this rank.
struct fabric_error : std::runtime_error {
  fabric_error(fabric_step in, std::string const& reason) : std::runtime_error(reason), step(in) {}
  fabric_step step;
};

/// The functions of NCCL that the check uses, with the types of the header that this worker was built with.
///
/// The library is found when the check begins and not before: the loader's own search (LD_LIBRARY_PATH first, then the
/// place that this program was built with, the torch wheel's). So a worker needs no NCCL for anything else, a job's
/// `env` can choose another one, and tests put a stand-in in its place. It is never unloaded.
struct nccl_library {
  decltype(&ncclGetVersion) get_version = nullptr;
  decltype(&ncclGetUniqueId) get_unique_id = nullptr;
  decltype(&ncclCommInitRankConfig) comm_init_rank_config = nullptr;
  decltype(&ncclCommGetAsyncError) comm_get_async_error = nullptr;
  decltype(&ncclAllReduce) all_reduce = nullptr;
  decltype(&ncclCommFinalize) comm_finalize = nullptr;
  decltype(&ncclCommDestroy) comm_destroy = nullptr;
  decltype(&ncclCommAbort) comm_abort = nullptr;
  decltype(&ncclGetErrorString) get_error_string = nullptr;
  decltype(&ncclGetLastError) get_last_error = nullptr;

  std::string file;    ///< that it was loaded from
  std::string version; ///< as the library says: "2.28.9"
};

/// Loads the library of that name or path. Throws fabric_error (loading) when it is not found, lacks one of the
/// functions, or is of a version that does not fit: older than 2.14, the first whose initialisation can be given up, or
/// of another major version than the header's.
nccl_library load_nccl(std::string const& name = "libnccl.so.2");

/// A unique id in hexadecimal, as it travels between the workers, and back. The latter throws fabric_error (loading)
/// when the text is no such id.
std::string to_text(ncclUniqueId const& id);
ncclUniqueId unique_id_of(std::string const& text);

/// What may change how NCCL behaves here: this process's NCCL_* variables, and the configuration files that are there.
std::map<std::string, std::string> nccl_settings();

/// What this worker says of its NCCL. Rank 0's has a new unique id. Throws fabric_error.
nccl_info info_of(nccl_library const& nccl, bool with_unique_id);

} // namespace plateau
