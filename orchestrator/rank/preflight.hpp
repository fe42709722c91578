// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "orchestrator/rank/communicator.hpp"
#include "orchestrator/rank/supervisor.hpp"
#include "schemas/fabric.hpp"
#include "schemas/run_record.hpp"

namespace plateau {

/// Has all ranks' workers check the fabric together, before the first case. Every rank calls this at the same time,
/// with a worker that is up; the result is the same on all. The workers are released at the end: what NCCL took goes
/// with them. Nothing came of it when a stop was asked for meanwhile. Throws out_of_step only.
fabric_record check_fabric(communicator& ranks, supervisor& worker, rank_info const& here,
                           worker_process::look const& look);

} // namespace plateau
